// estimates_again: what the estimate of today says of configs that a device has measured. No device.
//
//   estimates_again [--each] [--floors DIR] results/DATE-DEVICE-estimates.json...
//
// The files have, of each task, random picks with the estimate of their day and the median measured time
// (gpu/H200.md). A line a task with five picks or more: rank correlation with the measured times, of the old
// estimates and of today's, over the picks whose config is still one of its template. A line an operator and
// data type: median of those, and by which factor estimates are off in the median. --each prints a line a
// pick, with the parts of its estimate.
//
// --floors compiles the picks too (NVRTC; cubins are kept in DIR), and counts those that were measured below
// their issue floor, which must be none; the ranks of floors with the measured times stand beside those of
// estimates.
//
// Run it before and after a change of the estimate: what a device said counts more than any floor. A knob
// that came later is taken for 0 or, where that is no config, for its default.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "compiler_core/base/json_reader.h"
#include "compiler_core/base/statistics.h"
#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/issue_floor.h"
#include "compiler_core/codegen_cuda/time_estimate.h"
#include "compiler_core/lower/gpu.h"
#include "templates/registry/registry.h"
#include "tuner/cost_model/cost_model.h"

namespace tuner {
namespace {

using json_input::kRequired;
using json_input::Reader;

constexpr size_t kFewestPicks = 5;

struct Pick {
  std::string template_name, config;
  double estimated_ns = 0, measured_ns = 0;
};

struct Judged {
  std::vector<float> before, now, measured, floors;
  std::vector<double> off_before, off_now;  // |log(estimate / measured)|
};

// Ranks of tasks, and all picks, of one operator.
struct Sums {
  std::vector<double> before, now, floors, off_before, off_now;
};

Result<Config> config_of_today(const ConfigSpace& space, const std::string& text) {
  ASSIGN_OR_RETURN(const Config written, config_from_text(text));
  if (space.index_of(written)) return written;
  std::map<std::string, int64_t> zero = written.values(), first = written.values();
  for (const KnobInfo& knob : space.knobs()) zero.emplace(knob.name, 0), first.emplace(knob.name, knob.first);
  if (space.index_of(Config(zero))) return Config(zero);
  RETURN_IF_ERROR(space.index_of(Config(first)).status());
  return Config(first);
}

struct Now {
  TimeEstimate estimate;
  double floor_ns = 0;  // without launches; 0: none was asked for, or there is none
};

Result<Now> look_at(const Workload& workload, const Target& target, const Pick& pick,
                    const std::string& cubins) {
  ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> served, templates_for(workload, target));
  const auto t = std::ranges::find(served, pick.template_name, &AnyTemplate::name);
  if (t == served.end()) return not_found(pick.template_name, " does not serve it");
  ASSIGN_OR_RETURN(const std::unique_ptr<TemplateInstance> instance, (*t)->apply(workload, target));
  ASSIGN_OR_RETURN(const Config config, config_of_today(instance->space(), pick.config));
  ASSIGN_OR_RETURN(const Program program, instance->instantiate(config));
  ASSIGN_OR_RETURN(const GpuProgram lowered, lower_gpu(program));
  Now now{.estimate = estimate_time(lowered, target)};
  if (cubins.empty()) return now;
  ASSIGN_OR_RETURN(const Artifact artifact,
                   cuda::compile_kernels(lowered, target, {.cache_directory = cubins}));
  if (const Result<sass::IssueFloor> floor = sass::issue_floor(artifact, lowered, target))
    now.floor_ns = floor->ns;
  return now;
}

void print_pick(const Pick& pick, const Now& found) {
  const TimeEstimate& now = found.estimate;
  std::printf(
      "    %9.1f us measured, %9.1f before, %9.1f now (issue %.1f, shared %.1f, L2 %.1f, memory %.1f, a "
      "block alone %.1f; "
      "%s) %s %s\n",
      pick.measured_ns / 1000, pick.estimated_ns / 1000, now.ns / 1000, now.issue_ns / 1000,
      now.shared_ns / 1000, now.l2_ns / 1000, now.dram_ns / 1000, now.alone_ns / 1000,
      std::string(time_bound_name(now.bound)).c_str(), pick.template_name.c_str(), pick.config.c_str());
}

class Report {
 public:
  Report(bool each, std::string cubins) : each_(each), cubins_(std::move(cubins)) {}

