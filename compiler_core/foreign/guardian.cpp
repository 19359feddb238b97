#include "compiler_core/foreign/guardian.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tuner {
namespace {

// Processes and threads of a user that only such programs have.
constexpr int64_t kMostProcesses = 1024;
// A program that starts processes faster than they are killed is given up on after so many looks.
constexpr int kMostRounds = 20'000;

enum Step { kSession, kParentsDeath, kNull, kFiles, kFolder, kRights, kLandlock, kExec, kUser, kFork, kCpus };
constexpr const char* kSteps[] = {
    "setsid", "parent's death", "/dev/null", "descriptors", "chdir", "no_new_privs", "landlock_restrict_self",
    "exec",   "another user",   "fork",      "its CPUs"};

void tell(int told, const GuardianWord& word) {
  [[maybe_unused]] const ssize_t n = ::write(told, &word, sizeof word);
}

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

[[noreturn]] void refuse(int told, int step) {
  tell(told, {.what = GuardianWord::kRefused, .step = step, .value = errno});
  ::_exit(127);
}

void limit(int resource, int64_t most) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &now) != 0) return;
  now.rlim_cur = now.rlim_max = std::min(static_cast<rlim_t>(most), now.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource>(resource), &now);
}

// The program's own process, below the guardian.
[[noreturn]] void become(const ChildPlan& plan, pid_t parent, int output, int told) {
  const ConfinedProgram& program = *plan.program;
  if (::setsid() < 0) refuse(told, kSession);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) refuse(told, kParentsDeath);
  // Out of the way of 0 to 4 first.
  const int said = ::fcntl(output, F_DUPFD, 10), refused = ::fcntl(told, F_DUPFD, 10);
  const int confined = plan.rules < 0 ? -1 : ::fcntl(plan.rules, F_DUPFD, 10);
  const int null = ::open("/dev/null", O_RDWR);
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(said, 1) < 0 || ::dup2(said, 2) < 0) refuse(told, kNull);
  // It closes with exec.
  if (::dup2(refused, 3) < 0 || ::fcntl(3, F_SETFD, FD_CLOEXEC) != 0) refuse(told, kFiles);
  told = 3;
  const int rules = confined < 0 ? -1 : ::dup2(confined, 4);
  ::syscall(SYS_close_range, rules < 0 ? 4 : 5, ~0U, 0);
  if (::chdir(program.folder.c_str()) != 0) refuse(told, kFolder);
  limit(RLIMIT_AS, program.memory_bytes);
  limit(RLIMIT_FSIZE, program.file_bytes);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, 256);
  limit(RLIMIT_CPU, (program.deadline.count() / 1000 + 2) * plan.most_cpus);
  // Nobody's network, where we may make one. Without it Landlock refuses connections.
  if (program.untrusted && ::unshare(CLONE_NEWNET) != 0) ::unshare(CLONE_NEWUSER | CLONE_NEWNET);
  if (!program.cpus.empty() && ::sched_setaffinity(0, sizeof plan.cpus, &plan.cpus) != 0) refuse(told, kCpus);
  // Privileges go with root; groups first.
  if (plan.user != 0 && (::syscall(SYS_setgroups, 0, nullptr) != 0 ||
                         ::syscall(SYS_setresgid, plan.user, plan.user, plan.user) != 0 ||
                         ::syscall(SYS_setresuid, plan.user, plan.user, plan.user) != 0))
    refuse(told, kUser);
  // Of that user, who has no other processes; of any other one it would count all.
  if (plan.user != 0) limit(RLIMIT_NPROC, kMostProcesses);
  // The change of user clears it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) refuse(told, kParentsDeath);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) refuse(told, kRights);
  if (rules >= 0 && ::syscall(SYS_landlock_restrict_self, rules, 0) != 0) refuse(told, kLandlock);
  if (rules >= 0) ::close(rules);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  tell(told, {.what = GuardianWord::kBegins, .at_ns = now_ns()});
  ::execve(program.path.c_str(), plan.words.data(), plan.environment.data());
  refuse(told, kExec);
}

// Kills the children of this process, each with the group that it may lead. False: it has none, or the kernel
// keeps no list of them (CONFIG_PROC_CHILDREN), where the program's own group is all that ends.
bool kill_children() {
  const int list = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (list < 0) return false;
  std::array<char, 4096> text;
  pid_t pid = 0;
  bool any = false;
  for (ssize_t n; (n = ::read(list, text.data(), text.size())) > 0;)
    for (ssize_t i = 0; i < n; ++i) {
      const char c = text[static_cast<size_t>(i)];
      if (c >= '0' && c <= '9') {
        pid = pid * 10 + (c - '0');
      } else if (pid > 0) {
        ::kill(-pid, SIGKILL);
        ::kill(pid, SIGKILL);
        any = true;
        pid = 0;
      }
    }
  ::close(list);
  return any;
}

int64_t ns_of(const timeval& t) { return t.tv_sec * int64_t{1'000'000'000} + t.tv_usec * int64_t{1'000}; }

// Waits for the program's end, or ends it when it must. What it left behind goes in any case.
GuardianWord end_of(pid_t program) {
  sigset_t news;
  sigemptyset(&news);
  sigaddset(&news, SIGCHLD);
  sigaddset(&news, SIGTERM);
  GuardianWord word;
  bool ended = false;
  while (!ended) {
    const int signal = ::sigwaitinfo(&news, nullptr);
    if (signal == SIGTERM) {
      ::kill(-program, SIGKILL);
      ::kill(program, SIGKILL);
    }
    int of_one = 0;
    rusage used{};
    for (pid_t pid; (pid = ::wait4(-1, &of_one, WNOHANG, &used)) > 0;) {
      if (pid != program) continue;
      word = {.value = of_one, .at_ns = now_ns(), .cpu_ns = ns_of(used.ru_utime) + ns_of(used.ru_stime)};
      ended = true;
    }
  }
  // A group is killed at once; a session of its own is seen when its parent has ended.
  ::kill(-program, SIGKILL);
  for (int round = 0; round < kMostRounds; ++round) {
    const bool any = kill_children();
    int of_one = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &of_one, any ? 0 : WNOHANG)) > 0) {
      if (any) break;
    }
    if (pid < 0 && errno == ECHILD) break;
  }
  return word;
}

}  // namespace

const char* guardian_step(int step) {
  return kSteps[std::clamp(step, 0, static_cast<int>(std::size(kSteps)) - 1)];
}

void guard(const ChildPlan& plan, pid_t parent, int output, int told) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  if (::setsid() < 0) refuse(told, kSession);
  if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || ::getppid() != parent) refuse(told, kParentsDeath);
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) refuse(told, kParentsDeath);
  const pid_t self = ::getpid();
  const pid_t program = ::_Fork();
  if (program < 0) refuse(told, kFork);
  if (program == 0) become(plan, self, output, told);
  // Whoever listens sees the program's end, not this one's.
  ::dup2(told, 3);
  ::syscall(SYS_close_range, 4, ~0U, 0);
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  tell(3, end_of(program));
  ::_exit(0);
}

}  // namespace tuner
