#include "measure_server/runner/device_candidate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/runtime/nvml.h"
#include "measure_server/runner/device_kernel.h"
#include "measure_server/runner/device_operands.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/runner/reference_file.h"
#include "measure_server/runner/sampling.h"

namespace tuner {

using cuda::CallStatus;

namespace {

// Samples of at least so many calls replay a graph: calls of more than 1 / 64 of a sample, 16 us as a rule,
// hide the queuing of the next.
constexpr int64_t kReplayFrom = 64, kCallsOfGraph = 64;

class DeviceRun final : public DeviceRacer {
 public:
  DeviceRun(DeviceBench& bench, const RunRequest& request, const std::function<void(Phase)>& entered)
      : bench_(bench), r_(request), entered_(entered) {
    reply_.id = r_.id;
  }

  RunReply run() {
    begin();
    steps();
    return answer();
  }

  RunReply take_turn(int samples, std::vector<double>& pulses_ns) override {
    reply_.run_ns.clear();
    reply_.cpu_ns.clear();
    reply_.disturbed = 0;
    reply_.pulse_ns = 0;
    if (calls_ > 0 ? time_turn(samples, pulses_ns) : first_turn()) verdict(Outcome::kOk, "");
    return answer();
  }
  RunReply finish() override {
    reply_.run_ns.clear();
    reply_.cpu_ns.clear();
    reply_.device_state = device_state(bench_.device().uuid);
    if (last_run("") && untouched()) verdict(Outcome::kOk, "");
    return answer();
  }
  bool poisoned() const override { return poisoned_; }

 private:
  void begin() {
    started_ns_ = monotonic_ns();
    use_cpus(r_.cpus);
  }
  RunReply answer() {
    if (!error_.empty()) {
      RunReply trouble;
      trouble.id = r_.id;
      trouble.error = error_;
      trouble.device_sick = device_sick_;
      return trouble;
    }
    reply_.run_ms = (monotonic_ns() - started_ns_) * 1e-6;
    return reply_;
  }

  // Each step returns false when the verdict stands.
  void steps() {
    if (!prepare() || !sound(bench_.sentinel(reply_.sentinel_before_ns))) return;
    enter(Phase::kFirstRun);
    if (!run_once() || !check("")) return;
    enter(Phase::kTiming);
    if (!time()) return;
    reply_.device_state = device_state(bench_.device().uuid);
    if (!samples_.cut && !last_run(" (right in the first run, wrong in the run after timing)")) return;
    if (!untouched() || !sound(bench_.sentinel(reply_.sentinel_after_ns))) return;
    verdict(Outcome::kOk, "");
    reply_.run_ns = std::move(samples_.run_ns);
    reply_.cpu_ns = std::move(samples_.cpu_ns);
    reply_.cut = samples_.cut;
  }

  bool last_run(const char* when) {
    enter(Phase::kLastRun);
    return run_once() && check(when);
  }

  // --- turns ---

  // Its answer was right in its trial, and is compared once a heat, in the end: that takes long where it is
  // large.
  bool first_turn() {
    begin();
    if (!prepare()) return false;
    enter(Phase::kFirstRun);
    if (!run_once()) return false;
    enter(Phase::kTiming);
    double call_ns = 0;
    if (!warm_up(fill_ns() / kWarmUpSteps, kWarmUpNs, /*hopeless_ns=*/0, take(), &call_ns)) return false;
    calls_ = calls_that_fill(fill_ns(), call_ns);
    return true;
  }

  // The finalists push each other's operands out of the caches, so a turn warms up first.
  bool time_turn(int samples, std::vector<double>& pulses_ns) {
    enter(Phase::kTiming);
    double before_ns = 0;
    if (!warm_up(fill_ns() / kWarmUpSteps, kWarmUpNs, /*hopeless_ns=*/0, take()) || !pulse(before_ns))
      return false;
    reply_.pulse_ns = before_ns;
    for (int i = 0; i < samples; ++i) {
      Sample s;
      double after_ns = 0;
      if (!sample(calls_, s) || !pulse(after_ns)) return false;
      reply_.run_ns.push_back(s.run_ns / static_cast<double>(calls_));
      reply_.cpu_ns.push_back(s.cpu_ns / static_cast<double>(calls_));
      pulses_ns.push_back((before_ns + after_ns) / 2);
      reply_.disturbed += calm(before_ns) && calm(after_ns) ? 0 : 1;
      reply_.pulse_ns = std::min(reply_.pulse_ns, after_ns);
      before_ns = after_ns;
    }
    return true;
  }
  bool pulse(double& ns) { return r_.patience_ms <= 0 || sound(bench_.pulse(ns)); }
  bool calm(double pulse_ns) const {
    return r_.calm_pulse_ns <= 0 || pulse_ns <= kPulseDisturbed * r_.calm_pulse_ns;
  }
  double fill_ns() const { return r_.min_repeat_ms * 1e6; }
  TakeSample take() {
    return [this](int64_t calls, Sample& s) { return sample(calls, s); };
  }

