#include "measure_server/runner/device_run.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/input_file.h"
#include "measure_server/runner/sampling.h"

namespace tuner {

using cuda::CallStatus;

namespace {

bool is_of_image(const CallStatus& status) {
  return status.code() == cuda::kInvalidImage || status.code() == cuda::kNotFound ||
         status.code() == cuda::kInvalidValue || status.code() == cuda::kInvalidSource ||
         status.code() == cuda::kInvalidPtx;
}

}  // namespace

DeviceRun::DeviceRun(DeviceBench& bench, const RunRequest& request, const std::function<void(Phase)>& entered)
    : bench_(bench), r_(request), entered_(entered) {
  reply_.id = r_.id;
  own_.inputs = &r_.inputs;
}

RunReply DeviceRun::run() {
  begin();
  steps();
  return answer();
}

void DeviceRun::begin() {
  started_ns_ = monotonic_ns();
  use_cpus(r_.cpus);
}

RunReply DeviceRun::answer() {
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

void DeviceRun::enter(Phase phase) {
  phase_ = phase;
  entered_(phase);
}

bool DeviceRun::verdict(Outcome outcome, const std::string& message) {
  reply_.outcome = outcome;
  reply_.message = message;
  return false;
}

bool DeviceRun::trouble(const std::string& why) {
  error_ = why;
  return false;
}

bool DeviceRun::sound(const CallStatus& status) {
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

bool DeviceRun::no_time(double ns, int64_t calls) {
  poisoned_ = device_sick_ = true;
  return trouble(str("device: its clock gave ", ns, " ns for ", calls, " calls"));
}

// The driver takes no code of this kind: that says nothing about the candidate.
bool DeviceRun::for_others(const CallStatus& status) {
  return trouble(str("the device takes no code of \"", manifest().target, "\": ", status.message()));
}

// Loading, which refuses what is no cubin. Where the driver is lazy, a launch loads.
bool DeviceRun::loaded(const CallStatus& status) {
  if (status.is_of_code_for_others()) return for_others(status);
  return is_of_image(status) ? verdict(Outcome::kBuildError, "cannot be loaded: " + status.message())
                             : sound(status);
}

// The first launches, which a device refuses at once when it can never run them. What else they answer is a
// fault of the launch before.
bool DeviceRun::launched(const CallStatus& status) {
  if (status.code() == cuda::kInvalidImage) return loaded(status);
  if (status.is_of_code_for_others()) return for_others(status);
  if (status.code() != cuda::kInvalidValue && status.code() != cuda::kLaunchOutOfResources &&
      status.code() != cuda::kNotSupported)
    return sound(status);
  return verdict(Outcome::kBuildError, "cannot be launched: " + status.message());
}

bool DeviceRun::prepare() {
  enter(Phase::kLoading);
  Result<Artifact> artifact = load_artifact(r_.artifact_dir, r_.digest);
  if (!artifact.is_ok()) return trouble(artifact.message());
  artifact_ = *std::move(artifact);
  const int64_t needed = DeviceOperands::bytes_of_set(manifest());
  if (needed < 0) return trouble("manifest: impossible sizes of operands");
  if (needed > r_.memory_limit_bytes)
    return verdict(Outcome::kOutOfMemory, str("operands and workspaces take ", gib_text(needed), ", limit ",
                                              gib_text(r_.memory_limit_bytes)));
  if (!load_checks() || !read_references(r_.references, own_.references) || !load()) return false;
  return make_operands();
}

int DeviceRun::sets_of_operands() const {
  const int64_t l2 = bench_.device().l2_bytes, limit = r_.memory_limit_bytes;
  const int rotated =
      r_.caches == Caches::kRotate && !r_.wary ? DeviceOperands::sets_for_rotation(manifest(), l2, limit) : 1;
  return r_.wary ? 1 : std::max(rotated, DeviceOperands::sets_for_inouts(manifest(), l2, limit));
}

bool DeviceRun::make_operands() {
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
bool DeviceRun::pack() {
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

bool DeviceRun::load_checks() {
  if (r_.checker.empty()) return true;
  const Result<std::string> cubin = read_whole(r_.checker);
  if (!cubin.is_ok()) return trouble("the checking kernels: " + cubin.message());
  const CallStatus status = bench_.checks(r_.checker, *cubin, checks_);
  if (is_of_image(status) || status.is_of_code_for_others())
    return trouble("the pack's checking kernels cannot be loaded here: " + status.message());
  return sound(status);
}

// Valid as long as the bench keeps the file, which files_ sees to.
Result<std::string_view> DeviceRun::file(const std::vector<RunRequest::Data>& data, const ArgInfo& arg) {
  for (const RunRequest::Data& d : data) {
    if (d.arg != arg.name) continue;
    ASSIGN_OR_RETURN(std::shared_ptr<SealedFile> found,
                     bench_.files().get(d.path, SealedFile::Placement::kAtStart));
    files_.push_back(found);
    return found->map_hidden_from_children();
  }
  return failed("run ", r_.id, ": no data file for ", arg.role, " ", arg.name);
}

bool DeviceRun::input_of(const std::vector<RunRequest::Data>& set, const ArgInfo& a,
                         std::string_view& bytes) {
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
bool DeviceRun::original(const ArgInfo& a, cuda::DevicePtr& from) {
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

bool DeviceRun::supply(const DeviceOperands::Input& in) {
  cuda::DevicePtr from = 0;
  if (!original(in.info, from)) return false;
  std::string_view bytes;
  if (from == 0 && !input_of(*shown_->inputs, in.info, bytes)) return false;
  if (from == 0 && checks_ != nullptr &&
      (!sound(checks_->keep(original_name_, bytes, bench_.stream())) || !original(in.info, from)))
    return false;
  return sound(from != 0 ? operands_.fill(in.operand, from, bench_.stream())
                         : operands_.upload(in.operand, bytes, bench_.stream()));
}

bool DeviceRun::read_references(const std::vector<RunRequest::Data>& set,
                                std::vector<ReferenceView>& references) {
  for (const ArgInfo& a : manifest().args) {
    references.emplace_back();
    if (a.role == BufferRole::kInput || a.role == BufferRole::kConstant || a.role == BufferRole::kPacked)
      continue;
    if (!is_result(a.role)) return trouble(str("manifest: argument ", a.name, " has role \"", a.role, "\""));
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

bool DeviceRun::load() { return loaded(DeviceKernel::load(artifact_, kernel_)); }

CallStatus DeviceRun::call(int set) { return kernel_.call(set, bench_.stream()); }

bool DeviceRun::run_once() {
  if (!sound(operands_.poison(bench_.stream())) || !sound(operands_.restore_inouts(bench_.stream())) ||
      !sound(bench_.stream().synchronize()))
    return false;
  return (phase_ == Phase::kFirstRun ? launched(call(0)) : sound(call(0))) &&
         sound(bench_.stream().synchronize());
}

bool DeviceRun::flushed_call(double& ns) {
  return sound(bench_.flush_l2()) && sound(bench_.begin()) && sound(call(0)) && sound(bench_.end()) &&
         sound(bench_.elapsed_ns(ns));
}

// The guards first: a kernel that writes beside its output is told so, whatever the output holds.
bool DeviceRun::check(const char* when) {
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
bool DeviceRun::compare(size_t i, CheckResult& result) {
  const ArgInfo& a = manifest().args[i];
  const int operand = static_cast<int>(i);
  const ReferenceView& reference = shown_->references[i];
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

bool DeviceRun::untouched() {
  for (size_t i = 0; i < manifest().args.size(); ++i) {
    if (is_output(i)) continue;
    bool same = false;
    if (!unchanged(i, same)) return false;
    if (!same) return verdict(Outcome::kCrashed, str("wrote to input ", manifest().args[i].name));
  }
  return true;
}

bool DeviceRun::unchanged(size_t i, bool& same) {
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
  } else if (!input_of(*shown_->inputs, a, bytes)) {
    return false;
  }
  same = bytes_ == bytes;
  return true;
}

}  // namespace tuner
