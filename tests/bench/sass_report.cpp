// sass_report: what the compiler makes of the GPU templates, read from the machine code. Needs NVRTC, no GPU.
//
//   sass_report [--target "cuda -arch=sm_80"]... [--configs N] [--seed S] [--template WORD] [--cache DIR]
//   [--each]
//               [--json FILE] [--fit] FILE.json...
//
// For each target (sm_80 and sm_90a unless given) and template that serves an entry of the job files: the
// default config and N random ones that the filter accepts, before and after compiling, of each entry. A line
// a template and target:
//
//   configs     default and random ones, of all entries
//   serial      loads of a copy to shared memory that are waited for before the copy's next one: most in a
//               copy of the default / configs with a copy that has more than one
//   to regs     the same of loads that go to registers only
//   branches    configs with a branch inside a copy to shared memory
//   FFMA        share of the hot loop: default / median;   FFMA/LDS: multiply-adds a shared load there, the same
//   spill       configs that spill at all
//   warps       warps of a block of the default / configs where they are no multiple of four
//   blocks      resident blocks of a multiprocessor of the default / configs with only one
//   below       configs whose estimated time is below their issue floor; (n): no floor is given for n of them
//   tensor      a line of its own, of products on tensor cores: HMMA's share of the hot loop, HMMA an LDSM:
//               default / median; and passes of shared memory that are bank conflicts, predicted: default /
//               configs with any
//   rank        Spearman's correlation of estimate and floor over the random configs: median of the entries,
//               worst
//
// and a line an op and target, of every second entry of the op (the weights of the estimate are fitted on the
// others), with the configs of all its templates together: rank as above ("time"); rank of issue with issue:
// the estimated time if nothing but issue held a kernel up, with the floor that issue alone sets; and rank of
// the largest part of the estimate but L2, without bank conflicts, of which a floor knows nothing. --fit fits
// the weights, prints them, and how they do for the entries that they are not fitted on.
//
// The hot loop is that of the kernel with the largest floor. --each prints a line a config.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>

#include "compiler_core/base/statistics.h"
#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/device_rates.h"
#include "compiler_core/codegen_cuda/issue_floor.h"
#include "compiler_core/codegen_cuda/time_estimate.h"
#include "compiler_core/codegen_cuda/warp_work.h"
#include "templates/registry/registry.h"
#include "tests/bench/sass_fit.h"
#include "tuner/cost_model/cost_model.h"
#include "tuner/jobs/job_file.h"

