#include "measure_server/runner/jail.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "compiler_core/base/child_process.h"

namespace tuner {

namespace {

constexpr std::pair<const char*, int> kNamespaces[] = {{"user", CLONE_NEWUSER}, {"pid", CLONE_NEWPID},
                                                       {"mount", CLONE_NEWNS},  {"net", CLONE_NEWNET},
                                                       {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS}};
constexpr int kAllNamespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

// Ids that neither distributions nor systemd give to anybody (60578 to 61183). Runners that live at one time
// draw different ones, as a rule.
constexpr rlim_t kMostThreads = 4096;  // of a candidate that starts its own

uid_t unused_uid() { return 60'600 + static_cast<uid_t>(getpid()) % 500; }

void limit(__rlimit_resource resource, rlim_t value) {
  const rlimit r{value, value};
  setrlimit(resource, &r);
}

bool become(uid_t uid) {
  return setgroups(0, nullptr) == 0 && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0;
}

// Tries it in a process of its own, which returns 0 or an errno. Returns why it failed; empty: it did not.
std::string refused_in_child(const std::function<int()>& attempt) {
  const pid_t child = fork();
  if (child < 0) return str("fork: ", std::strerror(errno));
  if (child == 0) _exit(attempt());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) return str("the process that tried it ended by signal ", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : std::strerror(WEXITSTATUS(status));
}

int try_seccomp() {
  JailFilter filter;
  handle_traps();
  if (const int error = filter.install(); error != 0) return error;
  return syscall(SYS_getppid) == -1 && errno == EPERM ? 0 : ENOSYS;
}

// The limit counts where the process has no privilege over it.
int try_process_limit(uid_t uid) {
  if (uid != 0 && !become(uid)) return errno;
  limit(RLIMIT_NPROC, 0);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0) waitpid(child, nullptr, 0);
  return child < 0 ? 0 : ENOSYS;
}

// All together, as a rule. Where that fails, each is tried by itself, so that it can be named.
std::unique_ptr<Namespaces> find_namespaces(uid_t uid, std::vector<IsolationPiece>& pieces) {
  const uid_t outside = uid != 0 ? uid : geteuid();
  Result<std::unique_ptr<Namespaces>> all = Namespaces::make(kAllNamespaces, outside);
  int usable = 0;
  const bool user = all.is_ok() || Namespaces::make(CLONE_NEWUSER, outside).is_ok();
  for (const auto& [name, flag] : kNamespaces) {
    std::string missing;
    if (!all.is_ok()) {
      const auto alone = Namespaces::make(flag | (user ? CLONE_NEWUSER : 0), outside);
      if (!alone.is_ok()) missing = alone.message();
    }
    if (missing.empty()) usable |= flag;
    pieces.push_back({name, missing});
  }
  if (all.is_ok()) return *std::move(all);
  Result<std::unique_ptr<Namespaces>> some = Namespaces::make(usable, outside);
  return usable != 0 && some.is_ok() ? *std::move(some) : nullptr;
}

}  // namespace

const std::vector<std::string>& jail_steps() {
  static const std::vector<std::string> steps = {
      "session",      "oom",          "net",          "ipc",        "uts",     "mount",
      "descriptors",  "core",         "file_size",    "open_files", "own_uid", "capabilities",
      "no_new_privs", "not_dumpable", "parent_death", "processes",  "seccomp"};
  return steps;
}

std::unique_ptr<Jail> Jail::make(Isolation at_most, std::set<std::string> without,
                                 const std::string& unchecked) {
  std::unique_ptr<Jail> jail(new Jail());
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<IsolationPiece>& pieces = jail->found_.pieces;
  pieces.push_back({"seccomp", refused_in_child(try_seccomp)});
  if (geteuid() == 0) {
    const uid_t uid = unused_uid();
    const std::string missing = refused_in_child([uid] { return become(uid) ? 0 : errno; });
    if (missing.empty()) jail->uid_ = uid;
    pieces.push_back({"own_uid", missing});
  } else {
    pieces.push_back({"own_uid", "only root can give one"});
  }
  pieces.push_back({"nproc", refused_in_child([&] { return try_process_limit(jail->uid_); })});
  jail->namespaces_ = find_namespaces(jail->uid_, pieces);
  jail->found_.level = level_of(pieces);
  jail->level_ = std::min(at_most, jail->found_.level);
  if (jail->level_ != Isolation::kStrict) jail->namespaces_ = nullptr;
  std::string rule;
  for (const JailRule& r : jail_rules())
    if (without.count(r.name) != 0) rule = r.name;
  jail->filter_ = JailFilter(rule, unchecked);
  jail->filter_with_threads_ = JailFilter(rule, unchecked, /*own_threads=*/true);
  jail->without_ = std::move(without);
  return jail;
}

int Jail::left_out() const {
  int flags = 0;
  for (const auto& [name, flag] : kNamespaces)
    if (!has(name)) flags |= flag;
  return flags;
}

Status Jail::mend() {
  if (!namespaces_ || namespaces_->is_kept()) return Status::ok();
  Result<std::unique_ptr<Namespaces>> again =
      Namespaces::make(namespaces_->flags(), uid_ != 0 ? uid_ : geteuid());
  if (!again.is_ok())
    return again.status().with_context("the namespaces of candidates ended and cannot be made anew: ");
  namespaces_ = *std::move(again);
  return Status::ok();
}

pid_t Jail::fork_child() const { return namespaces_ ? namespaces_->fork_inside(left_out()) : fork(); }

namespace {

// Runs inside the candidate's process. A signal that it sent to itself does what it would have done.
void on_asked(int signal, siginfo_t* info, void*) {
  if (info->si_pid != getpid()) return;  // 0: from outside of the namespaces
  ::signal(signal, SIG_DFL);
  raise(signal);  // comes when this returns
}

// Whoever ends all processes of a job means those who look after the candidate.
void hear_only_itself() {
  const sigset_t asking = asking_signals();
  struct sigaction action {};
  action.sa_sigaction = on_asked;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    if (sigismember(&asking, signal) == 1) sigaction(signal, &action, nullptr);
  sigprocmask(SIG_UNBLOCK, &asking, nullptr);
}

}  // namespace

// In a user namespace user 0 is our unused one of the host.
bool Jail::become_nobody() const {
  const bool mapped = namespaces_ && (namespaces_->flags() & ~left_out() & CLONE_NEWUSER) != 0;
  if (!mapped) return uid_ == 0 || become(uid_);
  if (uid_ != 0 && setgroups(0, nullptr) != 0) return false;
  return setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0;
}

bool Jail::enter(pid_t runner, int keep_fd) const {
  if (has("session")) setsid();
  prctl(PR_SET_NAME, "candidate");
  hear_only_itself();
  if (has("oom")) {
    const int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (oom >= 0) {
      (void)!write(oom, "1000", 4);
      close(oom);
    }
  }
  const int null = open("/dev/null", O_RDWR);
  if (namespaces_ && namespaces_->enter_rest(left_out()) != 0) return false;
  if (has("descriptors")) {
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0) return false;
    if (keep_fd != kCandidateFd && dup2(keep_fd, kCandidateFd) < 0) return false;
    if (syscall(SYS_close_range, kCandidateFd + 1u, ~0u, 0u) != 0)
      for (int fd = kCandidateFd + 1; fd < 1024; ++fd) close(fd);
  }
  if (has("core")) limit(RLIMIT_CORE, 0);
  if (has("file_size")) limit(RLIMIT_FSIZE, 0);
  if (has("open_files")) limit(RLIMIT_NOFILE, 64);
  // Root's right to give them up goes with root; who has no privilege has none to drop. The first one that is
  // refused is the first that the kernel does not know.
  if (has("capabilities"))
    for (int c = 0; c <= 63 && prctl(PR_CAPBSET_DROP, c) == 0;) ++c;
  if (has("own_uid") && !become_nobody()) return false;
  if (has("capabilities")) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct none[2] = {};
    if (syscall(SYS_capset, &header, none) != 0) return false;
  }
  if (has("no_new_privs")) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (has("not_dumpable")) prctl(PR_SET_DUMPABLE, 0);
  // After the change of user, which clears it.
  if (has("parent_death")) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t parent = getppid();
  if (parent != runner && parent != 0) _exit(1);  // it died before the line above
  return true;
}

bool Jail::shut(uint32_t* asked_for_shared, bool own_threads) {
  // The limit counts threads as well. Where the filter is, it lets no process through.
  if (has("processes") && (!own_threads || level_ == Isolation::kNone))
    limit(RLIMIT_NPROC, own_threads ? kMostThreads : 0);
  if (level_ == Isolation::kNone || !has("seccomp")) return true;
  handle_traps(asked_for_shared);
  return (own_threads ? filter_with_threads_ : filter_).install() == 0;
}

bool descriptors_untouched() {
  for (int fd = 0; fd <= 2; ++fd) {
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)) return false;
  }
  return true;
}

}  // namespace tuner
