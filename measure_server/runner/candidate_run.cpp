#include "measure_server/runner/candidate_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/runtime/tuner_runtime.h"
#include "measure_server/runner/peer.h"
#include "measure_server/runner/sentinel.h"

namespace tuner {

namespace {

using std::chrono::steady_clock;

// Resident size is looked at this often; a process that touches memory as fast as it can is then tens of
// megabytes over.
constexpr std::chrono::milliseconds kWatchEvery{10};

std::string gib(int64_t bytes) {
  char text[32];
  snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

}  // namespace

CandidateRun::CandidateRun(int socket, SealedFiles& files, Jail& jail, RunRequest request,
                           Artifact artifact, const std::vector<pid_t>& spared)
    : socket_(socket),
      files_(files),
      jail_(jail),
      r_(std::move(request)),
      spared_(spared),
      artifact_(std::move(artifact)) {
  reply_.id = r_.id;
  reply_.isolation = isolation_name(jail_.level());
}

CandidateRun::~CandidateRun() { reap(); }

RunReply CandidateRun::run() {
  const Status status = prepare();
  if (!status.is_ok()) return trouble(status.message());
  if (!reply_.outcome.empty()) return reply_;
  const bool memory = feels_memory();
  if (memory) reply_.memory_before_ns = recent_memory_sentinel_on(r_.cpus);
  reply_.sentinel_before_ns = sentinel_on(r_.cpus);
  const Status forked = fork_child();
  if (!forked.is_ok()) return trouble(forked.message());
  watch();
  reap();
  judge();
  reply_.run_ms = ms_since(begun_);
  reply_.sentinel_after_ns = sentinel_on(r_.cpus);
  if (memory) reply_.memory_after_ns = memory_sentinel_on(r_.cpus);
  return reply_;
}

Status CandidateRun::begin(int samples, int others) {
  RETURN_IF_ERROR(prepare());
  if (!reply_.outcome.empty()) return Status::ok();
  plan_.in_turns = true;
  plan_.samples_of_turn = samples;
  plan_.others_of_turn = others;
  return fork_child();
}

bool CandidateRun::feels_memory() const {
  // Code, stack and the runner's own share of the cache take their part of it.
  constexpr double kUsable = 0.75;
  const Manifest& m = artifact_.manifest;
  int64_t bytes = m.workspace_bytes;
  for (const ArgInfo& a : m.args) bytes += a.bytes;
  return static_cast<double>(bytes) >
         kUsable * static_cast<double>(own_cache_bytes() * std::max(m.threads, 1));
}

bool CandidateRun::take_turn() {
  if (child_ < 0 || ended_) return false;
  const uint32_t turn = give_turn(*plan_.report);
  while (!turn_is_over(*plan_.report, turn, kWatchEvery))
    if (must_end()) return false;
  return !must_end();
}

bool CandidateRun::turn_was_calm() const { return plan_.report->disturbed == 0; }

RunReply CandidateRun::finish() {
  if (child_ >= 0) {
    plan_.report->last_turn = 1;
    (void)give_turn(*plan_.report);
    watch();
    reap();
    judge();
    reply_.run_ms = ms_since(begun_);
  }
  return reply_;
}

RunReply CandidateRun::trouble(const std::string& why) const {
  RunReply r;
  r.id = r_.id;
  r.error = why;
  return r;
}

void CandidateRun::outcome(const char* name, const std::string& message) {
  if (!reply_.outcome.empty()) return;
  reply_.outcome = name;
  reply_.message = message;
}

// An error: not the candidate's fault. A candidate that cannot be loaded has an outcome instead.
Status CandidateRun::prepare() {
  const Manifest& m = artifact_.manifest;
  if (m.abi_version != TUNER_ABI_VERSION) {
    outcome("build_error", str("artifact ", r_.digest, " has kernel ABI ", m.abi_version,
                               ", this runner runs ABI ", TUNER_ABI_VERSION));
    return Status::ok();
  }
  int64_t needed = m.workspace_bytes + m.threads * m.workspace_bytes_per_thread;
  for (const auto* list : {&m.args, &m.pack_args})
    for (const ArgInfo& a : *list)
      if (__builtin_add_overflow(needed, a.bytes, &needed) || a.bytes < 0)
        return failed("manifest: impossible size of ", a.name);
  if (needed > r_.memory_limit_bytes) {
    outcome("out_of_memory",
            str("operands and workspace take ", gib(needed), ", limit ", gib(r_.memory_limit_bytes)));
    return Status::ok();
  }
  ASSIGN_OR_RETURN(plan_.shared_object, SealedFile::of_bytes(artifact_.binary));
  RETURN_IF_ERROR(bind(m.args, plan_.args, /*packing=*/false));
  RETURN_IF_ERROR(bind(m.pack_args, plan_.pack_args, /*packing=*/true));
  ASSIGN_OR_RETURN(report_, GuardedBuffer::create(sizeof(CandidateReport), GuardedBuffer::Sharing::kShared));
  report_.fill(0);
  plan_.report = reinterpret_cast<CandidateReport*>(report_.data());
  plan_.request = &r_;
  plan_.manifest = &artifact_.manifest;
  plan_.runner = getpid();
  plan_.jail = &jail_;
  plan_.nonce = random_() | 1;
  return Status::ok();
}

Status CandidateRun::bind(const std::vector<ArgInfo>& args, std::vector<CandidatePlan::Operand>& operands,
                          bool packing) {
  const auto path_of = [](const std::vector<RunRequest::Data>& data,
                          const std::string& name) -> const std::string* {
    for (const RunRequest::Data& d : data)
      if (d.arg == name) return &d.path;
    return nullptr;
  };
  // The child's addresses must not move: outputs are reserved for all arguments first.
  if (!packing) outputs_.reserve(args.size());
  for (const ArgInfo& a : args) {
    CandidatePlan::Operand& o = operands.emplace_back();
    if (a.role == "packed") continue;
    if (a.role == "output" && !packing) {
      const std::string* path = path_of(r_.references, a.name);
      if (path == nullptr) return failed("run ", r_.id, ": no reference for output ", a.name);
      Output out{&a};
      ASSIGN_OR_RETURN(out.reference_file, files_.get(*path, SealedFile::Placement::kAtStart));
      ASSIGN_OR_RETURN(const std::string_view bytes, out.reference_file->map_hidden_from_children());
      Result<ReferenceView> reference = parse_reference(bytes);
      if (!reference.is_ok()) return reference.status().with_context(*path + ": ");
      out.reference = *std::move(reference);
      // A kernel may take the same elements as fewer dimensions: pixels of an image as one.
      if (elements(out.reference.shape) != elements(a.shape) ||
          a.bytes != elements(a.shape) * dtype_bytes(a.dtype))
        return failed(*path, ": the reference's size is not that of output ", a.name, " in the manifest");
      ASSIGN_OR_RETURN(out.first, GuardedBuffer::create(a.bytes, GuardedBuffer::Sharing::kShared));
      ASSIGN_OR_RETURN(out.last, GuardedBuffer::create(a.bytes, GuardedBuffer::Sharing::kShared));
      out.first.fill(poison_byte(a.dtype));
      out.last.fill(poison_byte(a.dtype));
      outputs_.push_back(std::move(out));
      o.first = &outputs_.back().first;
      o.last = &outputs_.back().last;
      continue;
    }
    if (a.role != "input" && a.role != "constant")
      return failed("manifest: argument ", a.name, " has role \"", a.role, "\"");
    const std::string* path = path_of(r_.inputs, a.name);
    if (path == nullptr) return failed("run ", r_.id, ": no data file for ", a.role, " ", a.name);
    ASSIGN_OR_RETURN(o.data, files_.get(*path, SealedFile::Placement::kAtPageEnd));
    if (o.data->bytes() != a.bytes)
      return failed(*path, ": has ", o.data->bytes(), " bytes, ", a.role, " ", a.name, " of the artifact ",
                    a.bytes);
  }
  return Status::ok();
}

Status CandidateRun::fork_child() {
  begun_ = steady_clock::now();
  patience_ = Patience(
      std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(r_.run_timeout_s)),
      begun_);
  child_ = jail_.fork_child();
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
  return Status::ok();
}

// Whether the child has ended or must end; end_.kind says why, kExited meaning "by itself".
bool CandidateRun::must_end() {
  if (ended_) return true;
  pollfd wait[2] = {{pidfd_, POLLIN, 0}, {socket_, POLLIN, 0}};
  poll(wait, 2, 0);
  ended_ = wait[0].revents != 0 || (wait[1].revents != 0 && stop_asked());
  if (ended_) return true;
  end_.resident_bytes = std::max(end_.resident_bytes, resident_bytes());
  if (end_.resident_bytes > r_.memory_limit_bytes) {
    end_.kind = End::kMemory;
    ended_ = true;
  } else if (patience_.over()) {
    end_.kind = End::kTimeout;
    ended_ = true;
  }
  return ended_;
}

// Returns when the child has ended or must end.
void CandidateRun::watch() {
  while (!must_end()) {
    pollfd wait[2] = {{pidfd_, POLLIN, 0}, {socket_, POLLIN, 0}};
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
  pidfd_ = statm_ = -1;
  kill_orphans();
  if (end_.kind == End::kExited) {
    end_.kind = WIFSIGNALED(status) ? End::kSignaled : End::kExited;
    end_.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  }
}

int64_t CandidateRun::resident_bytes() const {
  char text[128];
  const ssize_t n = pread(statm_, text, sizeof text - 1, 0);
  if (n <= 0) return 0;
  text[n] = '\0';
  long total = 0, resident = 0;
  return sscanf(text, "%ld %ld", &total, &resident) == 2 ? int64_t{resident} * sysconf(_SC_PAGESIZE) : 0;
}

bool CandidateRun::stop_asked() {
  const PeerWish wish = read_wish(socket_, r_.id);
  if (wish == PeerWish::kGone) end_.kind = End::kPeerGone;
  if (wish == PeerWish::kCancel) end_.kind = End::kCancelled;
  return wish != PeerWish::kNothing;
}

// Processes a candidate left behind come to us (PR_SET_CHILD_SUBREAPER); possible only where seccomp is not.
void CandidateRun::kill_orphans() const {
  for (int round = 0; round < 100; ++round) {
    std::ifstream children(str("/proc/self/task/", getpid(), "/children"));
    bool any = false;
    for (pid_t p; children >> p;) {
      if (std::find(spared_.begin(), spared_.end(), p) != spared_.end()) continue;
      any = true;
      kill(p, SIGKILL);
      waitpid(p, nullptr, 0);
    }
    if (!any) return;
  }
}

void CandidateRun::judge() {
  const CandidateReport& report = *plan_.report;
  const std::string when = str(" while ", phase_name(report.phase));
  switch (end_.kind) {
    case End::kCancelled:
      reply_ = trouble("cancelled");
      return;
    case End::kPeerGone:
      reply_ = trouble("the peer is gone");
      return;
    case End::kTimeout:
      return outcome("run_timeout", str("still running after ", r_.run_timeout_s, " s", when));
    case End::kMemory:
      return outcome("out_of_memory", str("resident size ", gib(end_.resident_bytes), ", limit ",
                                          gib(r_.memory_limit_bytes), when));
    case End::kSignaled:
      // A SIGKILL that is not ours is the kernel's, out of memory, unless the process was small.
      if (end_.value == SIGKILL && end_.resident_bytes > r_.memory_limit_bytes / 2)
        return outcome("out_of_memory", str("killed by the system at ", gib(end_.resident_bytes), when));
      return outcome("crashed", signal_text(end_.value) + when);
    case End::kExited:
      break;
  }
  if (end_.value != 0 || report.finished != plan_.nonce || !report_.intact())
    return outcome("crashed", str("exited with status ", end_.value, " before finishing,", when));
  if (report.setup_error[0] != '\0') {
    reply_ = trouble(std::string(report.setup_error, strnlen(report.setup_error, sizeof report.setup_error)));
    return;
  }
  if (report.load_error[0] != '\0')
    return outcome("build_error",
                   str("cannot be loaded: ",
                       std::string(report.load_error, strnlen(report.load_error, sizeof report.load_error))));
  if (report.kernel_status != 0)
    return outcome("crashed", str("the kernel returned ", report.kernel_status, when));
  if (report.descriptors_closed != 0)
    return outcome("crashed", str("closed descriptors that are not its own,", when));
  if (report.damaged_operand != 0)
    return outcome(
        "crashed",
        str("wrote beside operand ",
            artifact_.manifest.args[(report.damaged_operand - 1) % artifact_.manifest.args.size()].name));
  for (const Output& out : outputs_)
    if (!out.first.intact() || !out.last.intact())
      return outcome("crashed", str("wrote beside output ", out.arg->name));
  if (!samples_fit()) return outcome("crashed", "its report is damaged");
  for (const Output& out : outputs_) {
    compare(out, out.first, "");
    if (report.cut == 0) compare(out, out.last, " (right in the first run, wrong in the run after timing)");
  }
  if (!reply_.outcome.empty()) return;
  outcome("ok", "");
  reply_.cut = report.cut != 0;
  reply_.run_ns.assign(report.run_ns, report.run_ns + report.samples);
  reply_.cpu_ns.assign(report.cpu_ns, report.cpu_ns + report.samples);
  reply_.disturbed = static_cast<int>(std::min(report.disturbed, report.samples));
  reply_.retaken = static_cast<int>(std::min<uint32_t>(report.retaken, INT32_MAX));
  reply_.pulse_ns = report.pulse_ns;
  take_facts();
  other_ns_.assign(report.other_ns, report.other_ns + report.other_samples);
  pulses_ns_.assign(report.pulses_ns, report.pulses_ns + report.samples);
}

bool CandidateRun::samples_fit() const {
  const CandidateReport& report = *plan_.report;
  if (report.phase != Phase::kDone || report.samples < 1 || report.samples > CandidateReport::kMaxSamples ||
      report.other_samples > CandidateReport::kMaxSamples || !(report.pulse_ns >= 0) ||
      !std::isfinite(report.pulse_ns))
    return false;
  for (uint32_t i = 0; i < report.other_samples; ++i)
    if (!(report.other_ns[i] > 0) || !std::isfinite(report.other_ns[i])) return false;
  for (uint32_t i = 0; i < report.samples; ++i)
    if (!(report.run_ns[i] > 0) || !std::isfinite(report.run_ns[i]) || !(report.cpu_ns[i] >= 0) ||
        !std::isfinite(report.cpu_ns[i]) || !(report.pulses_ns[i] >= 0) ||
        !std::isfinite(report.pulses_ns[i]))
      return false;
  return true;
}

// A candidate could have written anything here: what is no number a record may hold is left out.
void CandidateRun::take_facts() {
  constexpr double kMost = 1e9;
  const CandidateReport& report = *plan_.report;
  for (uint32_t i = 0; i < std::min(report.facts, CandidateReport::kMaxFacts); ++i) {
    const CandidateReport::Fact& fact = report.fact[i];
    const std::string name(fact.name, strnlen(fact.name, sizeof fact.name));
    if (fact.value >= 0 && fact.value <= kMost) reply_.facts[name] = fact.value;
  }
}

void CandidateRun::compare(const Output& out, const GuardedBuffer& buffer, const char* when) {
  const auto begin = steady_clock::now();
  const CheckResult check =
      check_output(out.reference, buffer.data(), out.arg->dtype, r_.check, out.arg->name);
  reply_.check_ms += ms_since(begin);
  reply_.max_error = std::max(reply_.max_error, check.max_error);
  if (!check.ok) outcome("wrong_answer", check.message + when);
}

namespace {

double on_first_cpu(const std::vector<int>& cpus, double (*time)()) {
  cpu_set_t all, one;
  if (cpus.empty() || sched_getaffinity(0, sizeof all, &all) != 0) return time();
  CPU_ZERO(&one);
  CPU_SET(cpus[0] % CPU_SETSIZE, &one);
  sched_setaffinity(0, sizeof one, &one);
  const double ns = time();
  sched_setaffinity(0, sizeof all, &all);
  return ns;
}

// The latest memory sentinel. Candidates follow each other: what came after one came before the next.
struct Latest {
  double ns = 0;
  steady_clock::time_point at;
  std::vector<int> cpus;
} latest;

}  // namespace

double sentinel_on(const std::vector<int>& cpus) { return on_first_cpu(cpus, sentinel_ns); }

double memory_sentinel_on(const std::vector<int>& cpus) {
  const double ns = on_first_cpu(cpus, memory_sentinel_ns);
  latest = {ns, steady_clock::now(), cpus};
  return ns;
}

double recent_memory_sentinel_on(const std::vector<int>& cpus) {
  constexpr std::chrono::milliseconds kRecent{20};
  const bool recent = latest.ns > 0 && latest.cpus == cpus && steady_clock::now() - latest.at < kRecent;
  return recent ? latest.ns : memory_sentinel_on(cpus);
}

}  // namespace tuner
