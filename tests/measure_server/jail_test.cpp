// Each rule of the jail is needed: left out, something that works stops, or something that is refused works.
// The process that is jailed here runs code of this test.
#include "measure_server/runner/jail.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <map>
#include <system_error>
#include <thread>

namespace tuner {
namespace {

using Attempt = std::function<long()>;

pid_t self = 0;             // of the jailed process, as it sees itself
char* page = nullptr;       // memory that exists before the jail
constexpr int kStray = 40;  // a descriptor that nobody closed

// 0: it did; otherwise errno.
long did(long result) { return result >= 0 ? 0 : errno; }
// 0: it was refused as by the filter.
long refused(long result) { return result < 0 && errno == EPERM ? 0 : 1; }

struct Seen {
  long result = -1;  // of the attempt
  int status = 0;    // how the process ended
  bool operator==(const Seen&) const = default;
};

// What an attempt has come to, where this process sees it.
long* const result =
    static_cast<long*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

Seen in_jail(Jail& jail, const Attempt& attempt, bool own_threads = false) {
  *result = -1;
  const pid_t runner = getpid();
  const int binary = memfd_create("candidate", 0);
  const pid_t child = jail.fork_child();
  if (child == 0) {
    self = getpid();
    if (jail.enter(runner, binary) && jail.shut(nullptr, own_threads)) *result = attempt();
    _exit(0);
  }
  Seen seen;
  waitpid(child, &seen.status, 0);
  seen.result = *result;
  close(binary);
  return seen;
}

const Seen kWorks{.result = 0, .status = 0};

class JailTest : public testing::Test {
 protected:
  void SetUp() override {
    page =
        static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(page, MAP_FAILED);
    ASSERT_EQ(dup2(0, kStray), kStray);
    found_ = Jail::make()->found();
  }
  void TearDown() override {
    munmap(page, 8192);
    close(kStray);
  }
  bool has(const char* piece) const { return found_.piece(piece)->missing.empty(); }
  // Level strict where it is to be had, else process.
  static Seen with(std::set<std::string> without, const Attempt& attempt, const std::string& unchecked = "",
                   Isolation at_most = Isolation::kStrict, bool own_threads = false) {
    const std::unique_ptr<Jail> jail = Jail::make(at_most, std::move(without), unchecked);
    return in_jail(*jail, attempt, own_threads);
  }
  IsolationFound found_;
};

// What each listed system call is needed for, in one call.
const std::map<std::string, Attempt> kUses = {
    {"clock_gettime",
     [] {
       timespec t;
       return did(syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t));
     }},
    {"futex", [] { return did(syscall(SYS_futex, page, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0)); }},
    {"mmap", [] { return did(syscall(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
    {"munmap", [] { return did(syscall(SYS_munmap, page, 4096)); }},
    {"mprotect", [] { return did(syscall(SYS_mprotect, page, 4096, PROT_READ)); }},
    {"mremap", [] { return did(syscall(SYS_mremap, page, 4096, 2048, 0)); }},
    {"madvise", [] { return did(syscall(SYS_madvise, page, 4096, MADV_DONTNEED)); }},
    {"brk", [] { return did(syscall(SYS_brk, 0)); }},
    {"read", [] { return did(syscall(SYS_read, 0, page, 1)); }},
    {"pread64", [] { return did(syscall(SYS_pread64, 0, page, 1, 0)); }},
    {"fstat", [] { return did(syscall(SYS_fstat, 0, page)); }},
    {"close", [] { return did(syscall(SYS_close, kCandidateFd)); }},
    {"openat",
     [] { return syscall(SYS_openat, AT_FDCWD, kCandidatePath, O_RDONLY) == kCandidateFd ? 0L : 1L; }},
    {"newfstatat", [] { return did(syscall(SYS_newfstatat, 0, "", page, AT_EMPTY_PATH)); }},
    {"getrusage", [] { return did(syscall(SYS_getrusage, RUSAGE_SELF, page)); }},
    {"write", [] { return did(syscall(SYS_write, 1, page, 1)); }},
    {"clock_nanosleep",
     [] {
       const timespec t{0, 1};
       return did(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, nullptr));
     }},
    {"sched_getaffinity", [] { return did(syscall(SYS_sched_getaffinity, 0, 4096, page)); }},
    {"getpid", [] { return did(syscall(SYS_getpid)); }},
    {"gettid", [] { return did(syscall(SYS_gettid)); }},
    {"tgkill", [] { return did(syscall(SYS_tgkill, self, self, 0)); }},
    {"kill", [] { return did(syscall(SYS_kill, self, 0)); }},
    {"rt_sigaction", [] { return did(syscall(SYS_rt_sigaction, SIGABRT, nullptr, page, 8)); }},
    {"rt_sigprocmask", [] { return did(syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, page, 8)); }},
    // A trapped call that our handler refuses comes back.
    {"rt_sigreturn", [] { return refused(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY)); }},
    {"restart_syscall", [] { return syscall(SYS_restart_syscall) < 0 && errno == EINTR ? 0L : 1L; }},
    // The process ends by it after each attempt.
    {"exit_group", [] { return 0L; }},
    // Of candidates that start threads.
    {"clone3", [] { return syscall(SYS_clone3, nullptr, 0) < 0 && errno == ENOSYS ? 0L : 1L; }},
    {"clone",
     [] {
       try {
         std::thread([] {}).join();
         return 0L;
       } catch (const std::system_error&) {
         return 1L;
       }
     }},
    {"set_robust_list", [] { return did(syscall(SYS_set_robust_list, nullptr, 24)); }},
    // The process has one already.
    {"rseq", [] { return did(syscall(SYS_rseq, page, 32, 0, 0)) == EPERM ? 1L : 0L; }},
    {"sched_yield", [] { return did(syscall(SYS_sched_yield)); }},
    {"exit",
     [] {
       *result = 0;
       syscall(SYS_exit, 0);
       return 1L;
     }},
};

TEST_F(JailTest, EverySystemCallThatIsListedIsNeeded) {
  if (!has("seccomp")) GTEST_SKIP() << "seccomp: " << found_.piece("seccomp")->missing;
  for (const JailRule& rule : jail_rules()) {
    SCOPED_TRACE(rule.name);
    ASSERT_TRUE(kUses.contains(rule.name)) << "a rule that no test needs";
    const auto seen = [&](std::set<std::string> without, bool own_threads) {
      return with(std::move(without), kUses.at(rule.name), "", Isolation::kStrict, own_threads);
    };
    EXPECT_EQ(seen({}, rule.for_threads), kWorks);
    EXPECT_NE(seen({rule.name}, rule.for_threads), kWorks);
    if (rule.for_threads) {
      EXPECT_NE(seen({}, false), kWorks) << "a candidate without threads of its own";
    }
  }
}

// What each checked argument, and our handler of traps, keeps from a candidate. 0: it is refused. The keeper
// is process 1 of the namespace, and of the same user.
const std::map<std::string, Attempt> kAttacks = {
    {"futex",
     [] { return refused(syscall(SYS_futex, page, FUTEX_LOCK_PI_PRIVATE, 0, nullptr, nullptr, 0)); }},
    // Our handler answers as if there were no memory.
    {"mmap",
     [] {
       const long shared = syscall(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
       return shared < 0 && errno == ENOMEM ? 0L : 1L;
     }},
    {"write", [] { return refused(syscall(SYS_write, kCandidateFd, page, 0)); }},
    {"tgkill", [] { return refused(syscall(SYS_tgkill, 1, 1, 0)); }},
    {"kill", [] { return refused(syscall(SYS_kill, 1, 0)); }},
    {"openat", [] { return refused(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY)); }},
    {"newfstatat", [] { return refused(syscall(SYS_newfstatat, AT_FDCWD, "/", page, 0)); }},
    {"clone",
     [] {
       const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
       if (child == 0) _exit(0);
       return refused(child);
     }},
};

TEST_F(JailTest, EveryCheckOfAnArgumentKeepsSomethingOut) {
  if (found_.level != Isolation::kStrict) GTEST_SKIP() << "level strict: " << found_.why_not_more();
  for (const JailRule& rule : jail_rules()) {
    if (rule.kind == JailRule::kAllowed || rule.kind == JailRule::kUnknown) continue;
    SCOPED_TRACE(rule.name);
    ASSERT_TRUE(kAttacks.contains(rule.name)) << "a check that no test needs";
    const auto seen = [&](const char* unchecked) {
      return with({}, kAttacks.at(rule.name), unchecked, Isolation::kStrict, rule.for_threads);
    };
    EXPECT_EQ(seen(""), kWorks);
    EXPECT_NE(seen(rule.name), kWorks);
  }
}

std::string namespace_of(const char* name) {
  char text[64] = "";
  const ssize_t n = readlink(str("/proc/self/ns/", name).c_str(), text, sizeof text - 1);
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
}

// 0: the limit is `value`.
long limited(__rlimit_resource resource, rlim_t value) {
  rlimit r{};
  return getrlimit(resource, &r) == 0 && r.rlim_cur == value && r.rlim_max == value ? 0 : 1;
}

struct Step {
  Attempt attempt;                     // 0: the step was taken
  std::set<std::string> without = {};  // steps that would hide it
  Isolation level = Isolation::kProcess;
  const char* piece = "seccomp";  // of the host
};

// The filter is left out, so that the process can look at itself.
std::map<std::string, Step> steps() {
  const auto apart = [](const char* name, const char* piece) {
    const std::string outside = namespace_of(name);
    return Step{
        [=] { return namespace_of(name) == outside ? 1L : 0L; }, {"mount"}, Isolation::kStrict, piece};
  };
  return {
      {"session", {[] { return getsid(0) == self ? 0L : 1L; }}},
      {"oom", {[] {
         const int fd = open("/proc/self/oom_score_adj", O_RDONLY);
         return read(fd, page, 8) == 5 && memcmp(page, "1000\n", 5) == 0 ? 0L : 1L;
       }}},
      {"net", apart("net", "net")},
      {"ipc", apart("ipc", "ipc")},
      {"uts", apart("uts", "uts")},
      {"user", apart("user", "user")},
      {"pid", apart("pid", "pid")},
      {"mount",
       {[] { return access("/proc", F_OK) != 0 && access("/lib", F_OK) != 0 ? 0L : 1L; },
        {},
        Isolation::kStrict,
        "mount"}},
      {"descriptors", {[] { return fcntl(kStray, F_GETFD) < 0 ? 0L : 1L; }}},
      {"core", {[] { return limited(RLIMIT_CORE, 0); }}},
      {"file_size", {[] { return limited(RLIMIT_FSIZE, 0); }}},
      {"open_files", {[] { return limited(RLIMIT_NOFILE, 64); }}},
      {"own_uid", {[] { return geteuid() != 0 ? 0L : 1L; }, {}, Isolation::kProcess, "own_uid"}},
      {"capabilities",
       {[] { return prctl(PR_CAPBSET_READ, CAP_CHOWN) == 0 ? 0L : 1L; }, {}, Isolation::kProcess, "own_uid"}},
      {"no_new_privs", {[] { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0L : 1L; }}},
      {"not_dumpable", {[] { return prctl(PR_GET_DUMPABLE) == 0 ? 0L : 1L; }, {"own_uid", "capabilities"}}},
      {"parent_death", {[] {
         int signal = 0;
         prctl(PR_GET_PDEATHSIG, &signal);
         return signal == SIGKILL ? 0L : 1L;
       }}},
      {"processes",
       {[] {
          const pid_t child = fork();
          if (child == 0) _exit(0);
          return child < 0 && errno == EAGAIN ? 0L : 1L;
        },
        {},
        Isolation::kProcess,
        "nproc"}},
  };
}

TEST_F(JailTest, EveryStepBesideTheFilterIsNeeded) {
  std::map<std::string, Step> probes = steps();
  std::vector<std::string> names = jail_steps();
  names.insert(names.end(), {"user", "pid"});
  rlimit core{};
  getrlimit(RLIMIT_CORE, &core);
  std::string skipped;
  for (const std::string& name : names) {
    if (name == "seccomp") continue;  // the next test
    SCOPED_TRACE(name);
    ASSERT_TRUE(probes.contains(name)) << "a step that no test needs";
    const Step& step = probes.at(name);
    std::string missing = found_.piece(step.piece)->missing;
    if (step.level > found_.level) missing = found_.why_not_more();
    if (name == "core" && core.rlim_max == 0) missing = "this process may leave no core dumps to begin with";
    if (!missing.empty()) {
      skipped += str(name, ": ", missing, "\n");
      continue;
    }
    std::set<std::string> without = step.without;
    without.insert("seccomp");
    EXPECT_EQ(with(without, step.attempt, "", step.level), kWorks);
    without.insert(name);
    EXPECT_NE(with(without, step.attempt, "", step.level), kWorks);
  }
  if (!skipped.empty()) GTEST_SKIP() << "not to be had on this host:\n" << skipped;
}

TEST_F(JailTest, TheFilterIsThereFromLevelProcessOn) {
  if (!has("seccomp")) GTEST_SKIP() << "seccomp: " << found_.piece("seccomp")->missing;
  const Attempt attempt = [] { return refused(syscall(SYS_getppid)); };
  EXPECT_EQ(with({}, attempt, "", Isolation::kProcess), kWorks);
  EXPECT_NE(with({"seccomp"}, attempt, "", Isolation::kProcess), kWorks);
  EXPECT_NE(with({}, attempt, "", Isolation::kNone), kWorks);
}

// The runner's end is the end of whatever it jailed, though the candidate does its best: it cannot clear the
// signal of its parent's death, and would sleep for minutes.
TEST_F(JailTest, ACandidateEndsWithItsRunner) {
  if (!has("seccomp")) GTEST_SKIP() << "seccomp: " << found_.piece("seccomp")->missing;
  for (const Isolation level : {Isolation::kProcess, Isolation::kStrict}) {
    if (level > found_.level) continue;
    int alive[2];
    ASSERT_EQ(pipe(alive), 0);
    const pid_t runner = fork();
    if (runner == 0) {
      close(alive[0]);
      const std::unique_ptr<Jail> jail = Jail::make(level, {"descriptors"});  // keeps the pipe open
      const pid_t me = getpid();
      if (jail->fork_child() == 0) {
        const bool in = jail->enter(me, alive[1]) && jail->shut();
        prctl(PR_SET_PDEATHSIG, 0);
        *page = in ? 'y' : 'n';
        if (syscall(SYS_write, 1, page, 0) == 0)
          for (;;) sleep(100);
      }
      usleep(100'000);
      _exit(0);
    }
    close(alive[1]);
    waitpid(runner, nullptr, 0);
    char c;
    EXPECT_EQ(read(alive[0], &c, 1), 0) << "end of file: nobody holds the other end any more";
    close(alive[0]);
  }
}

TEST(Isolation, LevelsFollowFromThePieces) {
  const auto level = [](std::set<std::string> missing) {
    std::vector<IsolationPiece> pieces;
    for (const char* name : {"seccomp", "own_uid", "nproc", "user", "pid", "mount", "net", "ipc", "uts"})
      pieces.push_back({name, missing.contains(name) ? "refused" : ""});
    return level_of(pieces);
  };
  EXPECT_EQ(level({}), Isolation::kStrict);
  EXPECT_EQ(level({"nproc"}), Isolation::kStrict);
  EXPECT_EQ(level({"own_uid"}), Isolation::kStrict) << "a user namespace does it";
  EXPECT_EQ(level({"user"}), Isolation::kStrict) << "an id of its own does it";
  EXPECT_EQ(level({"user", "own_uid"}), Isolation::kProcess);
  for (const char* name : {"pid", "mount", "net", "ipc", "uts"})
    EXPECT_EQ(level({name}), Isolation::kProcess) << name;
  EXPECT_EQ(level({"seccomp"}), Isolation::kNone);
}

TEST(Isolation, WhatIsMissingIsNamedInOneLine) {
  const IsolationFound found{.pieces = {{"seccomp", ""}, {"net", "No space left"}, {"uts", "refused"}}};
  EXPECT_EQ(found.why_not_more(), "net: No space left; uts: refused");
}

}  // namespace
}  // namespace tuner
