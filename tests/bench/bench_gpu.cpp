// bench_gpu: our GPU kernels against NVIDIA's, in one run, in turn. See README.md beside this file.
//
//   bench_gpu PACK [--results results.jsonl] [--best 1] [--rounds 40] [--caches warm|rotate] [--json FILE]
//                  [--deadline S] [--peer-seconds S] [--check | --calibrate]
//   bench_gpu --device-properties FILE
//
//   --results   takes of each task the fastest candidate by these results of `runner run-pack`; else its
//   first
//   --best      so many of them, 10 at most: all take turns with the peer, which is held against the fastest
//   --check     runs each kernel and the first right way of the peer once and compares; times nothing: for
//               sanitizers and profilers
//   --calibrate measures the device alone, what the model of times rests on: peaks, latencies, loads of
//   shared memory
//   --rounds    samples of each (5 to 1000), A, B, A, B...; default 40
//   --caches    warm (the default): operands lie as the call before left them; rotate: calls take turns on
//               operands that together are over three times as large as L2
//   --json      everything, raw samples too; written anew after each task, so nothing is lost
//   --deadline  seconds of timing after which no round is begun, counted from when the device is open;
//   default
//               300. A device that answers no more ends the run soon after it.
//   --peer-seconds  seconds of search, for each task, for the fastest way of NVIDIA's libraries (0.1 to 600);
//                   default 5
//   --device-properties  writes what cuDNN asks of a device to make plans for it, as JSON: with it plans are
//                        made where
//               there is no such device. Needs no pack
//
// Exit status: 0 every task was right and timed (a peer that is not there is told, and no failure); 1 no GPU,
// a wrong answer, ours or the peer's, a device that failed, the deadline; 2 wrong use.
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "tests/bench/gpu/calibration.h"
#include "tests/bench/gpu/ceilings.h"
#include "tests/bench/gpu/comparison.h"
#include "tests/bench/gpu/cudnn_graph.h"

namespace tuner {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr uint64_t kBootstrapSeed = 20261121;
constexpr double kMostOpeningS = 60;  // a driver on a host of many devices takes seconds
constexpr double kShareOfSearches =
    0.7;  // of the time that is left; the rest is for loading, checking and rounds

struct Options {
  std::string pack, results, json;
  int rounds = 40;  // 0: --check
  size_t best = 1;
  bool calibrate = false;
  Caches caches = Caches::kWarm;
  double deadline_s = 300, peer_seconds = 5;
  std::string device_properties;  // the file to write; then nothing else is done
};

Result<double> number(const std::string& option, const char* text, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= least && value <= most))
    return invalid_argument(option, ": expected a number from ", least, " to ", most, ", found \"", text,
                            "\"");
  return value;
}

Result<Options> parse(int argc, char** argv) {
  Options options;
  bool check = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool takes_value = word == "--results" || word == "--json" || word == "--rounds" ||
                             word == "--deadline" || word == "--caches" || word == "--best" ||
                             word == "--peer-seconds" || word == "--device-properties";
    if (takes_value && i + 1 == argc) return invalid_argument(word, " needs a value");
    if (word == "--caches") {
      const std::string_view name = argv[++i];
      const std::optional<Caches> caches = caches_from_name(name);
      if (!caches || *caches == Caches::kFlush)
        return invalid_argument("--caches: expected warm or rotate, found \"", name, "\"");
      options.caches = *caches;
    } else if (word == "--results") {
      options.results = argv[++i];
    } else if (word == "--json") {
      options.json = argv[++i];
    } else if (word == "--rounds") {
      ASSIGN_OR_RETURN(const double rounds, number(word, argv[++i], 5, 1000));
      options.rounds = static_cast<int>(rounds);
    } else if (word == "--best") {
      ASSIGN_OR_RETURN(const double best, number(word, argv[++i], 1, 10));
      options.best = static_cast<size_t>(best);
    } else if (word == "--check") {
      check = true;
    } else if (word == "--calibrate") {
      options.calibrate = true;
    } else if (word == "--deadline") {
      ASSIGN_OR_RETURN(options.deadline_s, number(word, argv[++i], 0.1, 86400));
    } else if (word == "--peer-seconds") {
      ASSIGN_OR_RETURN(options.peer_seconds, number(word, argv[++i], 0.1, 600));
    } else if (word == "--device-properties") {
      options.device_properties = argv[++i];
    } else if (word.starts_with("-") || !options.pack.empty()) {
      return invalid_argument("unexpected \"", word, "\"");
    } else {
      options.pack = word;
    }
  }
  if (!options.device_properties.empty()) {
    if (argc != 3) return invalid_argument("--device-properties FILE stands alone");
    return options;
  }
  if (options.pack.empty()) return invalid_argument("expected a pack");
  if (check && options.calibrate) return invalid_argument("--check times nothing, and --calibrate does");
  if (check) options.rounds = 0;
  return options;
}

