#include "measure_server/runner/candidate.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "compiler_core/runtime/flush.h"
#include "compiler_core/runtime/kernel_loader.h"
#include "compiler_core/runtime/thread_pool.h"
#include "compiler_core/runtime/tuner_runtime.h"
#include "measure_server/runner/calm_gate.h"
#include "measure_server/runner/jail.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/runner/sampling.h"

namespace tuner {

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return "starting";
    case Phase::kLoading:
      return "loading";
    case Phase::kPacking:
      return "packing constants";
    case Phase::kFirstRun:
      return "in its first run";
    case Phase::kTiming:
      return "being timed";
    case Phase::kLastRun:
      return "in the run after timing";
    case Phase::kDone:
      return "done";
  }
  return "in an unknown phase";
}

namespace {

// Of this process and all its threads, from its start.
double page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_minflt + usage.ru_majflt);
}

class Child {
 public:
  explicit Child(const CandidatePlan& plan)
      : plan_(plan),
        m_(*plan.manifest),
        report_(*plan.report),
        gate_(plan.request->calm_pulse_ns, [this] { return slowest_pulse_ns(); }) {}

  void run() {
    if (plan_.in_turns) wait_for_turn(report_, 0);
    started_ns_ = monotonic_ns();
    if (!map_operands() || !load()) return;
    if (loaded_.pack_entry != nullptr) {
      enter(Phase::kPacking);
      if (!call(loaded_.pack_entry, pack_args_)) return;
    }
    enter(Phase::kFirstRun);
    if (!call(loaded_.entry, first_args_) || !healthy()) return;
    for (const auto& a : plan_.args)
      if (a.first != nullptr) a.first->make_read_only();
    enter(Phase::kTiming);
    poison();
    const double faults_before = page_faults();
    if (!(plan_.in_turns ? time_in_turns() : time())) return;
    tell("page_faults", page_faults() - faults_before);
    if (report_.cut == 0) {
      enter(Phase::kLastRun);
      poison();
      if (!call(loaded_.entry, last_args_)) return;
    }
    (void)healthy();
  }

 private:
  void enter(Phase phase) { report_.phase = phase; }
  bool setup_failed(const std::string& why) {
    std::snprintf(report_.setup_error, sizeof report_.setup_error, "%s", why.c_str());
    return false;
  }
  bool load_failed(const std::string& why) {
    std::snprintf(report_.load_error, sizeof report_.load_error, "%s", why.c_str());
    return false;
  }

  // Says a number of the run to whoever writes the record, by the name that its message gives it.
  void tell(const char* name, double value) {
    CandidateReport::Fact& fact = report_.fact[report_.facts++ % CandidateReport::kMaxFacts];
    std::snprintf(fact.name, sizeof fact.name, "%s", name);
    fact.value = value;
  }

  // Inputs are mapped once, though constants may stand in both argument lists; packed operands are made here.
  void* operand(const ArgInfo& info, const std::shared_ptr<SealedFile>& data, Status& status) {
    if (const auto it = by_name_.find(info.name); it != by_name_.end()) return it->second.data();
    Result<GuardedBuffer> buffer = data != nullptr
                                       ? GuardedBuffer::map_sealed(data->fd(), data->bytes())
                                       : GuardedBuffer::create(info.bytes, GuardedBuffer::Sharing::kPrivate);
    if (!buffer.is_ok()) {
      status = buffer.status();
      return nullptr;
    }
    // Packing must write all that the kernel reads: what it leaves out is NaN, not a lucky zero.
    if (data == nullptr) buffer->fill(poison_byte(info.dtype));
    return by_name_.emplace(info.name, *std::move(buffer)).first->second.data();
  }

  bool map_operands() {
    Status status;
    for (size_t i = 0; i < m_.args.size(); ++i) {
      const CandidatePlan::Operand& o = plan_.args[i];
      if (o.first != nullptr) {
        first_args_.push_back(o.first->data());
        last_args_.push_back(o.last->data());
      } else {
        first_args_.push_back(operand(m_.args[i], o.data, status));
        last_args_.push_back(first_args_.back());
      }
    }
    for (size_t i = 0; i < m_.pack_args.size(); ++i)
      pack_args_.push_back(operand(m_.pack_args[i], plan_.pack_args[i].data, status));
    const int64_t workspace = m_.workspace_bytes + m_.threads * m_.workspace_bytes_per_thread;
    if (status.is_ok() && workspace > 0) {
      Result<GuardedBuffer> buffer = GuardedBuffer::create(workspace, GuardedBuffer::Sharing::kPrivate);
      if (!buffer.is_ok()) return setup_failed(buffer.message());
      workspace_ = *std::move(buffer);
      workspace_.fill(0xFF);
    }
    return status.is_ok() || setup_failed(status.message());
  }