  void enter(Phase phase) {
    phase_ = phase;
    entered_(phase);
  }
  bool verdict(Outcome outcome, const std::string& message) {
    reply_.outcome = outcome;
    reply_.message = message;
    return false;
  }
  bool trouble(const std::string& why) {
    error_ = why;
    return false;
  }
  // A driver call: whose fault it is when it fails. Most faults of a kernel show at the next call that waits.
  bool sound(const CallStatus& status) {
    if (status) return true;
    if (status.code() == cuda::kOutOfMemory) return verdict(Outcome::kOutOfMemory, status.message());
    poisoned_ = true;
    device_sick_ = status.is_of_device();
    if (device_sick_) return trouble("device: " + status.message());
    if (phase_ == Phase::kLoading) {
      device_sick_ = true;
      return trouble("device: before anything of this candidate ran: " + status.message());
    }
    return verdict(Outcome::kCrashed, str(status.message(), " while ", phase_name(phase_)));
  }
  // The driver takes no code of this kind: that says nothing about the candidate.
  bool for_others(const CallStatus& status) {
    return trouble(str("the device takes no code of \"", manifest().target, "\": ", status.message()));
  }
  static bool is_of_image(const CallStatus& status) {
    return status.code() == cuda::kInvalidImage || status.code() == cuda::kNotFound ||
           status.code() == cuda::kInvalidValue || status.code() == cuda::kInvalidSource ||
           status.code() == cuda::kInvalidPtx;
  }
  // Loading, which refuses what is no cubin. Where the driver is lazy, a launch loads.
  bool loaded(const CallStatus& status) {
    if (status.is_of_code_for_others()) return for_others(status);
    return is_of_image(status) ? verdict(Outcome::kBuildError, "cannot be loaded: " + status.message())
                               : sound(status);
  }
  // The first launches, which a device refuses at once when it can never run them. What else they answer is a
  // fault of the launch before.
  bool launched(const CallStatus& status) {
    if (status.code() == cuda::kInvalidImage) return loaded(status);
    if (status.is_of_code_for_others()) return for_others(status);
    if (status.code() != cuda::kInvalidValue && status.code() != cuda::kLaunchOutOfResources &&
        status.code() != cuda::kNotSupported)
      return sound(status);
    return verdict(Outcome::kBuildError, "cannot be launched: " + status.message());
  }

  // --- before the first run ---

  bool prepare() {
    enter(Phase::kLoading);
    Result<Artifact> artifact = load_artifact(r_.artifact_dir, r_.digest);
    if (!artifact.is_ok()) return trouble(artifact.message());
    artifact_ = *std::move(artifact);
    const int64_t needed = DeviceOperands::bytes_of_set(manifest());
    if (needed < 0) return trouble("manifest: impossible sizes of operands");
    if (needed > r_.memory_limit_bytes)
      return verdict(Outcome::kOutOfMemory, str("operands and workspaces take ", gib_text(needed), ", limit ",
                                                gib_text(r_.memory_limit_bytes)));
    if (!load_checks() || !read_references() || !load()) return false;
    const int sets =
        r_.caches == Caches::kRotate
            ? DeviceOperands::sets_for_rotation(manifest(), bench_.device().l2_bytes, r_.memory_limit_bytes)
            : 1;
    CallStatus made = DeviceOperands::create(manifest(), sets, bench_.stream(), operands_);
    if (made.code() == cuda::kOutOfMemory && checks_ != nullptr) {
      checks_->forget_originals();
      made = DeviceOperands::create(manifest(), sets, bench_.stream(), operands_);
    }
    if (!sound(made)) return false;
    for (const DeviceOperands::Input& input : DeviceOperands::inputs_of(manifest()))
      if (!supply(input)) return false;
    return launched(kernel_.bind(operands_)) && pack();
  }

