// bench_cpu: our CPU kernels against what a user would call instead, in one run, in turn. See README.md
// beside this file.
//
//   bench_cpu [--set NAMES] [--filter TEXT] [--db FILE] [--tune TRIALS] [--threads N] [--rounds 40]
//             [--caches warm|rotate|flush] [--finalists 5] [--fill-ms 1] [--quick] [--no-peers] [--list]
//             [--json FILE] [--deadline S] [--seed S] [--published N]
//
//   --set       sets of shapes, separated by commas; default: all
//   --filter    only shapes whose "set/name" contains this
//   --db        tuned configs, as `tuner query` finds them; a shape that has none runs its default config
//   --tune      tunes first, with so many trials a shape, what the database knows less than half as many of
//   --finalists so many of the fastest known configs race before the rounds, the winner is timed; default 5
//   --caches    warm (the default): operands lie as a loop of calls leaves them; rotate: calls take turns on
//               copies of the operands, 128 MB of them or four times the L3; flush: each call is timed by
//               itself, after all its operands have been put out of the caches, line by line (one thread)
//   --quick     10 rounds of 0.3 ms, 20 s at most: for a look while working, not for a figure to quote
//   --deadline  seconds after which no shape is begun; default 3600
//   --seed      of the searches of --tune; else the command's own
//   --published another question: are published times true? Tunes each shape as a job of its own, asks the
//               daemon for its answer, and has that measured so many times again (cpu/published.h). No peers
//
// Exit status: 0 every shape was right and timed (a peer that is not there is told, and no failure); 1 a
// wrong answer, no kernel for a shape, the deadline, cores that are not free; 2 wrong use.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <optional>

#include "compiler_core/codegen/compile.h"
#include "db/store.h"
#include "measure_server/runner/hardware.h"
#include "templates/schedule_template.h"
#include "tests/bench/cpu/bench_case.h"
#include "tests/bench/cpu/blas.h"
#include "tests/bench/cpu/interleave.h"
#include "tests/bench/cpu/onednn.h"
#include "tests/bench/cpu/onnxruntime.h"
#include "tests/bench/cpu/ours.h"
#include "tests/bench/cpu/probes.h"
#include "tests/bench/cpu/published.h"
#include "tests/bench/cpu/report.h"
#include "tests/bench/cpu/tune.h"
#include "tests/bench/cpu/xsmm.h"

namespace tuner {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kSeed = 20261121;          // of operands and of the bootstrap
constexpr int64_t kLeastRotated = 128 << 20;  // bytes

struct Options {
  std::vector<std::string> sets;
  std::string filter, db, json;
  int trials = 0, threads = 1, rounds = 40, finalists = 5;
  double fill_ms = 1, deadline_s = 3600;
  int published = 0;
  std::optional<uint64_t> seed;
  Caches caches = Caches::kWarm;
  bool quick = false, no_peers = false, list = false;
};

Result<std::vector<BenchShape>> chosen_shapes(const Options& options) {
  std::vector<BenchShape> chosen;
  for (const std::string& set : options.sets) {
    const auto is_it = [&](const BenchShape& s) { return s.set == set; };
    if (std::none_of(bench_shapes().begin(), bench_shapes().end(), is_it))
      return invalid_argument("--set: found \"", set, "\", expected some of ", bench_set_names());
  }
  for (const BenchShape& s : bench_shapes()) {
    const bool in_set = options.sets.empty() ||
                        std::find(options.sets.begin(), options.sets.end(), s.set) != options.sets.end();
    if (in_set && str(s.set, "/", s.name).find(options.filter) != std::string::npos) chosen.push_back(s);
  }
  if (chosen.empty()) return invalid_argument("no shape is chosen; --list prints them all");
  return chosen;
}

// The libraries and what our own kernels need, for the whole run.
struct Bench {
  const Options& options;
  Target target;
  std::vector<MemoryLevel> levels;
  ThreadPool pool, one;
  KnownConfigs known;
  std::unique_ptr<Blas> blas;
  std::unique_ptr<Onednn> onednn;
  std::unique_ptr<OnnxRuntime> onnxruntime;
  steady_clock::time_point stop_at;