  Status add_task(const std::string& visit, const std::string& key, const std::string& target_name,
                  const std::vector<Pick>& picks) {
    ASSIGN_OR_RETURN(const Workload workload, workload_from_key(key));
    ASSIGN_OR_RETURN(const Target target, parse_target(target_name));
    Judged judged;
    for (const Pick& pick : picks) {
      const Result<Now> now = look_at(workload, target, pick, cubins_);
      if (!now) {
        ++gone_;
        if (each_)
          std::printf("    gone: %s: %s %s\n", now.message().c_str(), pick.template_name.c_str(),
                      pick.config.c_str());
        continue;
      }
      if (each_) print_pick(pick, *now);
      judged.before.push_back(static_cast<float>(pick.estimated_ns));
      judged.now.push_back(static_cast<float>(now->estimate.ns));
      judged.floors.push_back(static_cast<float>(now->floor_ns));
      if (now->floor_ns > 0) ++floors_;
      if (pick.measured_ns < now->floor_ns) {
        ++below_floor_;
        std::printf("measured %.1f us, BELOW the floor of %.1f: %s %s, %s\n", pick.measured_ns / 1000,
                    now->floor_ns / 1000, pick.template_name.c_str(), pick.config.c_str(), key.c_str());
      }
      judged.measured.push_back(static_cast<float>(pick.measured_ns));
      judged.off_before.push_back(std::abs(std::log(pick.estimated_ns / pick.measured_ns)));
      judged.off_now.push_back(std::abs(std::log(now->estimate.ns / pick.measured_ns)));
    }
    Sums& sums = sums_[str(workload.op_name(), " ", dtype_name(workload.dtype()))];
    sums.off_before.insert(sums.off_before.end(), judged.off_before.begin(), judged.off_before.end());
    sums.off_now.insert(sums.off_now.end(), judged.off_now.begin(), judged.off_now.end());
    if (judged.measured.size() < kFewestPicks) return Status::ok();
    const double before = rank_correlation(judged.before, judged.measured),
                 now = rank_correlation(judged.now, judged.measured);
    sums.before.push_back(before), sums.now.push_back(now);
    sums.floors.push_back(rank_correlation(judged.floors, judged.measured));
    std::printf("rank %.3f before, %.3f now, %zu of %zu picks, %s visit, %s\n", before, now,
                judged.measured.size(), picks.size(), visit.c_str(), key.c_str());
    return Status::ok();
  }

  void print() const {
    for (const auto& [name, s] : sums_) {
      if (s.now.empty() && s.off_now.empty()) continue;
      std::printf(
          "%s: %zu tasks, median rank %.3f before, %.3f now, mean %.3f, %.3f; %zu picks, off by a factor of "
          "%.3f before, "
          "%.3f now (median)\n",
          name.c_str(), s.now.size(), median(s.before), median(s.now), mean(s.before), mean(s.now),
          s.off_now.size(), std::exp(median(s.off_before)), std::exp(median(s.off_now)));
    }
    if (!cubins_.empty()) {
      for (const auto& [name, s] : sums_)
        if (!s.floors.empty())
          std::printf("%s: floors with measured times: median rank %.3f, mean %.3f\n", name.c_str(),
                      median(s.floors), mean(s.floors));
      std::printf("%d of %d picks were measured below their floor\n", below_floor_, floors_);
    }
    if (gone_ > 0) std::printf("%d picks are no configs of today\n", gone_);
  }

 private:
  static double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  }

  const bool each_;
  const std::string cubins_;
  std::map<std::string, Sums> sums_;
  int gone_ = 0, floors_ = 0, below_floor_ = 0;
};

Status read_file(const std::string& path, Report& report) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found(path, ": cannot be read");
  std::stringstream text;
  text << in.rdbuf();
  ASSIGN_OR_RETURN(const nlohmann::json document, json_input::parse(text.str()));
  Reader all(document, "");
  Status status;
  all.read_objects(
      "runs",
      [&](Reader& run) {
        std::string visit;
        run.read("visit", visit, kRequired);
        run.read_objects(
            "tasks",
            [&](Reader& task) {
              std::string workload, target;
              std::vector<Pick> picks;
              task.read("workload", workload, kRequired);
              task.read("target", target, kRequired);
              task.read_objects(
                  "picks",
                  [&](Reader& one) {
                    Pick& pick = picks.emplace_back();
                    one.read("template", pick.template_name, kRequired);
                    one.read("config", pick.config, kRequired);
                    one.read("estimated_ns", pick.estimated_ns, kRequired);
                    one.read("run_ns", pick.measured_ns, kRequired);
                  },
                  kRequired);
              if (status.is_ok() && !task.failed()) status = report.add_task(visit, workload, target, picks);
            },
            kRequired);
      },
      kRequired);
  return all.failed() ? all.status() : status;
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  bool each = false;
  std::string cubins;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--each")
      each = true;
    else if (word == "--floors" && i + 1 < argc)
      cubins = argv[++i];
    else
      files.push_back(word);
  }
  if (files.empty() || files.front().starts_with("--")) {
    std::fprintf(stderr,
                 "usage: estimates_again [--each] [--floors DIR] results/DATE-DEVICE-estimates.json...\n");
    return 2;
  }
  tuner::Report report(each, cubins);
  for (const std::string& file : files) {
    const tuner::Status status = tuner::read_file(file, report);
    if (status.is_ok()) continue;
    std::fprintf(stderr, "estimates_again: %s: %s\n", file.c_str(), status.message().c_str());
    return 2;
  }
  report.print();
  return 0;
}