  // Constants are packed once, untimed. Copies show in the end whether a call wrote to what was packed.
  bool pack() {
    if (manifest().pack_launches.empty()) return true;
    enter(Phase::kPacking);
    for (int set = 0; set < operands_.sets(); ++set)
      if (!launched(kernel_.pack(set, bench_.stream()))) return false;
    packed_.resize(manifest().args.size());
    for (size_t i = 0; i < packed_.size(); ++i) {
      const int64_t bytes = manifest().args[i].bytes;
      if (is_packed(i) &&
          !(sound(cuda::DeviceMemory::allocate(bytes, packed_[i])) &&
            sound(cuda::copy_on_device(packed_[i].address(), operands_.address(0, static_cast<int>(i)), bytes,
                                       bench_.stream()))))
        return false;
    }
    return sound(bench_.stream().synchronize());
  }

  bool is_output(size_t i) const { return manifest().args[i].role == BufferRole::kOutput; }
  bool is_packed(size_t i) const { return manifest().args[i].role == BufferRole::kPacked; }

  bool load_checks() {
    if (r_.checker.empty()) return true;
    const Result<std::string> cubin = read_whole(r_.checker);
    if (!cubin.is_ok()) return trouble("the checking kernels: " + cubin.message());
    const CallStatus status = bench_.checks(r_.checker, *cubin, checks_);
    if (is_of_image(status) || status.is_of_code_for_others())
      return trouble("the pack's checking kernels cannot be loaded here: " + status.message());
    return sound(status);
  }

  // The bytes of a data file; valid as long as the bench keeps the file, which files_ sees to.
  Result<std::string_view> file(const std::vector<RunRequest::Data>& data, const ArgInfo& arg) {
    for (const RunRequest::Data& d : data) {
      if (d.arg != arg.name) continue;
      ASSIGN_OR_RETURN(std::shared_ptr<SealedFile> found,
                       bench_.files().get(d.path, SealedFile::Placement::kAtStart));
      files_.push_back(found);
      return found->map_hidden_from_children();
    }
    return failed("run ", r_.id, ": no data file for ", arg.role, " ", arg.name);
  }

  // Inputs are read when they are needed: most are on the device already.
  bool input(const ArgInfo& a, std::string_view& bytes) {
    const Result<std::string_view> found = file(r_.inputs, a);
    if (!found.is_ok()) return trouble(found.message());
    bytes = *found;
    if (static_cast<int64_t>(bytes.size()) == a.bytes) return true;
    return trouble(str("the data file of ", a.role, " ", a.name, " has ", bytes.size(),
                       " bytes, the artifact wants ", a.bytes));
  }

  // Finds the original of an input on the device; `from` 0: there is none.
  bool original(const ArgInfo& a, cuda::DevicePtr& from) {
    from = 0;
    if (checks_ == nullptr) return true;
    for (const RunRequest::Data& d : r_.inputs) {
      if (d.arg != a.name) continue;
      const Result<std::string> identity = SealedFiles::identity_of(d.path);
      if (!identity.is_ok()) return trouble(identity.message());
      original_name_ = str(d.path, " ", *identity, " ", a.bytes);
      return sound(checks_->original(original_name_, bench_.stream(), from));
    }
    return true;
  }

  bool supply(const DeviceOperands::Input& in) {
    cuda::DevicePtr from = 0;
    if (!original(in.info, from)) return false;
    std::string_view bytes;
    if (from == 0 && !input(in.info, bytes)) return false;
    if (from == 0 && checks_ != nullptr &&
        (!sound(checks_->keep(original_name_, bytes, bench_.stream())) || !original(in.info, from)))
      return false;
    return sound(from != 0 ? operands_.fill(in.operand, from, bench_.stream())
                           : operands_.upload(in.operand, bytes, bench_.stream()));
  }

  bool read_references() {
    for (const ArgInfo& a : manifest().args) {
      references_.emplace_back();
      if (a.role == BufferRole::kInput || a.role == BufferRole::kConstant || a.role == BufferRole::kPacked)
        continue;
      if (a.role != BufferRole::kOutput)
        return trouble(str("manifest: argument ", a.name, " has role \"", a.role, "\""));
      const Result<std::string_view> bytes = file(r_.references, a);
      if (!bytes.is_ok()) return trouble(bytes.message());
      Result<ReferenceView> parsed = parse_reference(*bytes);
      if (!parsed.is_ok()) return trouble(str("the reference of ", a.name, ": ", parsed.message()));
      // A kernel may take the same elements as fewer dimensions: pixels of an image as one.
      const auto count = [](const std::vector<int64_t>& shape) {
        return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
      };
      if (count(parsed->shape) != count(a.shape) || a.bytes != count(a.shape) * dtype_bytes(a.dtype))
        return trouble(str("the reference's size is not that of output ", a.name, " in the manifest"));
      references_.back() = *std::move(parsed);
    }
    return true;
  }