  explicit Bench(const Options& o)
      : options(o),
        target(host_target(o.threads)),
        levels(memory_levels(target.l1d_bytes, target.l2_bytes, target.l3_bytes)),
        pool(o.threads),
        one(1),
        stop_at(steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                          std::chrono::duration<double>(o.deadline_s))) {}
};

Status tune_missing(const Options& options, const std::vector<BenchShape>& shapes) {
  const Target target = host_target(options.threads);
  for (const Algorithms algorithms : {Algorithms::kAny, Algorithms::kDirect}) {
    ASSIGN_OR_RETURN(const KnownConfigs known, KnownConfigs::load(options.db));
    std::vector<Workload> missing;
    for (const BenchShape& s : shapes) {
      const auto serving = templates_for(s.workload, target);
      if (!serving.is_ok()) continue;
      // One algorithm only: the fastest is the fastest direct one.
      const bool all_direct = std::all_of(serving->begin(), serving->end(),
                                          [](const AnyTemplate* t) { return t->algorithm() == "direct"; });
      if (algorithms == Algorithms::kDirect && all_direct) continue;
      // A search among all algorithms leaves few direct configs behind: that is not a search for the fastest.
      const int half = (options.trials + 1) / 2;
      if (static_cast<int>(known.fastest(s.workload.key(), target.name(), algorithms, half).size()) < half)
        missing.push_back(s.workload);
    }
    if (missing.empty()) continue;
    std::fprintf(stderr, "bench_cpu: tuning %zu shapes, %d trials each%s\n", missing.size(), options.trials,
                 algorithms == Algorithms::kDirect ? ", direct algorithms only" : "");
    RETURN_IF_ERROR(tune(missing, {algorithms, options.threads, options.trials, options.db, options.seed}));
  }
  return Status::ok();
}

// Ours: the fastest; the fastest direct one where that is another; with several threads, the kernel for one.
Status add_ours(Bench& bench, const BenchCase& bench_case, const TurnOptions& how, ShapeReport& report) {
  const int finalists = bench.options.finalists;
  ASSIGN_OR_RETURN(Contestant any,
                   our_contestant(bench_case, {Algorithms::kAny, finalists}, bench.known, how, bench.pool));
  const bool is_direct = any.algorithm == "direct";
  report.contestants.push_back(std::move(any));
  if (!is_direct) {
    Result<Contestant> direct =
        our_contestant(bench_case, {Algorithms::kDirect, finalists}, bench.known, how, bench.pool);
    if (direct.is_ok()) {
      direct->name = "ours direct";
      report.contestants.push_back(*std::move(direct));
    } else {
      report.missing.push_back({"ours direct", direct.message()});
    }
  }
  if (bench.options.threads > 1) {
    ASSIGN_OR_RETURN(Contestant one,
                     our_contestant(bench_case, {Algorithms::kAny, finalists}, bench.known, how, bench.one));
    one.name = "ours, 1 thread";
    one.kind = ContestantKind::kReference;
    report.contestants.push_back(std::move(one));
  }
  return Status::ok();
}

// Every contestant's answer, before timing or after it. A peer that is wrong is out and told; ours is an
// error.
Status check_all(const BenchCase& bench_case, ShapeReport& report, const char* when) {
  std::vector<Contestant> right;
  for (Contestant& c : report.contestants) {
    if (c.kind == ContestantKind::kProbe) {
      right.push_back(std::move(c));
      continue;
    }
    const Result<double> error = bench_case.check(c);
    if (!error && c.name.starts_with("ours")) return error.status().with_context(when);
    if (!error) {
      report.missing.push_back({c.name, str(when, error.message())});
      continue;
    }
    c.max_error = std::max(c.max_error, *error);
    right.push_back(std::move(c));
  }
  report.contestants = std::move(right);
  return Status::ok();
}

// Peers that keep operands where nobody else reaches them.
void leave_out_unflushed(ShapeReport& report) {
  std::erase_if(report.contestants, [&](const Contestant& c) {
    if (!c.flush) report.missing.push_back({c.name, "keeps weights of its own, which cannot be flushed"});
    return !c.flush;
  });
}

