#include "measure_server/runner/run_pack.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "compiler_core/base/clock.h"
#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/scratch_folder.h"
#include "measure_server/runner/device_host.h"
#include "measure_server/runner/hardware.h"
#include "measure_server/runner/pack_data.h"
#include "measure_server/runner/pack_file.h"
#include "measure_server/runner/pack_host.h"
#include "measure_server/runner/pack_results.h"
#include "measure_server/runner/runner_client.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using std::chrono::duration;
using std::chrono::steady_clock;

constexpr int kSickDeviceTries = 10;
// Enough that preparing a task's data is a small part of its turn.
constexpr size_t kCandidatesPerTurn = 4;
// This many refusals to load, and nothing that loads, are the host's fault.
constexpr size_t kUnloadableToStop = 3;
constexpr double kProgressEveryS = 2;

volatile sig_atomic_t interrupted = 0;

void on_interrupt(int) { interrupted = 1; }

std::string microseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g us", ns / 1000);
  return text;
}

// Why a run ended before its plan did.
enum class Stop { kNo, kDeadline, kInterrupted, kTrouble };

class PackRun {
 public:
  PackRun(const PackFile& pack, PackResults& results, RunnerClient& runner, const ProbeReply& probe,
          fs::path folder, double deadline_s)
      : pack_(pack),
        results_(results),
        runner_(runner),
        probe_(probe),
        folder_(std::move(folder)),
        end_(seconds_from_now(deadline_s)),
        data_(pack, folder_) {
    char host[256] = "unknown";
    ::gethostname(host, sizeof host - 1);
    host_ = host;
  }

  Stop run() {
    const size_t tasks = pack_.pack().tasks.size();
    std::vector<std::vector<size_t>> left(tasks);
    for (size_t t = 0; t < tasks; ++t)
      for (size_t c = 0; c < pack_.pack().tasks[t].candidates.size(); ++c) left[t].push_back(c);
    for (size_t round = 0; round < plan().rounds.size(); ++round) {
      if (const Stop stop = measure_in_turns(round, left); stop != Stop::kNo) return stop;
      for (size_t t = 0; t < tasks; ++t) left[t] = survivors(t, round, left[t]);
    }
    return unloadable_.empty() ? Stop::kNo : none_loads();
  }
  const std::string& trouble() const { return trouble_; }

 private:
  const PackPlan& plan() const { return pack_.pack().plan; }
  const PackLimits& limits_of(size_t task) const { return pack_.pack().limits_of(pack_.pack().tasks[task]); }
  double left_s() const { return -seconds_since(end_); }
  Stop in_trouble(const Status& status) {
    trouble_ = status.message();
    return Stop::kTrouble;
  }

  // The right ones, fastest first. One that was cut has one sample, which ranks it well enough.
  std::vector<size_t> survivors(size_t task, size_t round, const std::vector<size_t>& candidates) const {
    std::vector<size_t> right;
    for (const size_t c : candidates)
      if (const PackOutcome* o = results_.find(task, c, round); o != nullptr && o->ok) right.push_back(c);
    std::stable_sort(right.begin(), right.end(), [&](size_t a, size_t b) {
      return results_.find(task, a, round)->time_ns < results_.find(task, b, round)->time_ns;
    });
    const PackRound& r = plan().rounds[round];
    auto kept = static_cast<size_t>(std::ceil(r.keep * static_cast<double>(right.size())));
    if (r.keep_at_most > 0) kept = std::min(kept, static_cast<size_t>(r.keep_at_most));
    right.resize(std::min(right.size(), std::max<size_t>(kept, 1)));
    return right;
  }

  // A few of each task in turn: whenever the deadline comes, and however the device's clock drifts, every
  // task has had its share.
  Stop measure_in_turns(size_t round, const std::vector<std::vector<size_t>>& left) {
    std::vector<size_t> next(left.size(), 0);
    for (bool more = true; more;) {
      more = false;
      for (size_t t = 0; t < left.size(); ++t) {
        const size_t end = std::min(next[t] + kCandidatesPerTurn, left[t].size());
        for (; next[t] < end; ++next[t]) {
          const size_t c = left[t][next[t]];
          if (results_.find(t, c, round) != nullptr) continue;
          if (interrupted != 0) return Stop::kInterrupted;
          if (left_s() < 0.1) return Stop::kDeadline;
          if (const Stop stop = measure_one(t, c, round); stop != Stop::kNo) return stop;
          progress(t, round, next[t] + 1, left[t]);
        }
        more = more || end < left[t].size();
      }
    }
    return Stop::kNo;
  }