namespace tuner {
namespace {

struct Options {
  std::vector<std::string> targets, files;
  int configs = 200;
  uint64_t seed = 1;
  std::string only, cache, json;
  bool each = false, fit = false;
};

struct CopyCount {
  int copies = 0, loads = 0, serial = 0, worst = 0, branches = 0;
  void add(const sass::Copy& copy) {
    ++copies, loads += copy.loads, serial += copy.serial, branches += copy.branches;
    worst = std::max(worst, copy.serial);
  }
};

struct Row {
  std::string config, refused;  // refused: why there are no figures
  bool is_default = false;
  CopyCount to_shared, to_registers;
  double ffma_share = 0, ffma_a_shared_load = 0;
  double mma_share = 0, mma_a_load = 0, conflicts = 0;  // conflicts: of all passes of shared memory
  int spill_bytes = 0, registers = 0, blocks_per_sm = 0;
  int64_t warps = 0;
  double estimate_ns = 0, floor_ns = 0;     // without launches; floor 0: none
  double issue_ns = 0, issue_floor_ns = 0;  // the same, if nothing but issue held the kernel up
  double seen_ns = 0;                       // the largest part of the estimate but L2, without bank conflicts
  int estimated_blocks = 0;                 // of a multiprocessor
  // That a warp issues in the kernel of the hot loop: as the estimate counts, and at least.
  double estimated_instructions = 0, least_instructions = 0;
  double least_clocks = 0, least_stalls = 0;  // of a warp alone
  cuda::WarpCounts counts;                    // of that kernel
  TimeEstimate time;
  std::string no_floor, bound;
  std::vector<int> unknown;
};

Status read_machine_code(const Artifact& artifact, const GpuProgram& program, const Target& target,
                         Row& row) {
  ASSIGN_OR_RETURN(const std::vector<sass::KernelCode> codes, sass::read_kernel_code(artifact.binary));
  double largest = -1;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const GpuKernel& kernel = program.kernels[k];
    const auto code = std::ranges::find(codes, kernel.name, &sass::KernelCode::name);
    if (code == codes.end()) return failed(kernel.name, ": not in the cubin");
    for (const sass::Copy& copy : code->copies)
      (copy.shared_stores > 0 ? row.to_shared : row.to_registers).add(copy);
    row.unknown.insert(row.unknown.end(), code->unknown.begin(), code->unknown.end());
    const LaunchInfo& launch = artifact.manifest.launches[k];
    row.spill_bytes = std::max(row.spill_bytes, launch.spill_bytes);
    const Result<sass::IssueFloor> floor = sass::issue_floor(*code, kernel, target, launch.blocks_per_sm);
    const double ns = floor ? floor->ns : 0;
    if (floor)
      row.floor_ns += ns, row.issue_floor_ns += floor->issue_ns;
    else
      row.no_floor = floor.message();
    if (ns <= largest) continue;
    largest = ns;
    row.ffma_share = code->hot_mix().ffma_share();
    row.ffma_a_shared_load = code->hot_mix().ffma_a_shared_load();
    row.registers = launch.registers;
    row.mma_share = code->hot_mix().mma_share();
    row.mma_a_load = code->hot_mix().mma_a_load();
    const cuda::WarpCounts counts = cuda::warp_work(kernel, 1).counts;
    row.conflicts = counts.wavefronts > 0 ? counts.conflicts / counts.wavefronts : 0;
    row.estimated_instructions = counts.instructions();
    row.counts = counts;
    row.estimated_blocks = estimate_resources(kernel, target).blocks_per_sm;
    row.least_instructions = floor ? floor->warp_instructions : 0;
    row.least_clocks = floor ? floor->warp_clocks : 0;
    row.least_stalls = floor ? floor->warp_stalls : 0;
    // Without what a float pipe with half as many lanes adds, which is no matter of the code.
    row.least_stalls -=
        counts.arithmetic * (128.0 / static_cast<double>(cuda::device_rates(target).fp32_lanes) - 1);
    row.blocks_per_sm = launch.blocks_per_sm;
    row.warps = (launch.block[0] * launch.block[1] * launch.block[2] + 31) / 32;
  }
  row.seen_ns = std::max({row.time.issue_ns, row.time.shared_ns * (1 - row.conflicts), row.time.alone_ns});
  if (!row.no_floor.empty()) row.floor_ns = 0;
  return Status::ok();
}

// The figures of one config, or why there are none.
Row look_at(const TemplateInstance& instance, const Config& config, const Target& target,
            const std::string& cache) {
  Row row{.config = config.to_text()};
  const Result<Program> program = instance.instantiate(config);
  const Result<GpuProgram> lowered = program ? lower_gpu(*program) : Result<GpuProgram>(program.status());
  if (!lowered) {
    row.refused = lowered.message();
    return row;
  }
  const Result<Artifact> artifact = cuda::compile_kernels(*lowered, target, {.cache_directory = cache});
  if (!artifact) {
    row.refused = artifact.message();
    return row;
  }
  const TimeEstimate estimate = estimate_time(*lowered, target);
  row.estimate_ns = estimate.ns - estimate.launch_ns;
  row.issue_ns = estimate.issue_ns;
  row.bound = time_bound_name(estimate.bound);
  row.time = estimate;
  if (const Status read = read_machine_code(*artifact, *lowered, target, row); !read.is_ok())
    row.refused = read.message();
  return row;
}

// The default config and as many accepted random ones as wanted, fewer when the space has no more. The same
// for any number of threads.
std::vector<Row> look_at_all(const TemplateInstance& instance, const Target& target, const Options& options) {
  const auto wanted = static_cast<size_t>(options.configs);
  std::mt19937_64 rng(options.seed);
  const Config first = instance.space().at(instance.space().default_index());
  std::vector<Row> accepted = {look_at(instance, first, target, options.cache)};
  accepted.front().is_default = true;
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  for (size_t drawn = 0; accepted.size() < wanted + 1 && drawn < 20 * wanted;) {
    std::vector<ConfigIndex> draws;
    for (size_t i = 0; i < std::max<size_t>(threads, wanted + 1 - accepted.size()); ++i)
      draws.push_back(instance.space().sample(rng));
    drawn += draws.size();
    std::vector<Row> rows(draws.size());
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < draws.size(); i = next++)
        rows[i] = look_at(instance, instance.space().at(draws[i]), target, options.cache);
    };
    {
      std::vector<std::jthread> others;
      for (unsigned t = 1; t < threads; ++t) others.emplace_back(work);
      work();
    }
    for (Row& row : rows)
      if (row.refused.empty() && accepted.size() < wanted + 1) accepted.push_back(std::move(row));
  }
  return accepted;
}

