#include "measure_server/runner/candidate_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <thread>
#include <utility>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/runtime/kernel_loader.h"
#include "compiler_core/runtime/tuner_runtime.h"
#include "measure_server/runner/peer.h"
#include "measure_server/runner/sentinel.h"

namespace tuner {

namespace {

using std::chrono::steady_clock;

// Its memory is looked at this often; a process that touches memory as fast as it can is then tens of
// megabytes over.
constexpr std::chrono::milliseconds kWatchEvery{10};
constexpr const char* kWhileTimed = " (right in the first run, wrong while being timed)";
constexpr const char* kOnOthers = " (on inputs it had not seen; right on the others)";

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

}  // namespace

CandidateRun::CandidateRun(const Host& host, RunRequest request, Artifact artifact,
                           const std::vector<pid_t>& spared)
    : host_(host), r_(std::move(request)), spared_(spared), artifact_(std::move(artifact)) {
  reply_.id = r_.id;
  reply_.isolation = isolation_name(host_.jail.level());
}

CandidateRun::~CandidateRun() {
  reap();
  // Where a candidate can leave processes behind, they may write there still.
  if (host_.jail.level() == Isolation::kNone) return;
  for (Output& out : outputs_) {
    host_.buffers.give_back(std::move(out.first));
    host_.buffers.give_back(std::move(out.last));
  }
  host_.buffers.give_back(std::move(report_));
}

uint64_t CandidateRun::unforeseeable_seed() {
  uint64_t seed = 0;
  const ssize_t n = getrandom(&seed, sizeof seed, 0);
  CHECK(n == sizeof seed) << "getrandom";
  return seed;
}

RunReply CandidateRun::run() {
  const Status status = prepare();
  if (!status.is_ok()) return trouble(status.message());
  if (reply_.outcome) return reply_;
  const bool memory = feels_memory();
  if (memory) reply_.memory_before_ns = recent_memory_sentinel_on(r_.cpus);
  reply_.sentinel_before_ns = recent_sentinel_on(r_.cpus);
  const Status forked = fork_child();
  if (!forked.is_ok()) return trouble(forked.message());
  conduct();
  reap();
  judge();
  reply_.run_ms = ms_since(begun_);
  reply_.sentinel_after_ns = sentinel_on(r_.cpus);
  if (memory) reply_.memory_after_ns = memory_sentinel_on(r_.cpus);
  return reply_;
}

Status CandidateRun::begin(int samples, int others, const Placement& placement) {
  plan_.placement = placement;
  RETURN_IF_ERROR(prepare());
  if (reply_.outcome) return Status::ok();
  in_race_ = plan_.in_race = true;
  plan_.samples_of_turn = samples;
  plan_.others_of_turn = others;
  // What others leave of a shared cache changes from call to call. Of 33 MB of weights in 32 MB single
  // calls took 2.1 to 2.5 ms, and processes with nine of them scattered so much that two races of three
  // were not certified.
  constexpr double kLongerBesideMemory = 4;
  plan_.fill_ms = r_.min_repeat_ms * (feels_memory() ? kLongerBesideMemory : 1);
  return fork_child();
}

bool CandidateRun::feels_memory() const {
  if (has_exact_clock(artifact_.manifest.kind)) return false;
  // Code, stack and the runner's own share of the cache take their part of it.
  constexpr double kUsable = 0.75;
  const Manifest& m = artifact_.manifest;
  int64_t bytes = m.workspace_bytes;
  for (const ArgInfo& a : m.args) bytes += a.bytes;
  return static_cast<double>(bytes) >
         kUsable * static_cast<double>(own_cache_bytes() * std::max(m.threads, 1));
}

bool CandidateRun::take_turn() {
  if (child_ < 0) return false;
  const bool first = !std::exchange(began_, true);
  if (!first) poison();
  if (!turn(TurnCommand::kSample)) return false;
  return first ? check(Extent::kAll, 0, /*first=*/true, "")
               : check(Extent::kLittle, 0, /*first=*/false, kWhileTimed);
}

bool CandidateRun::turn_was_calm() const { return plan_.report->disturbed == 0; }

RunReply CandidateRun::finish() {
  if (child_ >= 0) {
    if (!reply_.outcome) finish_turn();
    reap();
    judge();
    reply_.run_ms = ms_since(begun_);
  }
  return reply_;
}

// A trial. Between the turns the child stands still, and what it wrote is looked at. In every other run,
// which is drawn, the first turn ends in the midst of sampling, at a moment that is drawn, too.
void CandidateRun::conduct() {
  constexpr uint64_t kLongestMs = 8;
  may_pause_ = random_() % 2 == 0;
  if (may_pause_) pause_after_ = std::chrono::milliseconds(1 + random_() % kLongestMs);
  if (!turn(TurnCommand::kSample)) return;
  over_ = plan_.report->cut != 0;
  if (over_ || !check(Extent::kAll, 0, /*first=*/true, "") ||
      !check(Extent::kLittle, 0, /*first=*/false, kWhileTimed))
    return;
  finish_turn();
}

// Has a call on inputs that were kept back until now.
bool CandidateRun::finish_turn() {
  if (!r_.others.empty())
    proved_with_ = r_.prove_with > 0 ? static_cast<size_t>(r_.prove_with) : 1 + random_() % r_.others.size();
  asked_to_finish_ = true;
  plan_.report->inputs = static_cast<uint32_t>(proved_with_);
  // The child copies what that call makes into the outputs of the first run. Those of the timed calls stay
  // as they are: the call shall look like one of these.
  for (const Output& out : outputs_) out.make_ready(out.first);
  finished_ = turn(TurnCommand::kFinish);
  over_ = over_ || finished_;
  return finished_;
}

// The child works until its turn is over. False: it has ended or must end, or has found a reason to stop.
bool CandidateRun::turn(TurnCommand command) {
  if (child_ < 0 || ended_ || over_) return false;
  CandidateReport& report = *plan_.report;
  if (turns_ == 0 && !child_arrives()) return false;
  const std::chrono::milliseconds pause_after = std::exchange(pause_after_, std::chrono::milliseconds(0));
  const auto begin = steady_clock::now();
  const auto pause_at = begin + pause_after;
  const double cpu_ns = child_cpu_ns();
  report.command = command;
  std::atomic_ref(report.pause).store(0);
  patience_.forgive();
  const uint32_t number = give_turn(report);
  bool paused = pause_after.count() == 0;
  while (!turn_is_over(report, number, paused ? kWatchEvery : std::min(kWatchEvery, pause_after))) {
    if (must_end()) return false;
    if (paused || steady_clock::now() < pause_at) continue;
    paused = true;
    std::atomic_ref(report.pause).store(1);
  }
  ++turns_;
  seen_cpu_ns_ = child_cpu_ns();
  latest_cpu_ns_ = seen_cpu_ns_ - cpu_ns;
  seen_wall_ns_ += std::chrono::duration<double, std::nano>(steady_clock::now() - begin).count();
  over_ = report.stopped != 0;
  return !over_ && !must_end();
}

// What a fork costs differs from machine to machine by more than a kernel takes. The child says it, before
// its first turn: nothing of the candidate has run. From outside, the clock of a process that runs is up to
// a tick late.
bool CandidateRun::child_arrives() {
  while (std::atomic_ref(plan_.report->arrived).load() == 0) {
    if (must_end()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  fork_cpu_ns_ = plan_.report->fork_cpu_ns;
  return true;
}

void CandidateRun::poison() const {
  for (const Output& out : outputs_) out.make_ready(out.last);
}

// Of all its threads, from its start; up to a tick late while one of them runs.
double CandidateRun::child_cpu_ns() const {
  clockid_t clock;
  timespec t;
  if (clock_getcpuclockid(child_, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

RunReply CandidateRun::trouble(const std::string& why) const {
  RunReply r;
  r.id = r_.id;
  r.error = why;
  return r;
}

void CandidateRun::end_with(Outcome outcome, const std::string& message) {
  if (reply_.outcome) return;
  reply_.outcome = outcome;
  reply_.message = message;
}

// An error: not the candidate's fault. A candidate that cannot be loaded has an outcome instead.
Status CandidateRun::prepare() {
  const Manifest& m = artifact_.manifest;
  if (m.abi_version != TUNER_ABI_VERSION) {
    end_with(Outcome::kBuildError, str("artifact ", r_.digest, " has kernel ABI ", m.abi_version,
                                       ", this runner runs ABI ", TUNER_ABI_VERSION));
    return Status::ok();
  }
  int64_t needed = m.workspace_bytes + m.threads * m.workspace_bytes_per_thread;
  for (const auto* list : {&m.args, &m.pack_args})
    for (const ArgInfo& a : *list)
      if (__builtin_add_overflow(needed, a.bytes, &needed) || a.bytes < 0)
        return failed("manifest: impossible size of ", a.name);
  if (needed > r_.memory_limit_bytes) {
    end_with(Outcome::kOutOfMemory, str("operands and workspace take ", gib_text(needed), ", limit ",
                                        gib_text(r_.memory_limit_bytes)));
    return Status::ok();
  }
  ASSIGN_OR_RETURN(plan_.shared_object, SealedFile::of_bytes(artifact_.binary));
  RETURN_IF_ERROR(bind(m.args, plan_.args, /*packing=*/false));
  RETURN_IF_ERROR(bind(m.pack_args, plan_.pack_args, /*packing=*/true));
  ASSIGN_OR_RETURN(report_, host_.buffers.take(sizeof(CandidateReport), placed(sizeof(CandidateReport))));
  report_.fill(0);
  plan_.report = reinterpret_cast<CandidateReport*>(report_.data());
  plan_.request = &r_;
  plan_.manifest = &artifact_.manifest;
  plan_.runner = getpid();
  plan_.jail = &host_.jail;
  plan_.random = random_();
  reply_.input_sets = 1 + static_cast<int>(r_.others.size());
  return Status::ok();
}

namespace {

const std::string* path_of(const std::vector<RunRequest::Data>& data, const std::string& name) {
  for (const RunRequest::Data& d : data)
    if (d.arg == name) return &d.path;
  return nullptr;
}

}  // namespace

Result<CandidateRun::Output::Reference> CandidateRun::reference_of(const std::vector<RunRequest::Data>& files,
                                                                   const ArgInfo& a) const {
  const std::string* path = path_of(files, a.name);
  if (path == nullptr) return failed("run ", r_.id, ": no reference for output ", a.name);
  Output::Reference reference;
  ASSIGN_OR_RETURN(reference.file, host_.files.get(*path, SealedFile::Placement::kAtStart));
  ASSIGN_OR_RETURN(const std::string_view bytes, reference.file->map_hidden_from_children());
  Result<ReferenceView> view =
      reference.file->is_verified() ? parse_verified_reference(bytes) : parse_reference(bytes);
  if (!view.is_ok()) return view.status().with_context(*path + ": ");
  reference.file->set_verified();
  reference.view = *std::move(view);
  // A kernel may take the same elements as fewer dimensions: pixels of an image as one.
  if (elements(reference.view.shape) != elements(a.shape) ||
      a.bytes != elements(a.shape) * dtype_bytes(a.dtype))
    return failed(*path, ": the reference's size is not that of output ", a.name, " in the manifest");
  return reference;
}

// The further sets of inputs that have this one.
Status CandidateRun::bind_others(const ArgInfo& a, CandidatePlan::Operand& o) {
  for (const RunRequest::InputSet& set : r_.others) {
    const std::string* path = path_of(set.inputs, a.name);
    if (path == nullptr) return failed("run ", r_.id, ": a further set of inputs lacks ", a.name);
    ASSIGN_OR_RETURN(const auto file, host_.files.get(*path, SealedFile::Placement::kAtPageEnd));
    if (file->bytes() != a.bytes)
      return failed(*path, ": has ", file->bytes(), " bytes, input ", a.name, " of the artifact ", a.bytes);
    o.others.push_back(file);
  }
  return Status::ok();
}

Status CandidateRun::bind_output(const ArgInfo& a, CandidatePlan::Operand& o) {
  Output out{&a};
  out.references.resize(1 + r_.others.size());
  ASSIGN_OR_RETURN(out.references[0], reference_of(r_.references, a));
  for (size_t i = 0; i < r_.others.size(); ++i) {
    ASSIGN_OR_RETURN(out.references[i + 1], reference_of(r_.others[i].references, a));
  }
  if (a.role == BufferRole::kInOut) {
    ASSIGN_OR_RETURN(o.data, data_of(a));
    ASSIGN_OR_RETURN(out.before,
                     GuardedBuffer::map_sealed(o.data->fd(), o.data->bytes(), placed(o.data->bytes())));
  }
  ASSIGN_OR_RETURN(out.first, host_.buffers.take(a.bytes, placed(a.bytes)));
  ASSIGN_OR_RETURN(out.last, host_.buffers.take(a.bytes, placed(a.bytes)));
  out.make_ready(out.first);
  out.make_ready(out.last);
  outputs_.push_back(std::move(out));
  o.first = &outputs_.back().first;
  o.last = &outputs_.back().last;
  return Status::ok();
}

// What the argument holds before a call.
Result<std::shared_ptr<SealedFile>> CandidateRun::data_of(const ArgInfo& a) const {
  const std::string* path = path_of(r_.inputs, a.name);
  if (path == nullptr) return failed("run ", r_.id, ": no data file for ", a.role, " ", a.name);
  ASSIGN_OR_RETURN(std::shared_ptr<SealedFile> data,
                   host_.files.get(*path, SealedFile::Placement::kAtPageEnd));
  if (data->bytes() == a.bytes) return data;
  return failed(*path, ": has ", data->bytes(), " bytes, ", a.role, " ", a.name, " of the artifact ",
                a.bytes);
}

Status CandidateRun::bind(const std::vector<ArgInfo>& args, std::vector<CandidatePlan::Operand>& operands,
                          bool packing) {
  // The child's addresses must not move: outputs are reserved for all arguments first.
  if (!packing) outputs_.reserve(args.size());
  for (const ArgInfo& a : args) {
    CandidatePlan::Operand& o = operands.emplace_back();
    if (a.role == BufferRole::kPacked) continue;
    if (a.is_result() && !packing) {
      RETURN_IF_ERROR(bind_output(a, o));
      continue;
    }
    if (a.role != BufferRole::kInput && a.role != BufferRole::kConstant)
      return failed("manifest: argument ", a.name, " has role \"", a.role, "\"");
    ASSIGN_OR_RETURN(o.data, data_of(a));
    if (a.role == BufferRole::kInput && !packing) RETURN_IF_ERROR(bind_others(a, o));
  }
  return Status::ok();
}

Status CandidateRun::fork_child() {
  begun_ = steady_clock::now();
  clocks_at_begin_ = read_clocks();
  patience_ = Patience(
      std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(r_.run_timeout_s)),
      begun_);
  child_ = host_.jail.fork_child();
  from_outside_ = child_ < 0;  // the keeper of its namespaces was killed a moment ago, or memory is short
  if (child_ < 0) return failed("fork: ", strerror(errno));
  if (child_ == 0) run_candidate(plan_);
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, child_, 0u));
  if (pidfd_ < 0) {
    const int error = errno;
    reap();
    return failed("pidfd_open: ", strerror(error));
  }
  report_.hide_from_children();
  for (const Output& out : outputs_) {
    out.first.hide_from_children();
    out.last.hide_from_children();
  }
  statm_ = open(str("/proc/", child_, "/statm").c_str(), O_RDONLY | O_CLOEXEC);
  status_ = open(str("/proc/", child_, "/status").c_str(), O_RDONLY | O_CLOEXEC);
  schedstat_ = open(str("/proc/", child_, "/schedstat").c_str(), O_RDONLY | O_CLOEXEC);
  return Status::ok();
}

// Whether the child has ended or must end; end_.kind says why, kExited meaning "by itself".
bool CandidateRun::must_end() {
  if (ended_) return true;
  pollfd wait[2] = {{pidfd_, POLLIN, 0}, {host_.socket, POLLIN, 0}};
  poll(wait, 2, 0);
  ended_ = wait[0].revents != 0 || (wait[1].revents != 0 && stop_asked());
  if (ended_) return true;
  end_.bytes = std::max(end_.bytes, memory_bytes());
  if (end_.bytes > r_.memory_limit_bytes || plan_.report->asked_for_shared != 0) {
    end_.kind = End::kMemory;
    ended_ = true;
  } else if (patience_.over() && !has_waited()) {
    end_.kind = End::kTimeout;
    ended_ = true;
  }
  return ended_;
}

// Beside many others a child runs for a part of its time. What it waited for a core does not count, up to
// three times its limit and no more than the runner's client waits beyond it.
bool CandidateRun::has_waited() {
  constexpr std::chrono::nanoseconds kMost = std::chrono::seconds(20),
                                     kFewest = std::chrono::milliseconds(10);
  const auto three = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(3 * r_.run_timeout_s));
  const std::chrono::nanoseconds more = std::min({waited_for_core(), three, kMost}) - forgiven_;
  if (more < kFewest) return false;
  forgiven_ += more;
  patience_.extend(more);
  return true;
}

// Returns when the child has ended or must end.
void CandidateRun::watch() {
  while (!must_end()) {
    pollfd wait[2] = {{pidfd_, POLLIN, 0}, {host_.socket, POLLIN, 0}};
    poll(wait, 2, patience_.poll_ms(kWatchEvery));
  }
}

void CandidateRun::reap() {
  if (child_ < 0) return;
  // The group goes before the leader is reaped: until then its number cannot belong to anybody else.
  kill(-child_, SIGKILL);
  kill(child_, SIGKILL);
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  if (pidfd_ >= 0) close(pidfd_);
  if (statm_ >= 0) close(statm_);
  if (status_ >= 0) close(status_);
  if (schedstat_ >= 0) close(schedstat_);
  pidfd_ = statm_ = status_ = schedstat_ = -1;
  kill_orphans(spared_);
  if (end_.kind == End::kExited && !over_) {
    end_.kind = WIFSIGNALED(status) ? End::kSignaled : End::kExited;
    end_.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  }
}

bool CandidateRun::stop_asked() {
  const PeerWish wish = read_wish(host_.socket, r_.id);
  if (wish == PeerWish::kGone) end_.kind = End::kPeerGone;
  if (wish == PeerWish::kCancel) end_.kind = End::kCancelled;
  return wish != PeerWish::kNothing;
}

void kill_orphans(const std::vector<pid_t>& spared) {
  for (int round = 0; round < 100; ++round) {
    std::ifstream children(str("/proc/self/task/", getpid(), "/children"));
    bool any = false;
    for (pid_t p; children >> p;) {
      if (std::ranges::find(spared, p) != spared.end()) continue;
      any = true;
      kill(p, SIGKILL);
      waitpid(p, nullptr, 0);
    }
    if (!any) return;
  }
}

// Where it did not get to its own end, says why. Returns false if it did.
bool CandidateRun::judge_end(const std::string& when) {
  const bool asked_for_shared = plan_.report->asked_for_shared != 0;
  switch (end_.kind) {
    case End::kCancelled:
      reply_ = trouble("cancelled");
      return true;
    case End::kPeerGone:
      reply_ = trouble("the peer is gone");
      return true;
    case End::kTimeout:
      end_with(Outcome::kRunTimeout, str("still running after ", r_.run_timeout_s, " s", when));
      return true;
    case End::kMemory:
      if (end_.bytes > r_.memory_limit_bytes)
        end_with(Outcome::kOutOfMemory, str("its memory takes ", gib_text(end_.bytes), ", limit ",
                                            gib_text(r_.memory_limit_bytes), when));
      break;
    case End::kSignaled:
      if (asked_for_shared) break;
      // Perhaps no doing of its: seen in several processes before it is believed.
      from_outside_ = is_from_outside(end_.value);
      // A SIGKILL that is not ours is the kernel's, out of memory, unless the process was small.
      if (end_.value == SIGKILL && end_.bytes > r_.memory_limit_bytes / 2)
        end_with(Outcome::kOutOfMemory, str("killed by the system at ", gib_text(end_.bytes), when));
      end_with(Outcome::kCrashed, signal_text(end_.value) + when);
      return true;
    case End::kExited:
      break;
  }
  if (asked_for_shared)
    end_with(Outcome::kOutOfMemory,
             str("asked for shared memory or huge pages, which the limit of ",
                 gib_text(r_.memory_limit_bytes), " cannot count; a kernel needs private memory,", when));
  return asked_for_shared || end_.kind == End::kMemory;
}

std::string CandidateRun::kernel_refusal(const std::string& when) const {
  const CandidateReport& report = *plan_.report;
  const std::string fault(report.device_fault, strnlen(report.device_fault, sizeof report.device_fault));
  if (fault.empty()) return str("the kernel returned ", report.kernel_status, when);
  return str("the device stopped", when, ": ", printable(fault));
}

void CandidateRun::judge() {
  const CandidateReport& report = *plan_.report;
  const std::string when = str(" while ", phase_name(report.phase));
  if (judge_end(when)) return;
  if (!over_ || !report_.intact())
    return end_with(Outcome::kCrashed, str("exited with status ", end_.value, " before finishing,", when));
  if (report.setup_error[0] != '\0') {
    reply_ = trouble(std::string(report.setup_error, strnlen(report.setup_error, sizeof report.setup_error)));
    return;
  }
  if (report.load_error[0] != '\0')
    return end_with(
        Outcome::kBuildError,
        str("cannot be loaded: ",
            std::string(report.load_error, strnlen(report.load_error, sizeof report.load_error))));
  if (report.kernel_status != 0) return end_with(Outcome::kCrashed, kernel_refusal(when));
  if (report.descriptors_closed != 0)
    return end_with(Outcome::kCrashed, str("closed descriptors that are not its own,", when));
  if (report.mode_changed != 0)
    return end_with(Outcome::kCrashed,
                    "left the floating-point mode changed (rounding, or denormal numbers)");
  if (report.changed_input != 0)
    return end_with(
        Outcome::kCrashed,
        str("changed its input ",
            artifact_.manifest.args[(report.changed_input - 1) % artifact_.manifest.args.size()].name));
  // What the first run left there says more.
  if (report.unwritten != 0 && !asked_to_finish_) check(Extent::kAll, 0, /*first=*/true, "");
  if (report.unwritten != 0)
    return end_with(
        Outcome::kWrongAnswer,
        str("a timed call did not write all of output ",
            artifact_.manifest.args[(report.unwritten - 1) % artifact_.manifest.args.size()].name, " again"));
  if (reply_.outcome) return;
  if (report.damaged_operand != 0)
    return end_with(
        Outcome::kCrashed,
        str("wrote beside operand ",
            artifact_.manifest.args[(report.damaged_operand - 1) % artifact_.manifest.args.size()].name));
  for (const Output& out : outputs_)
    if (!out.first.intact() || !out.last.intact())
      return end_with(Outcome::kCrashed, str("wrote beside output ", out.arg->name));
  if (!samples_fit()) return end_with(Outcome::kCrashed, "its report is damaged");
  if (finished_) {
    check(Extent::kMuch, proved_with_, /*first=*/true, kOnOthers);
    check(Extent::kAll, 0, /*first=*/false, " (right in the first run, wrong in the run after timing)");
  } else {
    check(Extent::kAll, 0, /*first=*/true, "");
    check(Extent::kLittle, 0, /*first=*/false, kWhileTimed);
  }
  if (reply_.outcome) return;
  if (const std::string why = doubt(); !why.empty()) {
    in_doubt_ = reply_.doubted = true;
    return end_with(Outcome::kCrashed, "its times do not add up: " + why);
  }
  end_with(Outcome::kOk, "");
  if (const KernelLoader* const loader = find_kernel_loader(artifact_.manifest.kind); loader != nullptr) {
    reply_.device_state = loader->clock();
    reply_.exact_clock = loader->clock_is_exact();
  }
  reply_.cut = report.cut != 0;
  reply_.run_ns.assign(report.run_ns, report.run_ns + report.samples);
  reply_.cpu_ns.assign(report.cpu_ns, report.cpu_ns + report.samples);
  reply_.disturbed = static_cast<int>(std::min(report.disturbed, report.samples));
  reply_.slices = static_cast<int>(std::min<uint32_t>(report.slices, INT32_MAX));
  reply_.retaken = std::min(static_cast<int>(std::min<uint32_t>(report.retaken, INT32_MAX)), reply_.slices);
  reply_.pulse_ns = report.pulse_ns;
  take_facts();
  other_ns_.assign(report.other_ns, report.other_ns + report.other_samples);
  pulses_ns_.assign(report.pulses_ns, report.pulses_ns + report.samples);
}

// Compares the outputs with the answers to a set of inputs. The whole of large ones takes tens of
// milliseconds: between the first and the last run a part has to do, which nobody knows beforehand. Returns
// false, and says so in the reply, if one is wrong.
bool CandidateRun::check(Extent extent, size_t set, bool first, const char* when) {
  constexpr int64_t kMuch = 1 << 20, kLittle = 1 << 16;
  const auto begin = steady_clock::now();
  for (const Output& out : outputs_) {
    const GuardedBuffer& buffer = first ? out.first : out.last;
    const ReferenceView& reference = out.references[set].view;
    const CheckResult result =
        extent == Extent::kAll
            ? check_output(reference, buffer.data(), out.arg->dtype, r_.check, out.arg->name)
            : check_part(reference, buffer.data(), out.arg->dtype, r_.check, out.arg->name,
                         extent == Extent::kMuch ? kMuch : kLittle, random_());
    reply_.max_error = std::max(reply_.max_error, result.max_error);
    if (!buffer.intact()) end_with(Outcome::kCrashed, str("wrote beside output ", out.arg->name));
    if (result.ok || reply_.outcome) continue;
    if (!result.index.empty())
      reply_.difference = {out.arg->name, result.index, result.found, result.expected};
    end_with(Outcome::kWrongAnswer, result.message + when);
  }
  reply_.check_ms += ms_since(begin);
  return !reply_.outcome.has_value();
}

}  // namespace tuner