Status run_shape(Bench& bench, ShapeReport& report) {
  const Options& options = bench.options;
  report.flops = report.shape.workload.flops();
  report.bytes = report.shape.workload.bytes();
  ASSIGN_OR_RETURN(const BenchCase bench_case, BenchCase::make(report.shape.workload, kSeed));
  const bool warm = options.caches == Caches::kWarm;
  const MemoryLevel& level = warm ? level_of(bench.levels, report.bytes) : bench.levels.back();
  report.level = level.name;
  if (options.caches == Caches::kRotate)
    report.sets = bench_case.sets_for(std::max(kLeastRotated, 4 * bench.target.l3_bytes));
  const TurnOptions how{.rounds = options.rounds,
                        .fill_ns = options.fill_ms * 1e6,
                        .caches = options.caches,
                        .sets = report.sets,
                        .threads = options.threads,
                        .stop_at = bench.stop_at};
  RETURN_IF_ERROR(add_ours(bench, bench_case, how, report));
  if (bench.blas) bench.blas->add(bench_case, report.sets, report.contestants);
  if (!options.no_peers)
    add_xsmm(bench_case, options.threads, report.sets, report.contestants, report.missing);
  if (bench.onednn) bench.onednn->add(bench_case, report.sets, report.contestants, report.missing);
  if (bench.onnxruntime) bench.onnxruntime->add(bench_case, report.sets, report.contestants, report.missing);
  if (options.caches == Caches::kFlush) leave_out_unflushed(report);
  const auto add_peak = [&, dtype = report.shape.workload.dtype()](ThreadPool& pool) {
    report.contestants.push_back(dtype == DType::kFloat32 ? fma_probe(pool) : dot_probe(dtype, pool));
  };
  add_peak(bench.one);
  if (options.threads > 1) add_peak(bench.pool);
  report.contestants.push_back(read_probe(level, bench.pool));
  RETURN_IF_ERROR(check_all(bench_case, report, "before timing: "));
  take_turns(how, report.contestants);
  RETURN_IF_ERROR(check_all(bench_case, report, "right before timing, not after it: "));
  if (static_cast<int>(report.contestants.front().ns.size()) < std::min(options.rounds, 5))
    return failed("not measured: the deadline is reached");
  judge(report, kSeed);
  return Status::ok();
}

void open_peers(Bench& bench, RunReport& run) {
  if (bench.options.no_peers) return;
  bench.blas = Blas::open(bench.options.threads, run.missing);
  Result<std::unique_ptr<Onednn>> onednn = Onednn::open(bench.options.threads);
  if (onednn.is_ok()) {
    bench.onednn = *std::move(onednn);
    run.libraries.push_back("oneDNN " + bench.onednn->version());
  } else {
    run.missing.push_back({"oneDNN", onednn.message()});
  }
  Result<std::unique_ptr<OnnxRuntime>> onnxruntime = OnnxRuntime::open(bench.options.threads);
  if (onnxruntime.is_ok()) {
    bench.onnxruntime = *std::move(onnxruntime);
    run.libraries.push_back("ONNX Runtime " + bench.onnxruntime->version());
  } else {
    run.missing.push_back({"ONNX Runtime", onnxruntime.message()});
  }
}