  bool load() { return loaded(DeviceKernel::load(artifact_, kernel_)); }

  // --- running ---

  CallStatus call(int set) { return kernel_.call(set, bench_.stream()); }

  bool run_once() {
    if (!sound(operands_.poison(bench_.stream())) || !sound(bench_.stream().synchronize())) return false;
    return (phase_ == Phase::kFirstRun ? launched(call(0)) : sound(call(0))) &&
           sound(bench_.stream().synchronize());
  }

  bool time() {
    if (!sound(operands_.poison(bench_.stream()))) return false;
    const SamplingOptions options{.fill_ns = fill_ns(),
                                  .repeats = r_.repeats,
                                  .precision = r_.precision,
                                  // Slow kernels: the run after timing must still fit.
                                  .stop_at_ns = started_ns_ + r_.run_timeout_s * 0.5e9,
                                  .cut_above_ns = r_.cut_above_ns,
                                  .slow_above_ns = r_.slow_above_ns};
    return take_samples(options, take(), samples_);
  }

  bool sample(int64_t calls, Sample& s) {
    const double cpu_ns = thread_cpu_ns();
    const bool taken = r_.caches == Caches::kFlush ? sample_flushed(calls, s) : sample_in_one(calls, s);
    s.cpu_ns = thread_cpu_ns() - cpu_ns;
    if (taken && !(s.run_ns > 0)) {
      poisoned_ = device_sick_ = true;
      return trouble(str("device: its clock gave ", s.run_ns, " ns for ", calls, " calls"));
    }
    return taken;
  }

  // All calls between two events: what a stream of calls takes, launches included where they are slower.
  bool sample_in_one(int64_t calls, Sample& s) {
    if (calls >= kReplayFrom && is_recorded()) return sample_replayed(calls, s);
    if (!sound(bench_.begin())) return false;
    for (int64_t i = 0; i < calls; ++i)
      if (!sound(call(static_cast<int>(next_set_++ % operands_.sets())))) return false;
    return sound(bench_.end()) && sound(bench_.elapsed_ns(s.run_ns));
  }

  // Short kernels: many calls are queued as one, so that the host's queuing is not in their time.
  bool sample_replayed(int64_t calls, Sample& s) {
    const int64_t replays = (calls + graph_calls_ - 1) / graph_calls_;
    // The first launch brings the graph to the device.
    if (!std::exchange(is_replayed_, true) &&
        (!sound(graph_.launch(bench_.stream())) || !sound(bench_.stream().synchronize())))
      return false;
    if (!sound(bench_.begin())) return false;
    for (int64_t i = 0; i < replays; ++i)
      if (!sound(graph_.launch(bench_.stream()))) return false;
    if (!sound(bench_.end()) || !sound(bench_.elapsed_ns(s.run_ns))) return false;
    s.run_ns *= static_cast<double>(calls) / static_cast<double>(replays * graph_calls_);
    return true;
  }

  // A graph in which every set has its turn equally often. What cannot be recorded is queued call by call.
  bool is_recorded() {
    if (graph_calls_ > 0) return graph_.recorded();
    const int64_t sets = operands_.sets();
    graph_calls_ = (kCallsOfGraph + sets - 1) / sets * sets;
    const auto queue = [this] {
      CallStatus status;
      for (int64_t i = 0; i < graph_calls_ && status; ++i)
        status = call(static_cast<int>(i % operands_.sets()));
      return status;
    };
    (void)cuda::DeviceGraph::record(bench_.stream(), queue, graph_);
    return graph_.recorded();
  }

  // Each call between events of its own: the flush before it is not timed.
  bool sample_flushed(int64_t calls, Sample& s) {
    s.run_ns = 0;
    for (int64_t i = 0; i < calls; ++i) {
      double ns = 0;
      if (!sound(bench_.flush_l2()) || !sound(bench_.begin()) || !sound(call(0)) || !sound(bench_.end()) ||
          !sound(bench_.elapsed_ns(ns)))
        return false;
      s.run_ns += ns;
    }
    return true;
  }

  // --- judging ---