// Ends the process when the device answers no more: a wait of the driver has no deadline of its own.
class Watchdog {
 public:
  // Counts `limit_s` for `what`, anew each time.
  Watchdog(std::string what, double limit_s)
      : what_(std::move(what)), limit_s_(limit_s), thread_([this] { watch(); }) {}
  void now(std::string what, double limit_s) {
    {
      const std::lock_guard lock(mutex_);
      what_ = std::move(what);
      limit_s_ = limit_s;
      ++turn_;
    }
    changed_.notify_all();
  }
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    for (int turn = turn_; !done_; turn = turn_) {
      const auto changed = [&] { return done_ || turn_ != turn; };
      if (changed_.wait_for(lock, duration<double>(limit_s_), changed)) continue;
      std::fprintf(stderr, "bench_gpu: the device has not answered within %.1f s: %s; run again\n", limit_s_,
                   what_.c_str());
      std::fflush(stdout);
      ::_exit(1);
    }
  }
  std::string what_;
  double limit_s_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
  bool done_ = false;
  std::thread thread_;
};

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

int report_error(const Status& status) {
  std::fprintf(stderr, "bench_gpu: %s\n", status.message().c_str());
  return status.code() == StatusCode::kInvalidArgument ? 2 : 1;
}

// A library that computes must be right. One that is not there or cannot be told of the task is no failure.
bool all_right(const RunReport& run) {
  return run.stopped.empty() && std::all_of(run.tasks.begin(), run.tasks.end(), [](const TaskReport& t) {
           return t.error.empty() && !t.peer.failed &&
                  std::ranges::all_of(t.others, [](const OtherReport& o) { return o.error.empty(); });
         });
}

// All tasks, each printed and saved when it is done.
Status run_tasks(DeviceBench& bench, const PackFile& pack, const PackResults* results,
                 const Libraries& libraries, const Options& options, Watchdog& watchdog, RunReport& run) {
  const auto stop_at = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                                 duration<double>(options.deadline_s));
  watchdog.now(
      str("timing of ", pack.pack().tasks.size(), pack.pack().tasks.size() == 1 ? " task" : " tasks"),
      options.deadline_s + std::min(options.deadline_s, 10.0));
  ComparisonOptions how{.interleave = {.rounds = options.rounds, .fill_ns = run.fill_ns, .stop_at = stop_at},
                        .caches = options.caches,
                        .seed = run.seed};
  Comparison comparison(bench, pack, libraries, how);
  const size_t tasks = pack.pack().tasks.size();
  for (size_t t = 0; t < tasks && run.stopped.empty(); ++t) {
    if (t > 0 && steady_clock::now() >= stop_at) {
      run.stopped = str("the deadline is reached; ", tasks - t, " tasks are left");
      break;
    }
    TaskReport& task = run.tasks.emplace_back();
    // No task's search takes the time of those behind it.
    const double left_s = duration<double>(stop_at - steady_clock::now()).count();
    const double fair_s = kShareOfSearches * left_s / static_cast<double>(tasks - t);
    const Status device = comparison.run(t, fastest_candidates(pack, results, t, options.best),
                                         std::min(options.peer_seconds, fair_s), task);
    if (!device) run.stopped = str("the device failed: ", device.message());
    print_task(run, task, t + 1, tasks);
    if (!options.json.empty()) RETURN_IF_ERROR(write_json(run, options.json));
  }
  if (!options.json.empty()) RETURN_IF_ERROR(write_json(run, options.json));
  return Status::ok();
}