Result<bool> run_bench(const Options& options) {
  ASSIGN_OR_RETURN(const std::vector<BenchShape> shapes, chosen_shapes(options));
  if (options.list) {
    for (const BenchShape& s : shapes)
      std::printf("%s/%s\t%s\t%s\n", s.set.c_str(), s.name.c_str(), s.group.c_str(),
                  s.workload.key().c_str());
    return true;
  }
  if (options.published > 0)
    return run_published(shapes, {.times = options.published,
                                  .trials = options.trials,
                                  .threads = options.threads,
                                  .seed = options.seed,
                                  .db = options.db,
                                  .json = options.json,
                                  .deadline_s = options.deadline_s});
  if (options.trials > 0) RETURN_IF_ERROR(tune_missing(options, shapes));
  Bench bench(options);
  ASSIGN_OR_RETURN(bench.known, KnownConfigs::load(options.db));
  RunReport run{.date = utc_now(),
                .cpu = hardware_fingerprint(),
                .target = bench.target.name(),
                .toolchain = toolchain_fingerprint(),
                .threads = options.threads,
                .rounds = options.rounds,
                .fill_ns = options.fill_ms * 1e6,
                .caches = options.caches,
                .seed = kSeed};
  open_peers(bench, run);
  print_head(run);
  bool all_right = true;
  for (size_t i = 0; i < shapes.size() && run.stopped.empty(); ++i) {
    if (steady_clock::now() >= bench.stop_at) {
      run.stopped = str("the deadline is reached; ", shapes.size() - i, " shapes are left");
      all_right = false;
      break;
    }
    std::fprintf(stderr, "bench_cpu: %zu of %zu, %s/%s\n", i + 1, shapes.size(), shapes[i].set.c_str(),
                 shapes[i].name.c_str());
    ShapeReport& report = run.shapes.emplace_back(ShapeReport{.shape = shapes[i]});
    if (const Status status = run_shape(bench, report); !status) report.error = status.message();
    all_right = all_right && report.error.empty() && cores_are_free(report, options.threads);
    print_shape(report, i + 1, shapes.size(), options.threads, run.seed);
    // What holds operands is dropped; samples stay.
    for (Contestant& c : report.contestants)
      c.call = nullptr, c.poison = nullptr, c.answer = nullptr, c.flush = nullptr;
    if (!options.json.empty()) RETURN_IF_ERROR(write_json(run, options.json));
  }
  print_summary(run);
  if (!options.json.empty()) RETURN_IF_ERROR(write_json(run, options.json));
  return all_right;
}

Result<bool> run_with_caches(const std::string& name, Options& options) {
  const std::optional<Caches> caches = caches_from_name(name);
  if (!caches) return invalid_argument("--caches: expected warm, rotate or flush, found \"", name, "\"");
  if (*caches == Caches::kFlush && options.threads > 1)
    return invalid_argument("--caches flush: single calls would be timed with threads that sleep; expected ",
                            "--threads 1, found ", options.threads);
  options.caches = *caches;
  return run_bench(options);
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  tuner::Options options;
  options.db = tuner::default_db_path();
  CLI::App app("Our CPU kernels against what a user would call instead, in one run, in turn.");
  app.add_option("--set", options.sets, "sets of shapes: " + tuner::bench_set_names())->delimiter(',');
  app.add_option("--filter", options.filter, "only shapes whose set/name contains this");
  app.add_option("--db", options.db, "database of tuned configs")->capture_default_str();
  app.add_option("--tune", options.trials, "trials for each shape of which less than half as many are known")
      ->check(CLI::Range(0, 100000));
  app.add_option("--threads", options.threads, "threads of ours and of the peers")->check(CLI::Range(1, 256));
  app.add_option("--rounds", options.rounds, "samples of each")->check(CLI::Range(5, 10000));
  app.add_option("--finalists", options.finalists, "fastest known configs that race to be the one timed")
      ->check(CLI::Range(1, 100));
  app.add_option("--fill-ms", options.fill_ms, "milliseconds of a batch")->check(CLI::Range(0.01, 1000.0));
  app.add_option("--deadline", options.deadline_s, "seconds after which no shape is begun")
      ->check(CLI::Range(0.1, 1e6));
  app.add_option("--json", options.json, "write everything, raw samples too, after each shape");
  std::string caches = "warm";
  app.add_option("--caches", caches, "what caches hold when a call begins: warm, rotate, flush");
  app.add_option("--seed", options.seed, "of the searches of --tune; else the command's own");
  app.add_option("--published", options.published,
                 "tune each shape as a job of its own, then measure its published answer so many times again")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--quick", options.quick, "10 rounds of 0.3 ms, 20 s at most");
  app.add_flag("--no-peers", options.no_peers, "ours alone");
  app.add_flag("--list", options.list, "print the shapes and end");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.quick) {
    options.rounds = 10;
    options.fill_ms = 0.3;
    options.deadline_s = std::min(options.deadline_s, 20.0);
  }
  const tuner::Result<bool> all_right = tuner::run_with_caches(caches, options);
  if (!all_right.is_ok()) {
    std::fprintf(stderr, "bench_cpu: %s\n", all_right.message().c_str());
    return all_right.status().code() == tuner::StatusCode::kInvalidArgument ? 2 : 1;
  }
  return *all_right ? 0 : 1;
}
