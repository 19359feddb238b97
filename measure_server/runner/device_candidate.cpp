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
#include "measure_server/runner/device_wary.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/runner/reference_file.h"
#include "measure_server/runner/sampling.h"

namespace tuner {

using cuda::CallStatus;

namespace {

// Samples of at least so many calls replay a graph: calls of more than 1 / 64 of a sample, 16 us as a rule,
// hide the queuing of the next.
constexpr int64_t kReplayFrom = 64, kCallsOfGraph = 64;
// Of a wary run: calls of a sample, each alone between events of its own; how long it warms up, and at least
// by how many calls.
constexpr int kWaryCalls = 2, kWaryWarmUpCalls = 2;
constexpr double kWaryWarmUpNs = 30e6;

class DeviceRun final : public DeviceRacer {
 public:
  DeviceRun(DeviceBench& bench, const RunRequest& request, const std::function<void(Phase)>& entered)
      : bench_(bench), r_(request), entered_(entered) {
    reply_.id = r_.id;
  }

  RunReply run() {
    begin();
    r_.wary ? wary_steps() : steps();
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

  // Each timed call begins with empty caches and spoilt outputs, on inputs of which elements may have
  // changed. Every second answer is compared. In the end the code is loaded anew, beside other addresses, and
  // is asked for the other inputs.
  void wary_steps() {
    constexpr char kTimed[] = " (right in the first run, wrong in a timed one)",
                   kElsewhere[] = " (right before, wrong at other addresses and on other inputs)";
    if (!prepare() || !prepare_other_set()) return;
    enter(Phase::kFirstRun);
    if (!run_once() || !check("") || !untouched()) return;
    enter(Phase::kTiming);
    if (!time_warily(kTimed)) return;
    reply_.device_state = device_state(bench_.device().uuid);
    enter(Phase::kLastRun);
    if (!untouched() || !move_elsewhere() || !run_once() || !check(kElsewhere) || !untouched()) return;
    if (const std::string doubt = wary_times_.doubt(); !doubt.empty()) {
      reply_.doubted = true;
      reply_.run_ns.clear();
      verdict(Outcome::kCrashed, "its times cannot be true: " + doubt);
      return;
    }
    reply_.input_sets = has_other_set() ? 2 : 1;
    verdict(Outcome::kOk, "");
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
    return make_operands();
  }

  int sets_of_operands() const {
    const int64_t l2 = bench_.device().l2_bytes, limit = r_.memory_limit_bytes;
    const int rotated = r_.caches == Caches::kRotate && !r_.wary
                            ? DeviceOperands::sets_for_rotation(manifest(), l2, limit)
                            : 1;
    return r_.wary ? 1 : std::max(rotated, DeviceOperands::sets_for_inouts(manifest(), l2, limit));
  }

  bool make_operands() {
    const int sets = sets_of_operands();
    CallStatus made = DeviceOperands::create(manifest(), sets, bench_.stream(), operands_);
    if (made.code() == cuda::kOutOfMemory && checks_ != nullptr) {
      checks_->forget_originals();
      made = DeviceOperands::create(manifest(), sets, bench_.stream(), operands_);
    }
    if (!sound(made)) return false;
    for (const DeviceOperands::Input& input : DeviceOperands::inputs_of(manifest()))
      if (!supply(input)) return false;
    if (!sound(operands_.keep_inouts(manifest(), bench_.stream()))) return false;
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

  bool is_output(size_t i) const { return is_result(manifest().args[i].role); }
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
    return input_of(on_other_set_ ? other_set().inputs : r_.inputs, a, bytes);
  }
  bool input_of(const std::vector<RunRequest::Data>& set, const ArgInfo& a, std::string_view& bytes) {
    // A set tells what is not the same in all of them.
    const bool told = std::ranges::find(set, a.name, &RunRequest::Data::arg) != set.end();
    const Result<std::string_view> found = file(told ? set : r_.inputs, a);
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

  bool read_references() { return read_references(r_.references, references_[0]); }
  bool read_references(const std::vector<RunRequest::Data>& set, std::vector<ReferenceView>& references) {
    for (const ArgInfo& a : manifest().args) {
      references.emplace_back();
      if (a.role == BufferRole::kInput || a.role == BufferRole::kConstant || a.role == BufferRole::kPacked)
        continue;
      if (!is_result(a.role))
        return trouble(str("manifest: argument ", a.name, " has role \"", a.role, "\""));
      const Result<std::string_view> bytes = file(set, a);
      if (!bytes.is_ok()) return trouble(bytes.message());
      Result<ReferenceView> parsed = parse_reference(*bytes);
      if (!parsed.is_ok()) return trouble(str("the reference of ", a.name, ": ", parsed.message()));
      // A kernel may take the same elements as fewer dimensions: pixels of an image as one.
      const auto count = [](const std::vector<int64_t>& shape) {
        return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
      };
      if (count(parsed->shape) != count(a.shape) || a.bytes != count(a.shape) * dtype_bytes(a.dtype))
        return trouble(str("the reference's size is not that of output ", a.name, " in the manifest"));
      references.back() = *std::move(parsed);
    }
    return true;
  }

  bool load() { return loaded(DeviceKernel::load(artifact_, kernel_)); }

  // --- running ---

  CallStatus call(int set) { return kernel_.call(set, bench_.stream()); }

  bool run_once() {
    if (!sound(operands_.poison(bench_.stream())) || !sound(operands_.restore_inouts(bench_.stream())) ||
        !sound(bench_.stream().synchronize()))
      return false;
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
    const bool taken = r_.caches == Caches::kFlush ? sample_flushed(calls, s)
                       : operands_.has_inouts()    ? sample_restored(calls, s)
                                                   : sample_in_one(calls, s);
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

  // What a call leaves in its inouts is not what the next one should find. So there are several sets, which
  // are restored untimed; then each has a call.
  bool sample_restored(int64_t calls, Sample& s) {
    s.run_ns = 0;
    for (int64_t done = 0; done < calls;) {
      const int64_t n = std::min<int64_t>(operands_.sets(), calls - done);
      double ns = 0;
      if (!sound(operands_.restore_inouts(bench_.stream())) || !sound(bench_.begin())) return false;
      for (int64_t i = 0; i < n; ++i)
        if (!sound(call(static_cast<int>(i)))) return false;
      if (!sound(bench_.end()) || !sound(bench_.elapsed_ns(ns))) return false;
      s.run_ns += ns;
      done += n;
    }
    return true;
  }

  // Each call between events of its own: the flush before it is not timed.
  bool sample_flushed(int64_t calls, Sample& s) {
    s.run_ns = 0;
    for (int64_t i = 0; i < calls; ++i) {
      double ns = 0;
      if (!sound(operands_.restore_inouts(bench_.stream())) || !flushed_call(ns)) return false;
      s.run_ns += ns;
    }
    return true;
  }
  bool flushed_call(double& ns) {
    return sound(bench_.flush_l2()) && sound(bench_.begin()) && sound(call(0)) && sound(bench_.end()) &&
           sound(bench_.elapsed_ns(ns));
  }

  // --- wary runs ---

  bool has_other_set() const { return !r_.others.empty(); }
  const RunRequest::InputSet& other_set() const { return r_.others[other_]; }

  bool prepare_other_set() {
    random_.seed(std::random_device()());
    spans_.assign(manifest().args.size(), std::nullopt);
    if (!has_other_set()) return true;
    other_ = r_.prove_with > 0 ? static_cast<size_t>(r_.prove_with) - 1 : random_() % r_.others.size();
    for (size_t i = 0; i < spans_.size(); ++i) {
      const ArgInfo& a = manifest().args[i];
      std::string_view one, other;
      if (a.role != BufferRole::kInput && a.role != BufferRole::kConstant) continue;
      if (!input_of(r_.inputs, a, one) || !input_of(other_set().inputs, a, other)) return false;
      spans_[i] = differing_span(one, other);
    }
    return read_references(other_set().references, references_[1]);
  }

  // Brings the other inputs to the device, or once more those that are there: both move the same bytes.
  bool touch_inputs(bool change) {
    if (change) on_other_set_ = !on_other_set_;
    for (size_t i = 0; i < spans_.size(); ++i) {
      std::string_view bytes;
      if (!spans_[i]) continue;
      if (!input(manifest().args[i], bytes)) return false;
      const auto& [begin, end] = *spans_[i];
      if (!sound(cuda::copy_to_device(operands_.address(0, static_cast<int>(i)) + begin, bytes.data() + begin,
                                      static_cast<int64_t>(end - begin))))
        return false;
    }
    return sound(bench_.synchronize());  // a copy may end after its call has returned
  }

  // Outputs hold garbage, or the answer with some elements in wrong places.
  bool spoil_outputs() {
    if (random_() % 4 == 0) return sound(operands_.poison(bench_.stream()));
    for (size_t i = 0; i < manifest().args.size(); ++i) {
      const ArgInfo& a = manifest().args[i];
      if (a.role != BufferRole::kOutput) continue;
      const int64_t size = dtype_bytes(a.dtype);
      const cuda::DevicePtr base = operands_.address(0, static_cast<int>(i));
      for (const SpoiltElement& e : elements_to_spoil(a.bytes / size, random_))
        if (e.from != e.to && !sound(cuda::copy_on_device(base + static_cast<cuda::DevicePtr>(e.to * size),
                                                          base + static_cast<cuda::DevicePtr>(e.from * size),
                                                          size, bench_.stream())))
          return false;
    }
    return true;
  }

  bool wary_call(bool counts, const char* when, double& ns) {
    const bool change = has_other_set() && random_() % 2 == 0;
    if (!touch_inputs(change) || !spoil_outputs() || !sound(operands_.restore_inouts(bench_.stream())) ||
        !flushed_call(ns))
      return false;
    const double ended_ns = monotonic_ns();
    if (!sound(bench_.synchronize())) return false;
    if (counts) {
      wary_times_.note_call(change, ns);
      wary_times_.note_rest(monotonic_ns() - ended_ns);
    }
    return random_() % 2 == 0 || check(when);
  }

  bool time_warily(const char* when) {
    double ns = 0;
    const double begin_ns = monotonic_ns();
    for (int i = 0; i < kWaryWarmUpCalls || monotonic_ns() < begin_ns + kWaryWarmUpNs; ++i)
      if (!wary_call(/*counts=*/false, when, ns)) return false;
    for (int i = 0; i < r_.repeats; ++i) {
      double all_ns = 0;
      const double cpu_ns = thread_cpu_ns();
      for (int k = 0; k < kWaryCalls; ++k) {
        if (!wary_call(/*counts=*/true, when, ns)) return false;
        all_ns += ns;
      }
      if (!(all_ns > 0)) {
        poisoned_ = device_sick_ = true;
        return trouble(str("device: its clock gave ", all_ns, " ns for ", kWaryCalls, " calls"));
      }
      reply_.run_ns.push_back(all_ns / kWaryCalls);
      reply_.cpu_ns.push_back((thread_cpu_ns() - cpu_ns) / kWaryCalls);
    }
    return true;
  }

  // Its code is loaded anew, and its operands lie elsewhere: the old ones stay as long, where they fit twice.
  bool move_elsewhere() {
    constexpr int64_t kMostPages = 64, kPage = 64 << 10;
    cuda::DeviceMemory pad;
    DeviceOperands old = std::move(operands_);
    operands_ = {};
    if (DeviceOperands::bytes_of_set(manifest()) > bench_.device().memory_bytes / 4) old = {};
    kernel_ = {};
    on_other_set_ = has_other_set();
    if (!sound(cuda::DeviceMemory::allocate(kPage * (1 + static_cast<int64_t>(random_() % kMostPages)), pad)))
      return false;
    return load() && make_operands();
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
      if (!result.ok) {
        reply_.difference = {manifest().args[i].name, result.index, result.found, result.expected};
        return verdict(Outcome::kWrongAnswer, result.message + when);
      }
    }
    reply_.check_ms += (monotonic_ns() - begin_ns) * 1e-6;
    return true;
  }

  // On the device what is kept as checksums, here what is kept whole and is therefore small.
  bool compare(size_t i, CheckResult& result) {
    const ArgInfo& a = manifest().args[i];
    const int operand = static_cast<int>(i);
    const ReferenceView& reference = references_[on_other_set_ ? 1 : 0][i];
    if (checks_ != nullptr && reference.kind == ReferenceKind::kChecksums && DeviceChecks::knows(a.dtype)) {
      OutputSums sums;
      if (!sound(checks_->sums(operands_.address(0, operand), a.dtype, reference, bench_.stream(), sums)))
        return false;
      result = check_sums(reference, sums, r_.check, a.name);
      return true;
    }
    if (!sound(operands_.download(operand, bytes_))) return false;
    result = check_output(reference, bytes_.data(), a.dtype, r_.check, a.name);
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
  // By argument; empty: an input. Those of the inputs that it is timed on, and of the other ones.
  std::vector<ReferenceView> references_[2];
  DeviceChecks* checks_ = nullptr;  // null: everything is compared here
  std::string original_name_;       // of the input looked for last
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
  // Of a wary run.
  std::minstd_rand random_;
  size_t other_ = 0;           // of r_.others
  bool on_other_set_ = false;  // the inputs on the device are those of it
  std::vector<std::optional<DifferingSpan>> spans_;
  WaryTimes wary_times_;
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