  bool load() {
    if (!plan_.jail->enter(plan_.runner, plan_.shared_object->fd()))
      return setup_failed("the child cannot be kept apart from this host as it was before");
    const std::vector<int>& cpus = plan_.request->cpus;
    try {
      pool_ = std::make_unique<ThreadPool>(m_.threads, cpus);
    } catch (const std::system_error& e) {
      return setup_failed(str("the kernel's ", m_.threads, " threads cannot be started: ", e.what()));
    }
    rt_ = pool_->runtime(workspace_.data());
    wake_threads();  // a thread that has not begun yet would make system calls of libc's that are not listed
    if (!plan_.jail->shut()) return setup_failed("the filter of system calls is refused");

    enter(Phase::kLoading);
    const KernelLoader* loader = find_kernel_loader(m_.kind);
    if (loader == nullptr)
      return load_failed(str("this runner has no loader for binaries of kind ", m_.kind));
    Result<LoadedKernel> loaded = loader->load(kCandidatePath, m_);
    if (!loaded) return load_failed(loaded.message());
    close(kCandidateFd);  // at level none; else the loader has closed it
    loaded_ = *std::move(loaded);
    return true;
  }

  bool call(KernelEntry kernel, const std::vector<void*>& args) {
    const int32_t status = kernel(args.data(), &rt_);
    if (status != 0) report_.kernel_status = status;
    return status == 0;
  }

  // What a kernel must leave alone: our descriptors, the slack around operands only this process sees.
  bool healthy() {
    if (!descriptors_untouched()) report_.descriptors_closed = 1;
    for (size_t i = 0; i < m_.args.size() && report_.damaged_operand == 0; ++i) {
      const auto it = by_name_.find(m_.args[i].name);
      if (it != by_name_.end() && plan_.args[i].data == nullptr && !it->second.intact())
        report_.damaged_operand = i + 1;
    }
    return report_.descriptors_closed == 0 && report_.damaged_operand == 0;
  }

  void poison() {
    for (size_t i = 0; i < m_.args.size(); ++i)
      if (plan_.args[i].last != nullptr) plan_.args[i].last->fill(poison_byte(m_.args[i].dtype));
  }

  // Constants as the kernel reads them: those that are packed ahead where they lie now.
  std::vector<std::pair<const void*, int64_t>> constants() const {
    std::vector<std::pair<const void*, int64_t>> found;
    for (size_t i = 0; i < m_.args.size(); ++i)
      if (m_.args[i].role == "constant" || m_.args[i].role == "packed")
        found.emplace_back(last_args_[i], m_.args[i].bytes);
    return found;
  }

  bool warm_sample(int64_t calls, Sample& s) {
    const double cpu = thread_cpu_ns(), wall = monotonic_ns();
    for (int64_t i = 0; i < calls; ++i)
      if (!call(loaded_.entry, last_args_)) return false;
    s.run_ns = monotonic_ns() - wall;
    s.cpu_ns = thread_cpu_ns() - cpu;
    return true;
  }

  // Only the calls are timed. The one before left all other operands warm.
  bool cold_sample(int64_t calls, Sample& s) {
    s = {};
    for (int64_t i = 0; i < calls; ++i) {
      for (const auto& [data, bytes] : constants_) flush_lines(data, bytes);
      Sample one;
      if (!warm_sample(1, one)) return false;
      s.run_ns += one.run_ns;
      s.cpu_ns += one.cpu_ns;
    }
    return true;
  }

  // Every thread has taken part in a loop when this returns, and spins for a moment.
  void wake_threads() {
    pool_->parallel_for(
        m_.threads, [](void*, int32_t, int32_t, int32_t) {}, nullptr);
  }

  // Of the threads the kernel runs on.
  double slowest_pulse_ns() {
    if (plan_.request->patience_ms <= 0) return 0;
    if (m_.threads == 1) return pulse_ns();
    pulses_ns_.assign(static_cast<size_t>(m_.threads), 0);
    pool_->parallel_for(
        m_.threads,
        [](void* pulses, int32_t begin, int32_t end, int32_t) {
          for (int32_t t = begin; t < end; ++t) static_cast<double*>(pulses)[t] = pulse_ns();
        },
        pulses_ns_.data());
    return *std::max_element(pulses_ns_.begin(), pulses_ns_.end());
  }

  void report_pulses() {
    report_.retaken = static_cast<uint32_t>(gate_.retaken());
    report_.pulse_ns = gate_.low_ns();
  }