// A peak that the pack has no kernel for is told; Unavailable: the device failed.
Status measure_peaks(DeviceBench& bench, const PackFile& pack, RunReport& run) {
  const auto measure = [&](Probe probe, double& rate, std::string& missing) {
    const Result<double> found = probe_rate(bench, pack, probe, run.fill_ns);
    if (found.is_ok()) rate = *found;
    if (missing.empty()) missing = found.message();
    return found.status().code() == StatusCode::kUnavailable ? found.status() : Status::ok();
  };
  RETURN_IF_ERROR(measure(Probe::kMultiplyAdds, run.ffma_gflops, run.ffma_missing));
  RETURN_IF_ERROR(measure(Probe::kBrainTiles, run.mma_16bit_gops, run.mma_missing));
  RETURN_IF_ERROR(measure(Probe::kByteTiles, run.mma_int8_gops, run.mma_missing));
  return measure(Probe::kTf32Tiles, run.mma_tf32_gops, run.tf32_missing);
}

// What cuDNN asks of the first device, as a file.
Status save_device_properties(const std::string& path) {
  Watchdog watchdog("opening it and asking cuDNN about it", kMostOpeningS);
  RETURN_IF_ERROR(cuda_available());
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceBench> bench, DeviceBench::open(0));
  const Result<Cudnn> cudnn = Cudnn::open(bench->stream());
  if (!cudnn.is_ok()) return cudnn.status();
  ASSIGN_OR_RETURN(const std::string json, cudnn_device_properties(cudnn->handle()));
  RETURN_IF_ERROR(write_text(json + "\n", path));
  std::printf("cuDNN %s, %s: %s\n", cudnn->version().c_str(), fingerprint(bench->device()).c_str(),
              path.c_str());
  return Status::ok();
}

Result<bool> bench_pack(const Options& options) {
  ASSIGN_OR_RETURN(const PackFile pack, PackFile::open(options.pack));
  std::optional<PackResults> results;
  if (!options.results.empty()) {
    ASSIGN_OR_RETURN(results, PackResults::load(options.results, pack));
  }
  Watchdog watchdog("opening it and the copy that shows its bandwidth", kMostOpeningS);
  RETURN_IF_ERROR(cuda_available());
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceBench> bench, DeviceBench::open(0));
  const Libraries libraries{Cublas::open(bench->stream()), CublasLt::open(bench->stream()),
                            Cudnn::open(bench->stream())};
  const auto version_of = [](const auto& library) {
    return library.is_ok() ? library->version() : library.message();
  };
  RunReport run{.date = utc_now(),
                .device = bench->device(),
                .cublas = version_of(libraries.cublas),
                .cublaslt = version_of(libraries.cublaslt),
                .cudnn = version_of(libraries.cudnn),
                .pack = pack.id(),
                .pack_about = pack.pack().about,
                .caches = options.caches,
                .rounds = options.rounds,
                .fill_ns = pack.pack().plan.min_repeat_ms * 1e6,
                .seed = kBootstrapSeed};
  if (options.rounds > 0) {
    ASSIGN_OR_RETURN(run.copy_gbps, copy_rate(*bench, run.fill_ns));
    RETURN_IF_ERROR(measure_peaks(*bench, pack, run));
  }
  print_head(run);
  if (options.calibrate) {
    ASSIGN_OR_RETURN(run.calibration, calibrate(*bench, pack));
    print_calibration(*run.calibration);
    if (!options.json.empty()) RETURN_IF_ERROR(write_json(run, options.json));
    return true;
  }
  RETURN_IF_ERROR(run_tasks(*bench, pack, results ? &*results : nullptr, libraries, options, watchdog, run));
  print_summary(run);
  return all_right(run);
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  const tuner::Result<tuner::Options> options = tuner::parse(argc, argv);
  if (!options.is_ok()) {
    std::fprintf(
        stderr,
        "bench_gpu: %s\nusage: bench_gpu PACK [--results results.jsonl] [--best N] [--rounds N] "
        "[--caches warm|rotate] [--json FILE] [--deadline S] [--peer-seconds S] [--check | --calibrate]\n"
        "       bench_gpu --device-properties FILE\n",
        options.message().c_str());
    return 2;
  }
  if (!options->device_properties.empty()) {
    const tuner::Status saved = tuner::save_device_properties(options->device_properties);
    return saved ? 0 : tuner::report_error(saved);
  }
  const tuner::Result<bool> all_right = tuner::bench_pack(*options);
  if (!all_right.is_ok()) return tuner::report_error(all_right.status());
  return *all_right ? 0 : 1;
}