double correlation(const std::vector<Row>& rows, double Row::*estimate = &Row::estimate_ns,
                   double Row::*floor = &Row::floor_ns) {
  std::vector<float> estimates, floors;
  for (const Row& row : rows) {
    if (row.is_default || row.floor_ns <= 0) continue;
    estimates.push_back(static_cast<float>(row.*estimate));
    floors.push_back(static_cast<float>(row.*floor));
  }
  return rank_correlation(estimates, floors);
}

// The rows of one entry, of all templates that serve it.
struct Shape {
  std::string op;
  bool judged = false;  // weights are fitted on the others
  std::vector<Row> rows;
};

// All entries of one template on one target.
struct Group {
  std::vector<Row> rows;
  std::vector<double> correlations;  // of each entry
};

template <class Get>
double median_of(const std::vector<Row>& rows, Get get) {
  std::vector<double> values;
  for (const Row& row : rows)
    if (row.refused.empty()) values.push_back(get(row));
  return median(values);
}
template <class Test>
int count_of(const std::vector<Row>& rows, Test test) {
  return static_cast<int>(
      std::ranges::count_if(rows, [&](const Row& row) { return row.refused.empty() && test(row); }));
}
// The largest of the defaults.
template <class Get>
double of_defaults(const std::vector<Row>& rows, Get get, bool least) {
  double result = -1;
  for (const Row& row : rows)
    if (row.is_default && row.refused.empty())
      result = result < 0 ? get(row)
               : least    ? std::min<double>(result, get(row))
                          : std::max<double>(result, get(row));
  return std::max(0.0, result);
}

void print_heads() {
  std::printf("%-8s %-28s %7s | %-9s | %-9s | %8s | %-13s | %-13s | %5s | %-7s | %-7s | %-9s | %s\n",
              "target", "template", "configs", "serial", "to regs", "branches", "FFMA", "FFMA/LDS", "spill",
              "warps", "blocks", "below", "rank");
}

void print_group(const std::string& arch, const std::string& name, const Group& group) {
  const std::vector<Row>& rows = group.rows;
  const auto share = [](const Row& r) { return 100 * r.ffma_share; };
  const auto a_load = [](const Row& r) { return r.ffma_a_shared_load; };
  std::vector<double> correlations = group.correlations;
  std::ranges::sort(correlations);
  std::printf(
      "%-8s %-28s %7d | %2.0f / %4d | %2.0f / %4d | %8d | %4.1f%% /%4.1f%% | %5.1f /%5.1f | %5d | %2.0f /%3d "
      "| %1.0f /%4d | "
      "%4d (%d) | %.2f, worst %.2f\n",
      arch.c_str(), name.c_str(), count_of(rows, [](const Row&) { return true; }),
      of_defaults(
          rows, [](const Row& r) { return r.to_shared.worst; }, false),
      count_of(rows, [](const Row& r) { return r.to_shared.worst > 1; }),
      of_defaults(
          rows, [](const Row& r) { return r.to_registers.worst; }, false),
      count_of(rows, [](const Row& r) { return r.to_registers.worst > 1; }),
      count_of(rows, [](const Row& r) { return r.to_shared.branches > 0; }), of_defaults(rows, share, true),
      median_of(rows, share), of_defaults(rows, a_load, true), median_of(rows, a_load),
      count_of(rows, [](const Row& r) { return r.spill_bytes > 0; }),
      of_defaults(
          rows, [](const Row& r) { return r.warps; }, true),
      count_of(rows, [](const Row& r) { return r.warps % 4 != 0; }),
      of_defaults(
          rows, [](const Row& r) { return r.blocks_per_sm; }, true),
      count_of(rows, [](const Row& r) { return r.blocks_per_sm < 2; }),
      count_of(rows, [](const Row& r) { return r.estimate_ns < r.floor_ns; }),
      count_of(rows, [](const Row& r) { return !r.no_floor.empty(); }), median(correlations),
      correlations.empty() ? 0 : correlations.front());
  const auto mma = [](const Row& r) { return 100 * r.mma_share; };
  const auto mma_a_load = [](const Row& r) { return r.mma_a_load; };
  if (median_of(rows, mma) == 0) return;
  std::printf(
      "%-8s %-28s tensor: HMMA %.1f%% /%.1f%%, an LDSM %.1f /%.1f; bank conflicts %.1f%% of the passes / %d "
      "configs\n",
      arch.c_str(), name.c_str(), of_defaults(rows, mma, true), median_of(rows, mma),
      of_defaults(rows, mma_a_load, true), median_of(rows, mma_a_load),
      of_defaults(
          rows, [](const Row& r) { return 100 * r.conflicts; }, false),
      count_of(rows, [](const Row& r) { return r.conflicts > 0.005; }));
}