  bool time() {
    const RunRequest& r = *plan_.request;
    constants_ = constants();
    const bool cold = r.cold_constants && !constants_.empty();
    const SamplingOptions options{
        .fill_ns = cold ? 0 : r.min_repeat_ms * 1e6,
        .repeats = std::min(r.repeats, static_cast<int>(CandidateReport::kMaxSamples)),
        .precision = r.precision,
        // Slow kernels: the run after timing must still fit, so sampling ends at half of the time limit.
        .stop_at_ns = started_ns_ + r.run_timeout_s * 0.5e9,
        .cut_above_ns = r.cut_above_ns,
        .slow_above_ns = r.slow_above_ns,
        .slow_by_cpu_time = m_.threads == 1,
        .gate = &gate_};
    gate_.be_patient(r.patience_ms * 1e6);
    Samples samples;
    const auto take = [&](int64_t calls, Sample& s) {
      return cold ? cold_sample(calls, s) : warm_sample(calls, s);
    };
    if (!take_samples(options, take, samples)) return false;
    std::copy(samples.run_ns.begin(), samples.run_ns.end(), report_.run_ns);
    std::copy(samples.cpu_ns.begin(), samples.cpu_ns.end(), report_.cpu_ns);
    report_.samples = static_cast<uint32_t>(samples.run_ns.size());
    report_.disturbed = static_cast<uint32_t>(samples.disturbed);
    report_.cut = samples.cut ? 1 : 0;
    report_pulses();
    return true;
  }

  // A turn warms up first: others have pushed the operands out of the caches. Then come the samples with warm
  // constants, then those with cold ones; one kind ranks, the other is information. The first turn only finds
  // how many calls a sample has.
  bool time_in_turns() {
    constants_ = constants();
    const double fill_ns = plan_.request->min_repeat_ms * 1e6;
    const auto take = [this](int64_t calls, Sample& s) { return warm_sample(calls, s); };
    const auto take_cold = [this](int64_t calls, Sample& s) { return cold_sample(calls, s); };
    const bool cold_ranks = plan_.request->cold_constants && !constants_.empty();
    const int others = constants_.empty() ? 0 : plan_.others_of_turn;
    const int warm = cold_ranks ? others : plan_.samples_of_turn;
    const int cold = cold_ranks ? plan_.samples_of_turn : others;
    Sample s;
    int64_t calls = 1;
    const auto keep = [&](bool ranks, double n) {
      if (ranks && !s.calm) report_.disturbed = 1;
      if (!ranks) {
        report_.other_ns[report_.other_samples++] = s.run_ns / n;
        return;
      }
      report_.run_ns[report_.samples] = s.run_ns / n;
      report_.pulses_ns[report_.samples] = s.pulse_ns;
      report_.cpu_ns[report_.samples++] = s.cpu_ns / n;
    };
    if (!warm_up(fill_ns / kWarmUpSteps, kWarmUpNs, /*hopeless_ns=*/0, take) ||
        !fill_sample(fill_ns, started_ns_ + plan_.request->run_timeout_s * 0.25e9, take, calls, s))
      return false;
    end_turn(report_);
    for (uint32_t turn = 1;
         report_.samples + static_cast<uint32_t>(plan_.samples_of_turn) <= CandidateReport::kMaxSamples &&
         report_.other_samples + static_cast<uint32_t>(others) <= CandidateReport::kMaxSamples;
         ++turn) {
      wait_for_turn(report_, turn);
      if (report_.last_turn != 0) break;
      report_.disturbed = 0;
      gate_.be_patient(plan_.request->patience_ms * 1e6);
      if (!warm_up(fill_ns / kWarmUpSteps, kWarmUpNs, /*hopeless_ns=*/0, take)) return false;
      for (int i = 0; i < warm; ++i) {
        if (!gate_.take(calls, take, s)) return false;
        keep(!cold_ranks, static_cast<double>(calls));
      }
      for (int i = 0; i < cold; ++i) {
        if (!gate_.take(1, take_cold, s)) return false;
        keep(cold_ranks, 1);
      }
      report_pulses();
      end_turn(report_);
    }
    return true;
  }

  const CandidatePlan& plan_;
  const Manifest& m_;
  CandidateReport& report_;
  double started_ns_ = 0;
  std::map<std::string, GuardedBuffer> by_name_;
  GuardedBuffer workspace_;
  std::vector<void*> first_args_, last_args_, pack_args_;
  std::vector<std::pair<const void*, int64_t>> constants_;  // with their sizes
  std::unique_ptr<ThreadPool> pool_;
  std::vector<double> pulses_ns_;  // of each thread
  CalmGate gate_;
  tuner_runtime rt_{};
  LoadedKernel loaded_;
};

}  // namespace

void run_candidate(const CandidatePlan& plan) {
  static Child child(plan);  // never destroyed: nothing runs between the last check and the end
  child.run();
  if (plan.report->phase == Phase::kLastRun || plan.report->cut != 0) plan.report->phase = Phase::kDone;
  plan.report->finished = plan.nonce;
  _exit(0);
}

}  // namespace tuner