  // The guards first: a kernel that writes beside its output is told so, whatever the output holds.
  bool check(const char* when) {
    std::string damaged;
    if (!sound(operands_.check_guards(damaged))) return false;
    if (!damaged.empty()) {
      poisoned_ = true;  // nobody knows what else it wrote to
      return verdict(Outcome::kCrashed, str("wrote outside ", damaged, " while ", phase_name(phase_)));
    }
    const double begin_ns = monotonic_ns();
    for (size_t i = 0; i < manifest().args.size(); ++i) {
      if (!is_output(i)) continue;
      CheckResult result;
      if (!compare(i, result)) return false;
      reply_.max_error = std::max(reply_.max_error, result.max_error);
      if (!result.ok) return verdict(Outcome::kWrongAnswer, result.message + when);
    }
    reply_.check_ms += (monotonic_ns() - begin_ns) * 1e-6;
    return true;
  }

  // On the device what is kept as checksums, here what is kept whole and is therefore small.
  bool compare(size_t i, CheckResult& result) {
    const ArgInfo& a = manifest().args[i];
    const int operand = static_cast<int>(i);
    if (checks_ != nullptr && references_[i].kind == ReferenceKind::kChecksums &&
        DeviceChecks::knows(a.dtype)) {
      OutputSums sums;
      if (!sound(
              checks_->sums(operands_.address(0, operand), a.dtype, references_[i], bench_.stream(), sums)))
        return false;
      result = check_sums(references_[i], sums, r_.check, a.name);
      return true;
    }
    if (!sound(operands_.download(operand, bytes_))) return false;
    result = check_output(references_[i], bytes_.data(), a.dtype, r_.check, a.name);
    return true;
  }

  bool untouched() {
    for (size_t i = 0; i < manifest().args.size(); ++i) {
      if (is_output(i)) continue;
      bool same = false;
      if (!unchanged(i, same)) return false;
      if (!same) return verdict(Outcome::kCrashed, str("wrote to input ", manifest().args[i].name));
    }
    return true;
  }

  bool unchanged(size_t i, bool& same) {
    const ArgInfo& a = manifest().args[i];
    const int operand = static_cast<int>(i);
    cuda::DevicePtr from = 0;
    if (is_packed(i))
      from = packed_[i].address();
    else if (!original(a, from))
      return false;
    if (from != 0 && checks_ != nullptr)
      return sound(checks_->equal(operands_.address(0, operand), from, a.bytes, bench_.stream(), same));
    if (!sound(operands_.download(operand, bytes_))) return false;
    std::string_view bytes;
    std::string before;
    if (is_packed(i)) {
      before.resize(static_cast<size_t>(a.bytes));
      if (!sound(cuda::copy_to_host(before.data(), from, a.bytes))) return false;
      bytes = before;
    } else if (!input(a, bytes)) {
      return false;
    }
    same = bytes_ == bytes;
    return true;
  }

  const Manifest& manifest() const { return artifact_.manifest; }

  DeviceBench& bench_;
  const RunRequest r_;
  const std::function<void(Phase)> entered_;
  RunReply reply_;
  std::string error_;
  bool poisoned_ = false, device_sick_ = false;
  Phase phase_ = Phase::kStarting;
  double started_ns_ = 0;
  Artifact artifact_;
  std::vector<std::shared_ptr<SealedFile>> files_;  // kept while they are read
  std::vector<ReferenceView> references_;           // by argument; empty: an input
  DeviceChecks* checks_ = nullptr;                  // null: everything is compared here
  std::string original_name_;                       // of the input looked for last
  DeviceKernel kernel_;
  DeviceOperands operands_;
  std::vector<cuda::DeviceMemory> packed_;  // by argument: copies of what was packed
  cuda::DeviceGraph graph_;                 // of calls
  bool is_replayed_ = false;
  int64_t calls_ = 0;        // of a sample of a turn; 0: it has had no turn
  int64_t graph_calls_ = 0;  // 0: nobody has tried to record them
  Samples samples_;
  int64_t next_set_ = 0;
  std::string bytes_;  // copied back
};

}  // namespace

std::unique_ptr<DeviceRacer> race_on_device(DeviceBench& bench, const RunRequest& request,
                                            const std::function<void(Phase)>& entered) {
  return std::make_unique<DeviceRun>(bench, request, entered);
}

RunReply run_on_device(DeviceBench& bench, const RunRequest& request,
                       const std::function<void(Phase)>& entered, bool& poisoned) {
  DeviceRun run(bench, request, entered);
  RunReply reply = run.run();
  poisoned = run.poisoned();
  return reply;
}

}  // namespace tuner
