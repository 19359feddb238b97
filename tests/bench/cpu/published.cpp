#include "tests/bench/cpu/published.h"

#include <chrono>
#include <cstdio>

#include "compiler_core/codegen/compile.h"
#include "measure_server/runner/hardware.h"
#include "tests/bench/cpu/report.h"
#include "tests/bench/cpu/tune.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/text/time_words.h"
#include "tuner/verify/published.h"

namespace tuner {
namespace {

using std::chrono::steady_clock;

constexpr int kProcesses = 3;  // of one measurement, as of `tuner verify --times`

class PublishedRun {
 public:
  PublishedRun(const PublishedOptions& options, PublishedReport& report)
      : options_(options),
        report_(report),
        stop_at_(steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                           std::chrono::duration<double>(options.deadline_s))) {}

  Status run(const std::vector<BenchShape>& shapes) {
    if (options_.trials > 0)
      for (size_t i = 0; i < shapes.size() && in_time(shapes.size() - i); ++i) {
        std::fprintf(stderr, "bench_cpu: tuning %zu of %zu, %s/%s\n", i + 1, shapes.size(),
                     shapes[i].set.c_str(), shapes[i].name.c_str());
        RETURN_IF_ERROR(tune({shapes[i].workload}, {Algorithms::kAny, options_.threads, options_.trials,
                                                    options_.db, options_.seed}));
      }
    ASSIGN_OR_RETURN(const DaemonClient client,
                     DaemonClient::connect({.db = options_.db, .own_worker = true}));
    std::printf("%-48s %12s %9s %5s %12s %12s\n", "shape", "published us", "+- %", "time", "again us",
                "x published");
    for (size_t i = 0; i < shapes.size() && in_time(shapes.size() - i); ++i) {
      PublishedShape& shape = report_.shapes.emplace_back(PublishedShape{.shape = shapes[i]});
      if (const Status measured = measure(client, shape); !measured) {
        shape.error = measured.message();
        std::printf("%-48s FAILED %s\n", name_of(shape).c_str(), shape.error.c_str());
      }
      if (!options_.json.empty()) RETURN_IF_ERROR(write_json(report_, options_.json));
    }
    client.stop_host("the times are measured");
    return Status::ok();
  }

 private:
  static std::string name_of(const PublishedShape& s) { return str(s.shape.set, "/", s.shape.name); }

  bool in_time(size_t left) {
    if (report_.stopped.empty() && steady_clock::now() >= stop_at_)
      report_.stopped = str("the deadline is reached; ", left, " shapes are left");
    return report_.stopped.empty();
  }

  Status measure(const DaemonClient& client, PublishedShape& shape) {
    const JobRow::Task task{shape.shape.workload.key(), report_.target, ""};
    ASSIGN_OR_RETURN(const std::optional<TunedConfig> answer, client.tuned(task));
    if (!answer) return not_found("never tuned; --tune TRIALS does so");
    shape.published = *answer;
    for (int i = 1; i <= options_.times; ++i) {
      ASSIGN_OR_RETURN(RaceRow now, client.remeasure(answer->trial_id, kProcesses, Constants::kWarm));
      shape.again.push_back(std::move(now));
      print(shape, i);
    }
    return Status::ok();
  }

  static void print(const PublishedShape& s, int time) {
    const RaceRow& now = s.again.back();
    std::printf("%-48s %12.2f %9.2f %5d %12.2f %12.4f  %s%s\n", name_of(s).c_str(), s.published.time_ns / 1e3,
                100 * half_width(s.published), time, now.time_ns / 1e3, to_published(s.published, now),
                verdict(s, now).c_str(), why(s, now).c_str());
    std::fflush(stdout);
  }

  const PublishedOptions& options_;
  PublishedReport& report_;
  const steady_clock::time_point stop_at_;
};

}  // namespace

Result<bool> run_published(const std::vector<BenchShape>& shapes, const PublishedOptions& options) {
  cli::log_to_stderr(spdlog::level::err);
  PublishedReport report{.date = utc_now(),
                         .cpu = hardware_fingerprint(),
                         .target = host_target(options.threads).name(),
                         .toolchain = toolchain_fingerprint(),
                         .options = options};
  RETURN_IF_ERROR(PublishedRun(options, report).run(shapes));
  const PublishedSummary sum = summarise(report);
  std::printf(
      "inside: %d of %d (%d by the interval alone); half-width <= 5 %%: %d of %zu; not certified: %d\n",
      sum.inside, sum.times, sum.alone, sum.narrow, report.shapes.size(), sum.uncertified);
  if (!report.stopped.empty()) std::printf("stopped: %s\n", report.stopped.c_str());
  if (!options.json.empty()) RETURN_IF_ERROR(write_json(report, options.json));
  return report.stopped.empty() && std::all_of(report.shapes.begin(), report.shapes.end(),
                                               [](const PublishedShape& s) { return s.error.empty(); });
}

}  // namespace tuner
