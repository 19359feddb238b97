// What a candidate tries to do to the machine it runs on, at every level of isolation that promises to refuse
// it. A refused call is no crime: the candidate goes on, and is right.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/measure_server/hostile_fixture.h"

namespace tuner {
namespace {

struct Program {
  const char* name;
  Isolation from;  // the lowest level that contains it
  // Of the kernel. REFUSED(call) aborts unless the call fails with EPERM, FAILS unless it fails.
  const char* body;
  Outcome outcome = Outcome::kOk;
  const char* message = "";  // a part of it
};

constexpr Isolation kNone = Isolation::kNone, kProcess = Isolation::kProcess;

const Program kPrograms[] = {
    // Signals.
    {"OwnerOfAPipeIsTheRunner", kProcess,
     "int p[2]; REFUSED(pipe(p)); REFUSED(fcntl(0, F_SETOWN, getppid())); REFUSED(fcntl(0, 10, SIGKILL));"},
    {"SignalsProcessOne", kProcess, "REFUSED(kill(1, SIGTERM));"},
    {"SignalsAllItMay", kProcess, "REFUSED(kill(-1, SIGKILL));"},
    {"SignalsItsGroup", kProcess, "REFUSED(kill(0, SIGKILL));"},
    {"SignalsAThreadOfAnother", kProcess, "REFUSED(syscall(SYS_tgkill, 1, 1, SIGKILL));"},
    {"SignalsByTkill", kProcess, "REFUSED(syscall(SYS_tkill, 1, SIGKILL));"},
    {"QueuesASignal", kProcess, "siginfo_t i = {0}; REFUSED(syscall(SYS_rt_sigqueueinfo, 1, SIGKILL, &i));"},
    {"OpensAProcess", kProcess, "REFUSED(syscall(SYS_pidfd_open, 1, 0));"},
    {"ArmsATimer", kProcess,
     "struct itimerval t = {{0, 1}, {0, 1}}; REFUSED(setitimer(ITIMER_REAL, &t, 0));"},
    {"MakesATimerForAnother", kProcess,
     "timer_t t; REFUSED(syscall(SYS_timer_create, CLOCK_REALTIME, 0, &t));"},
    {"ClearsTheSignalOfItsParentsDeath", kProcess, "REFUSED(prctl(PR_SET_PDEATHSIG, 0));"},
    {"LeavesItsSession", kProcess, "REFUSED(setsid()); REFUSED(setpgid(0, 0));"},
    // Files.
    {"RenamesFiles", kProcess,
     "REFUSED(rename(\"/tmp/a\", \"/tmp/b\")); REFUSED(renameat(-100, \"/tmp/a\", -100, \"/tmp/b\"));"},
    {"RenamesFilesByTheNewCall", kProcess,
     "REFUSED(syscall(SYS_renameat2, -100, \"/tmp/a\", -100, \"/tmp/b\", 0));"},
    {"ChangesModes", kProcess,
     "REFUSED(chmod(\"/tmp\", 0)); REFUSED(fchmod(0, 0)); REFUSED(fchmodat(-100, \"/tmp\", 0, 0));"},
    {"ChangesModesByTheNewCall", kProcess, "REFUSED(syscall(452, -100, \"/tmp\", 0, 0));"},
    {"ChangesTimesOfFiles", kProcess, "REFUSED(utimensat(-100, \"/tmp\", 0, 0));"},
    {"ChangesOwners", kProcess, "REFUSED(chown(\"/tmp\", 1, 1)); REFUSED(fchown(0, 1, 1));"},
    {"RemovesFiles", kProcess,
     "REFUSED(unlink(\"/tmp/a\")); REFUSED(unlinkat(-100, \"/tmp/a\", 0)); REFUSED(rmdir(\"/tmp/a\"));"},
    {"MakesFolders", kProcess, "REFUSED(mkdir(\"/tmp/a\", 0700)); REFUSED(mkdirat(-100, \"/tmp/a\", 0700));"},
    {"MakesLinks", kProcess,
     "REFUSED(symlink(\"a\", \"/tmp/b\")); REFUSED(link(\"/etc/passwd\", \"/tmp/b\"));"},
    {"MakesNodes", kProcess, "REFUSED(mknod(\"/tmp/a\", 0600, 0));"},
    {"CutsFiles", kProcess, "REFUSED(truncate(\"/etc/passwd\", 0)); REFUSED(ftruncate(0, 0));"},
    {"ReadsFiles", kProcess,
     "REFUSED(open(\"/etc/passwd\", O_RDONLY)); REFUSED(open(\"/proc/self/maps\", O_RDONLY));"},
    {"ReadsFilesByTheNewCall", kProcess,
     "long how[3] = {0}; REFUSED(syscall(437, -100, \"/etc/passwd\", how, sizeof how));"},
    {"LooksForFiles", kProcess,
     "struct stat s; REFUSED(stat(\"/etc/passwd\", &s)); REFUSED(access(\"/etc/passwd\", 0)); char b[9]; "
     "REFUSED(readlink(\"/proc/self/exe\", b, 9));"},
    {"OpensTheCandidateForWriting", kProcess,
     "int fd = open(\"/proc/self/fd/3\", O_RDWR); if (write(fd, \"x\", 1) >= 0) abort();"},
    {"MakesAFileInMemory", kProcess, "REFUSED(memfd_create(\"x\", 0));"},
    {"FillsADisk", kNone,
     "int fd = open(\"/tmp\", O_TMPFILE | O_RDWR, 0600); signal(SIGXFSZ, SIG_IGN); if (write(fd, \"x\", 1) "
     ">= 0) abort();"},
    {"WritesToADescriptorItFinds", kProcess,
     "for (int fd = 3; fd < 64; ++fd) if (write(fd, \"x\", 1) >= 0) abort();"},
    {"DuplicatesDescriptors", kProcess,
     "REFUSED(dup(0)); REFUSED(dup2(0, 9)); REFUSED(fcntl(0, F_DUPFD, 9));"},
    {"SplicesDescriptors", kProcess, "REFUSED(splice(0, 0, 1, 0, 1, 0)); REFUSED(sendfile(1, 0, 0, 1));"},
    {"AsksTheTerminal", kProcess,
     "int x; REFUSED(ioctl(0, TIOCSTI, \"x\")); REFUSED(ioctl(0, FIONREAD, &x));"},
    {"LocksFiles", kProcess, "REFUSED(flock(0, LOCK_EX));"},
    {"WatchesFiles", kProcess, "REFUSED(inotify_init()); REFUSED(syscall(SYS_fanotify_init, 0, 0));"},
    // Network and messages.
    {"OpensASocket", kProcess,
     "REFUSED(socket(AF_INET, SOCK_STREAM, 0)); REFUSED(socket(AF_UNIX, SOCK_STREAM, 0)); REFUSED(socket(16, "
     "SOCK_RAW, 0));"},
    {"OpensAPairOfSockets", kProcess, "int p[2]; REFUSED(socketpair(AF_UNIX, SOCK_STREAM, 0, p));"},
    {"SharesMemory", kProcess,
     "REFUSED(shmget(1, 4096, 01600)); REFUSED(msgget(1, 01600)); REFUSED(semget(1, 1, 01600));"},
    {"OpensAQueue", kProcess, "REFUSED(syscall(SYS_mq_open, \"x\", O_CREAT | O_RDWR, 0600, 0));"},
    {"SubmitsToARing", kProcess, "char p[256] = {0}; REFUSED(syscall(SYS_io_uring_setup, 1, p));"},
    // Other processes.
    {"LooksIntoItsParent", kProcess,
     "char c; struct iovec v = {&c, 1}; REFUSED(syscall(SYS_process_vm_readv, 1, &v, 1, &v, 1, 0));"},
    {"WritesIntoItsParent", kProcess,
     "char c; struct iovec v = {&c, 1}; REFUSED(syscall(SYS_process_vm_writev, 1, &v, 1, &v, 1, 0));"},
    {"TracesAProcess", kProcess,
     "REFUSED(ptrace(PTRACE_ATTACH, 1, 0, 0)); REFUSED(ptrace(PTRACE_TRACEME, 0, 0, 0));"},
    {"LimitsAProcess", kProcess,
     "struct rlimit r = {0, 0}; REFUSED(prlimit(1, RLIMIT_CPU, &r, 0)); REFUSED(setrlimit(RLIMIT_CPU, &r));"},
    {"StartsThreeThousandThreads", kNone,
     "pthread_t t; for (int i = 0; i < 3000; ++i) if (pthread_create(&t, 0, (void* (*)(void*))pause, 0) == "
     "0) abort();"},
    {"StartsProcessesInEveryWay", kNone,
     "FAILS(fork()); FAILS(vfork()); FAILS(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); long a[11] = {0}; "
     "FAILS(syscall(SYS_clone3, a, sizeof a));"},
    {"StartsAProgram", kProcess,
     "char* a[] = {\"sh\", 0}; REFUSED(execv(\"/bin/sh\", a)); REFUSED(syscall(SYS_execveat, -100, "
     "\"/bin/sh\", a, 0, 0));"},
    {"LeavesItsCpus", kProcess,
     "cpu_set_t s; memset(&s, 255, sizeof s); REFUSED(sched_setaffinity(0, sizeof s, &s));"},
    {"RaisesItsPriority", kProcess,
     "struct sched_param p = {1}; REFUSED(setpriority(0, 0, -5)); REFUSED(sched_setscheduler(0, SCHED_FIFO, "
     "&p));"},
    {"LocksByPriority", kProcess, "int word = 0; REFUSED(syscall(SYS_futex, &word, 6, 0, 0, 0, 0));"},
    // The kernel.
    {"BecomesRoot", kNone,
     "FAILS(setuid(0)); FAILS(setresuid(0, 0, 0)); FAILS(setgid(0)); if (geteuid() == 0 && getuid() == 0 && "
     "setuid(1) == 0) abort();"},
    {"MakesNamespaces", kProcess, "REFUSED(unshare(CLONE_NEWUSER)); REFUSED(setns(0, 0));"},
    {"Mounts", kNone,
     "FAILS(mount(\"none\", \"/tmp\", \"tmpfs\", 0, 0)); FAILS(umount2(\"/\", MNT_DETACH)); "
     "FAILS(chroot(\"/\"));"},
    {"NamesTheHost", kNone, "FAILS(sethostname(\"x\", 1));"},
    {"SetsTheClock", kNone, "struct timespec t = {0, 0}; FAILS(clock_settime(CLOCK_REALTIME, &t));"},
    {"LoadsAProgramIntoTheKernel", kProcess, "char a[128] = {0}; REFUSED(syscall(SYS_bpf, 0, a, sizeof a));"},
    {"HandlesFaults", kProcess, "REFUSED(syscall(SYS_userfaultfd, 0));"},
    {"CountsEvents", kProcess, "char a[128] = {0}; REFUSED(syscall(SYS_perf_event_open, a, 0, -1, -1, 0));"},
    {"KeepsKeys", kProcess,
     "REFUSED(syscall(SYS_keyctl, 0, 0)); REFUSED(syscall(SYS_add_key, \"user\", \"x\", \"y\", 1, -1));"},
    {"FiltersItself", kProcess, "REFUSED(syscall(SYS_seccomp, 0, 0, 0)); REFUSED(prctl(PR_SET_SECCOMP, 1));"},
    {"BecomesDumpable", kProcess, "REFUSED(prctl(PR_SET_DUMPABLE, 1));"},
    {"ChangesItsPersonality", kProcess, "REFUSED(personality(0));"},
    {"LocksMemory", kProcess, "REFUSED(mlockall(MCL_CURRENT));"},
    {"Reboots", kNone, "FAILS(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, 0));"},
#if defined(__x86_64__)
    {"CallsByTheOldGate", kProcess,
     "long r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20) : \"memory\"); return r < 0;",
     Outcome::kCrashed, "signal 31 (SIGSYS)"},
    {"CallsByTheNumbersOfX32", kProcess, "REFUSED(syscall(0x40000000 + 110));"},
    {"ChangesItsSegments", kProcess, "REFUSED(syscall(SYS_arch_prctl, 0x1011, 0));"},
#endif
    // Our own means.
    {"DropsOurHandlerAndOpens", kProcess, "signal(SIGSYS, SIG_DFL); open(\"/etc/passwd\", O_RDONLY);",
     Outcome::kCrashed, "signal 31 (SIGSYS)"},
    {"BlocksOurHandlerAndOpens", kProcess,
     "sigset_t s; sigfillset(&s); sigprocmask(SIG_SETMASK, &s, 0); open(\"/etc/passwd\", O_RDONLY);",
     Outcome::kCrashed, "signal 31 (SIGSYS)"},
    {"MakesItsInputWritable", kNone,
     "FAILS(mprotect((void*)((long)args[0] & -4096), 4096, PROT_READ | PROT_WRITE));"},
    {"TakesItsOutputAway", kNone,
     "static int n; doubling_right(args); if (n++ == 1) munmap((void*)((long)args[1] & -4096), 4096);",
     Outcome::kCrashed, "signal 11 (SIGSEGV)"},
    {"OpensWithoutAPath", kProcess, "syscall(SYS_openat, -100, (char*)8, 0);", Outcome::kCrashed,
     "signal 11 (SIGSEGV)"},
};

std::string text_of(const Program& p) {
  return str(R"(
#include <errno.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#define REFUSED(call) do { errno = 0; if ((long)(call) >= 0 || errno != EPERM) abort(); } while (0)
#define FAILS(call) do { if ((long)(call) >= 0) abort(); } while (0)
int32_t doubling(void* const* args, const tuner_runtime* rt) {
)",
             p.body, "\n  return doubling_right(args);\n}\n");
}

// False where the system has no 32-bit calls at all: the instruction then is a fault, whoever uses it.
bool has_old_gate() {
#if defined(__x86_64__)
  const pid_t child = ::fork();
  if (child == 0) {
    long r = 20;  // getpid
    __asm__ volatile("int $0x80" : "+a"(r) : : "memory");
    ::_exit(0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status);
#else
  return false;
#endif
}

class HostileProgram : public HostileTest, public testing::WithParamInterface<std::tuple<Isolation, size_t>> {
 protected:
  Isolation level() const override { return std::get<0>(GetParam()); }
  const Program& program() const { return kPrograms[std::get<1>(GetParam())]; }
};

TEST_P(HostileProgram, CostsOneTrial) {
  const Program& p = program();
  if (level() < p.from) GTEST_SKIP() << "promised from level " << isolation_name(p.from) << " on";
  const RunReply r = run(request(build(text_of(p))));
  EXPECT_EQ(r.outcome, p.outcome) << r.message;
  const bool faults = std::string_view(p.name) == "CallsByTheOldGate" && !has_old_gate();
  EXPECT_THAT(r.message, testing::HasSubstr(faults ? "signal 11 (SIGSEGV)" : p.message));
}

INSTANTIATE_TEST_SUITE_P(Level, HostileProgram,
                         testing::Combine(testing::Values(kNone, kProcess, Isolation::kStrict),
                                          testing::Range<size_t>(0, std::size(kPrograms))),
                         [](const auto& info) {
                           return str(isolation_name(std::get<0>(info.param)), "_",
                                      kPrograms[std::get<1>(info.param)].name);
                         });

// From the very beginning: code that runs while the object is loaded is refused all the same.
class HostileConstructor : public HostileTest {
 protected:
  Isolation level() const override { return Isolation::kProcess; }
};

TEST_F(HostileConstructor, ReadsTheReferenceWhileItIsLoaded) {
  const RunReply r =
      run(request(build(str(R"(
    #include <errno.h>
    __attribute__((constructor)) static void load(void) {
      if (open(")",
                            (dir_ / "out.ref").string(), R"(", O_RDONLY) >= 0 || errno != EPERM) abort();
    }
    int32_t doubling(void* const* args, const tuner_runtime* rt) { return doubling_right(args); })"))));
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
}

TEST_F(HostileConstructor, NeedsALibraryThatIsNotHere) {
  const std::string object = (dir_ / "libstray.so").string();
  ASSERT_EQ(std::system(
                ("echo 'int stray(void) { return 0; }' | cc -shared -fPIC -x c -o " + object + " -").c_str()),
            0);
  const RunReply r = run(request(build(str(R"(
    #include <dlfcn.h>
    int32_t doubling(void* const* args, const tuner_runtime* rt) {
      return dlopen(")",
                                           object, R"(", RTLD_NOW) != 0 ? -9 : doubling_right(args); })"))));
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.message;
}

}  // namespace
}  // namespace tuner