void print_row(const Row& r) {
  if (!r.refused.empty()) {
    std::printf("    refused: %s | %s\n", r.refused.c_str(), r.config.c_str());
    return;
  }
  if (r.mma_share > 0)
    std::printf("    HMMA %.1f %%, %.1f an LDSM, bank conflicts %.1f %% of the passes\n", 100 * r.mma_share,
                r.mma_a_load, 100 * r.conflicts);
  std::printf(
      "    serial %d of %d in %d copies, %d branches; to registers %d of %d in %d | FFMA %.1f %%, %.1f a "
      "shared load | %d "
      "registers, spills %d | %lld warps, %d blocks | estimate %.1f us, floor %.1f us%s%s | %s%s\n",
      r.to_shared.serial, r.to_shared.loads, r.to_shared.copies, r.to_shared.branches, r.to_registers.serial,
      r.to_registers.loads, r.to_registers.copies, 100 * r.ffma_share, r.ffma_a_shared_load, r.registers,
      r.spill_bytes, static_cast<long long>(r.warps), r.blocks_per_sm, r.estimate_ns / 1000,
      r.floor_ns / 1000, r.estimate_ns < r.floor_ns ? " BELOW" : "",
      r.no_floor.empty() ? "" : (" (" + r.no_floor + ")").c_str(), r.is_default ? "default: " : "",
      r.config.c_str());
}

nlohmann::json json_of(const CopyCount& c) {
  return {{"copies", c.copies},
          {"loads", c.loads},
          {"serial", c.serial},
          {"worst", c.worst},
          {"branches", c.branches}};
}

nlohmann::json json_of(const Row& r) {
  nlohmann::json json = {{"config", r.config}, {"default", r.is_default}};
  if (!r.refused.empty()) {
    json["refused"] = r.refused;
    return json;
  }
  json["to_shared"] = json_of(r.to_shared);
  json["to_registers"] = json_of(r.to_registers);
  json["ffma_share"] = r.ffma_share;
  json["ffma_a_shared_load"] = r.ffma_a_shared_load;
  json["mma_share"] = r.mma_share;
  json["mma_a_load"] = r.mma_a_load;
  json["bank_conflicts"] = r.conflicts;
  json["registers"] = r.registers;
  json["spill_bytes"] = r.spill_bytes;
  json["warps"] = r.warps;
  json["blocks_per_sm"] = r.blocks_per_sm;
  json["estimate_ns"] = r.estimate_ns;
  json["issue_ns"] = r.issue_ns;
  json["shared_ns"] = r.time.shared_ns;
  json["l2_ns"] = r.time.l2_ns;
  json["dram_ns"] = r.time.dram_ns;
  json["alone_ns"] = r.time.alone_ns;
  json["issue_floor_ns"] = r.issue_floor_ns;
  json["least_clocks"] = r.least_clocks;
  json["least_stalls"] = r.least_stalls;
  json["arithmetic"] = r.counts.arithmetic;
  json["estimated_blocks"] = r.estimated_blocks;
  json["floor_ns"] = r.floor_ns;
  for (size_t i = 0; i < cuda::kIssues; ++i)
    json["issues"][std::string(cuda::issue_name(static_cast<cuda::Issue>(i)))] = r.counts.issues[i];
  json["bound"] = r.bound;
  json["estimated_instructions"] = r.estimated_instructions;
  json["least_instructions"] = r.least_instructions;
  return json;
}