  Stop measure_one(size_t task, size_t candidate, size_t round) {
    const Result<Artifact> artifact = pack_.artifact(task, candidate);
    if (!artifact.is_ok()) return in_trouble(artifact.status());
    const Result<std::string> digest = save_artifact(*artifact, folder_.string());
    if (!digest.is_ok()) return in_trouble(digest.status());
    RunRequest request = base_request(task, round, artifact->manifest);
    if (const Status status = data_.prepare(task, request); !status.is_ok()) return in_trouble(status);
    request.digest = *digest;
    Result<RunReply> reply = ask(request, limits_of(task).run_timeout_s);
    remove_artifact(folder_.string(), *digest);
    if (!reply.is_ok()) return in_trouble(reply.status());
    // It was given less than its time: that says nothing about it.
    if (reply->outcome == Outcome::kRunTimeout && request.run_timeout_s < limits_of(task).run_timeout_s)
      return Stop::kDeadline;
    return judge({task, candidate, round, std::move(request), *std::move(reply)});
  }

  struct Measured {
    size_t task = 0, candidate = 0, round = 0;
    RunRequest request;
    RunReply reply;
  };

  // As long as nothing at all has loaded here, a refusal to load may be this host's: it is held back, and
  // written once a kernel loads. So a host that is wrong in a way that nobody foresaw makes no failed trials.
  Stop judge(Measured measured) {
    const bool loads = measured.reply.outcome != Outcome::kBuildError;
    if (!loads && results_.count() == 0) {
      unloadable_.push_back(std::move(measured));
      return unloadable_.size() < kUnloadableToStop ? Stop::kNo : none_loads();
    }
    for (const Measured& held : unloadable_)
      if (const Status added = add(held); !added.is_ok()) return in_trouble(added);
    unloadable_.clear();
    const Status added = add(measured);
    return added.is_ok() ? Stop::kNo : in_trouble(added);
  }
  Status add(const Measured& m) {
    const Manifest& manifest = pack_.pack().tasks[m.task].candidates[m.candidate].artifact.manifest;
    return results_.add(m.task, m.candidate, m.round, m.request, m.reply, environment_of(m.task, manifest));
  }
  Stop none_loads() {
    const std::string& why = unloadable_.front().reply.message;
    return in_trouble(failed("not one of the first ", unloadable_.size(),
                             " kernels can be used here, so none was ", "recorded; the first ", why));
  }

  // A device in quarantine is asked again for a while; a runner that died is there again at once.
  Result<RunReply> ask(RunRequest& request, double timeout_s) {
    for (int i = 1;; ++i) {
      request.id = ++request_id_;
      request.run_timeout_s = std::max(0.1, std::min(timeout_s, left_s()));
      Result<RunReply> reply = runner_.run(request);
      if (reply.is_ok() || reply.status().code() != StatusCode::kUnavailable || i == kSickDeviceTries ||
          left_s() < 5 || interrupted != 0)
        return reply;
      if (i == 1) std::printf("waiting: %s\n", reply.message().c_str());
      std::fflush(stdout);
      std::this_thread::sleep_for(std::chrono::seconds(std::min(i, 5)));
    }
  }

  RunRequest base_request(size_t task, size_t round, const Manifest& manifest) const {
    RunRequest r;
    r.artifact_dir = folder_.string();
    r.check = pack_.pack().tasks[task].check;
    r.min_repeat_ms = plan().min_repeat_ms;
    r.repeats = plan().rounds[round].repeats;
    r.memory_limit_bytes = limits_of(task).memory_limit_bytes;
    r.cut_above_ns = plan().cut_factor * best_ns(task);
    r.caches = plan().caches;
    if (DeviceHost::takes(manifest)) r.device_uuid = probe_.devices.front().uuid;
    // The last CPUs, as under a worker.
    const std::vector<int> cpus = usable_cpus();
    const size_t n = std::min<size_t>(std::max(manifest.threads, 1), cpus.size());
    r.cpus.assign(cpus.end() - static_cast<std::ptrdiff_t>(n), cpus.end());
    return r;
  }

  double best_ns(size_t task) const {
    double best = 0;
    for (size_t c = 0; c < pack_.pack().tasks[task].candidates.size(); ++c)
      for (size_t round = 0; round < plan().rounds.size(); ++round)
        if (const PackOutcome* o = results_.find(task, c, round);
            o != nullptr && o->ok && (best == 0 || o->time_ns < best))
          best = o->time_ns;
    return best;
  }