void print_ops(const std::string& arch, const std::vector<Shape>& shapes) {
  std::map<std::string, std::array<std::vector<double>, 3>> ranks;
  for (const Shape& shape : shapes) {
    if (!shape.judged) continue;
    ranks[shape.op][0].push_back(correlation(shape.rows));
    ranks[shape.op][1].push_back(correlation(shape.rows, &Row::issue_ns, &Row::issue_floor_ns));
    ranks[shape.op][2].push_back(correlation(shape.rows, &Row::seen_ns));
  }
  for (auto& [op, of_op] : ranks)
    std::printf(
        "%-8s %s, %zu judged shapes: rank of time %.2f, worst %.2f; of issue %.2f, worst %.2f; of time "
        "without L2 and "
        "bank conflicts %.2f, worst %.2f\n",
        arch.c_str(), op.c_str(), of_op[0].size(), median(of_op[0]), std::ranges::min(of_op[0]),
        median(of_op[1]), std::ranges::min(of_op[1]), median(of_op[2]), std::ranges::min(of_op[2]));
}

void print_weights(const char* what, const Weights& weights) {
  std::printf("  %-12s", what);
  for (size_t i = 0; i < weights.size(); ++i)
    std::printf(" %s %.3g", std::string(cuda::issue_name(static_cast<cuda::Issue>(i))).c_str(), weights[i]);
  std::printf("\n");
}

// Fits one column of issue_weights and prints it; then what the fitted weights make of the judged shapes.
void fit_and_print(const char* what, const std::vector<Shape>& shapes, const Weights& known,
                   double (*least_of)(const Row&)) {
  std::vector<IssueSample> taught, judged;
  size_t unknown = 0;
  for (const Shape& shape : shapes)
    for (const Row& row : shape.rows) {
      if (row.is_default || row.floor_ns <= 0) continue;
      // Where threads are guarded, a floor knows less than the work itself.
      const double work = row.counts[cuda::Issue::kWork] + row.counts[cuda::Issue::kTile];
      const double least = least_of(row);
      if (row.least_instructions < work || least <= 0) {
        ++unknown;
        continue;
      }
      (shape.judged ? judged : taught).push_back({row.counts.issues, least});
    }
  const Weights weights = fit_weights(taught, known);
  print_weights(what, weights);
  std::vector<double> ratios;
  for (const IssueSample& s : judged) ratios.push_back(weighted(s.issues, weights) / s.least);
  std::printf(
      "  fitted on %zu kernels; of %zu others, fitted by least: 1 %% %.2f, 10 %% %.2f, median %.2f, 90 %% "
      "%.2f; "
      "left out %zu\n",
      taught.size(), judged.size(), quantile(ratios, 0.01), quantile(ratios, 0.1), median(ratios),
      quantile(ratios, 0.9), unknown);
}

void fit_and_print(const std::vector<Shape>& shapes) {
  // warp_counts.cpp tells why these are held.
  const auto held = [](std::initializer_list<cuda::Issue> ones, double barrier, double entry) {
    Weights known;
    known.fill(-1);
    for (const cuda::Issue one : ones) known[static_cast<size_t>(one)] = 1;
    known[static_cast<size_t>(cuda::Issue::kBarrier)] = barrier;
    known[static_cast<size_t>(cuda::Issue::kEntry)] = entry;
    return known;
  };
  using enum cuda::Issue;
  fit_and_print("instructions", shapes, held({kWork, kTile, kAccess, kMove}, 6, 15),
                [](const Row& r) { return r.least_instructions; });
  fit_and_print("clocks", shapes, held({kWork, kMove}, 30, 40), [](const Row& r) { return r.least_stalls; });
}

struct Report {
  std::map<std::string, Group> groups;  // by template
  std::vector<Shape> shapes;
  std::map<int, int> unknown;  // opcodes, and in how many configs
  nlohmann::json json = nlohmann::json::array();
};

Status look_at_entry(const JobEntry& entry, const Target& target, const Options& options, Report& report) {
  Shape& shape = report.shapes.emplace_back();
  shape.op = entry.workload.op_name();
  shape.judged = std::ranges::count(report.shapes, shape.op, &Shape::op) % 2 == 0;
  ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> served, templates_for(entry.workload, target));
  for (const AnyTemplate* t : served) {
    const std::string name(t->name());
    if (name.find(options.only) == std::string::npos) continue;
    ASSIGN_OR_RETURN(const std::unique_ptr<TemplateInstance> instance, t->apply(entry.workload, target));
    const std::vector<Row> rows = look_at_all(*instance, target, options);
    Group& group = report.groups[name];
    group.correlations.push_back(correlation(rows));
    if (options.each) std::printf("%s, %s\n", name.c_str(), entry.workload.key().c_str());
    nlohmann::json configs = nlohmann::json::array();
    for (const Row& row : rows) {
      if (options.each) print_row(row);
      for (const int opcode : row.unknown) ++report.unknown[opcode];
      configs.push_back(json_of(row));
    }
    report.json.push_back({{"target", target.name()},
                           {"template", name},
                           {"workload", entry.workload.key()},
                           {"rank_correlation", group.correlations.back()},
                           {"configs", std::move(configs)}});
    group.rows.insert(group.rows.end(), rows.begin(), rows.end());
    shape.rows.insert(shape.rows.end(), rows.begin(), rows.end());
  }
  return Status::ok();
}

Status run(const Options& options) {
  RETURN_IF_ERROR(nvrtc_available());
  std::printf("%s, seed %llu\n", cuda_toolchain_fingerprint().c_str(),
              static_cast<unsigned long long>(options.seed));
  nlohmann::json json = nlohmann::json::array();
  std::vector<Shape> shapes;  // of all targets
  if (!options.each) print_heads();
  for (const std::string& name : options.targets) {
    ASSIGN_OR_RETURN(const Target target, parse_target(name));
    Report report;
    for (const std::string& file : options.files) {
      ASSIGN_OR_RETURN(const std::vector<JobEntry> entries, read_job_file(file));
      for (const JobEntry& entry : entries) RETURN_IF_ERROR(look_at_entry(entry, target, options, report));
    }
    if (options.each) print_heads();
    for (const auto& [of_template, group] : report.groups) print_group(target.arch, of_template, group);
    print_ops(target.arch, report.shapes);
    shapes.insert(shapes.end(), report.shapes.begin(), report.shapes.end());
    for (const auto& [opcode, configs] : report.unknown)
      std::printf("%-8s opcode 0x%03x is unknown, in %d configs\n", target.arch.c_str(),
                  static_cast<unsigned>(opcode), configs);
    std::fflush(stdout);
    json.insert(json.end(), report.json.begin(), report.json.end());
  }
  if (options.fit) fit_and_print(shapes);
  if (options.json.empty()) return Status::ok();
  std::ofstream out(options.json);
  out << json.dump(1) << "\n";
  return out.flush() ? Status::ok() : failed(options.json, ": cannot be written");
}

Result<Options> parse(int argc, char** argv) {
  Options options;
  std::map<std::string, std::string> values;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--each") {
      options.each = true;
    } else if (word == "--fit") {
      options.fit = true;
    } else if (word == "--target" || word == "--configs" || word == "--seed" || word == "--template" ||
               word == "--cache" || word == "--json") {
      if (i + 1 == argc) return invalid_argument(word, " needs a value");
      const std::string value = argv[++i];
      if (word == "--target") options.targets.push_back(value);
      values[word] = value;
    } else if (word.starts_with("--")) {
      return invalid_argument("unknown option ", word);
    } else {
      options.files.push_back(word);
    }
  }
  if (values.contains("--configs")) options.configs = std::max(0, std::atoi(values["--configs"].c_str()));
  if (values.contains("--seed")) options.seed = std::strtoull(values["--seed"].c_str(), nullptr, 10);
  options.only = values["--template"], options.cache = values["--cache"], options.json = values["--json"];
  if (options.targets.empty()) options.targets = {"cuda -arch=sm_80", "cuda -arch=sm_90a"};
  if (options.files.empty()) return invalid_argument("no job file given");
  return options;
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  const auto options = tuner::parse(argc, argv);
  const tuner::Status status = options ? tuner::run(*options) : options.status();
  if (!status.is_ok()) std::fprintf(stderr, "sass_report: %s\n", status.message().c_str());
  return status.is_ok() ? 0 : status.code() == tuner::StatusCode::kInvalidArgument ? 2 : 1;
}