  PackEnvironment environment_of(size_t task, const Manifest& manifest) const {
    // The type that is multiplied is the smallest: what is added to sums is as wide as they are.
    DType dtype = DType::kFloat32;
    for (const auto& input : pack_.pack().tasks[task].inputs)
      if (dtype_bytes(input.dtype) < dtype_bytes(dtype)) dtype = input.dtype;
    if (DeviceHost::takes(manifest) && !probe_.devices.empty())
      return {probe_.devices[0].fingerprint, host_, probe_.devices[0].peak_of(dtype)};
    return {probe_.hardware, host_, probe_.peaks.of(dtype, std::max(manifest.threads, 1))};
  }

  void progress(size_t task, size_t round, size_t done, const std::vector<size_t>& candidates) {
    const auto now = steady_clock::now();
    if (done < candidates.size() && duration<double>(now - told_).count() < kProgressEveryS) return;
    told_ = now;
    size_t right = 0;
    for (const size_t c : candidates)
      if (const PackOutcome* o = results_.find(task, c, round); o != nullptr && o->ok) ++right;
    const double best = best_ns(task);
    std::printf("task %zu of %zu, round %zu of %zu: %zu of %zu measured, %zu right, best %s; %.0f s left\n",
                task + 1, pack_.pack().tasks.size(), round + 1, plan().rounds.size(), done, candidates.size(),
                right, best > 0 ? microseconds(best).c_str() : "none", std::max(0.0, left_s()));
    std::fflush(stdout);
  }

  const PackFile& pack_;
  PackResults& results_;
  RunnerClient& runner_;
  const ProbeReply& probe_;
  const fs::path folder_;
  const steady_clock::time_point end_;
  std::string host_, trouble_;
  uint64_t request_id_ = 0;
  PackData data_;
  std::vector<Measured> unloadable_;  // held back, see judge()
  steady_clock::time_point told_{};
};

int report(const Status& status) {
  std::fprintf(stderr, "runner: %s\n", status.message().c_str());
  return status.code() == StatusCode::kInvalidArgument ? 2 : 1;
}

// The CPU's peaks are measured for kernels that run on it.
bool all_on_device(const PackFile& pack) {
  const auto on_device = [](const PackCandidate& c) { return DeviceHost::takes(c.artifact.manifest); };
  return std::ranges::all_of(pack.pack().tasks, [&](const PackTask& task) {
    return std::ranges::all_of(task.candidates, on_device);
  });
}

int conclude(Stop stop, const std::string& trouble, const PackResults& results, const std::string& output) {
  const char* how = stop == Stop::kNo         ? "done"
                    : stop == Stop::kDeadline ? "the deadline is reached; run again to continue"
                                              : "stopped; run again to continue";
  // What the runner itself says begins so already.
  const char* who = trouble.starts_with("runner: ") ? "" : "runner: ";
  if (stop == Stop::kTrouble) std::fprintf(stderr, "%s%s\n", who, trouble.c_str());
  std::printf("%s: %zu results in %s\n", how, results.count(), output.c_str());
  return stop == Stop::kTrouble || results.count() == 0 ? 1 : 0;
}

}  // namespace

int run_pack(const RunPackOptions& options) {
  const Result<PackFile> pack = PackFile::open(options.pack);
  if (!pack.is_ok()) return report(pack.status());
  // Now, not when a damaged part is reached: by then hours of a GPU may be spent, and going on cannot help.
  if (const Status whole = pack->verify(); !whole.is_ok()) return report(whole);
  Result<PackResults> results = PackResults::open(options.output, *pack);
  if (!results.is_ok()) return report(results.status());
  const double deadline_s = options.deadline_s > 0 ? options.deadline_s : pack->pack().plan.deadline_s;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);

  const auto begin = steady_clock::now();
  const Result<std::unique_ptr<RunnerClient>> runner = RunnerClient::start("/proc/self/exe");
  if (!runner.is_ok()) return report(runner.status());
  const Result<ProbeReply> probe = (*runner)->probe({.devices_only = all_on_device(*pack)});
  if (!probe.is_ok()) return report(probe.status());
  if (const Status host = check_host(*pack, *probe); !host.is_ok()) return report(host);
  const Result<std::unique_ptr<ScratchFolder>> folder = ScratchFolder::make("tuner-pack");
  if (!folder.is_ok()) return report(folder.status());
  const double spent_s = seconds_since(begin);
  PackRun run(*pack, *results, **runner, *probe, (*folder)->path(), deadline_s - spent_s);
  const Stop stop = run.run();
  return conclude(stop, run.trouble(), *results, options.output);
}

}  // namespace tuner
