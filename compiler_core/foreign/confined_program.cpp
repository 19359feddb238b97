#include "compiler_core/foreign/confined_program.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Of newer headers than Debian 12's.
constexpr uint64_t kTruncate = uint64_t{1} << 14, kIoctl = uint64_t{1} << 15;
// Ids that neither distributions nor systemd give to anybody (60578 to 61183).
constexpr uid_t kNobodys = 60'600;
constexpr uint64_t kAnyNetwork = 3;
constexpr uint64_t kScoped = 3;  // no signals to others, no abstract sockets
struct RulesetAttributes {
  uint64_t handled_files = 0, handled_network = 0, scoped = 0;
};

int landlock_version() {
  return static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
}

class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }
  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

constexpr uint64_t kRead =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                              LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctl;

// The right to files below `path`; a path that is not there gives none.
Status allow(int ruleset, const std::string& path, uint64_t access, uint64_t handled) {
  const File place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (place.fd() < 0) return errno == ENOENT ? Status::ok() : failed(path, ": ", std::strerror(errno));
  struct stat info {};
  if (::fstat(place.fd(), &info) != 0) return failed(path, ": ", std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) access &= kOfFiles;
  landlock_path_beneath_attr rule{.allowed_access = access & handled, .parent_fd = place.fd()};
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return failed(path, ": landlock_add_rule: ", std::strerror(errno));
  return Status::ok();
}

// A descriptor of the rules.
Result<int> rules_for(const ConfinedProgram& program) {
  const int version = landlock_version();
  uint64_t handled = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // all of version 1
  if (version >= 2) handled |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) handled |= kTruncate;
  if (version >= 5) handled |= kIoctl;
  RulesetAttributes all{.handled_files = handled,
                        .handled_network = version >= 4 ? kAnyNetwork : 0,
                        .scoped = version >= 6 ? kScoped : 0};
  const size_t size = version >= 6 ? sizeof all : version >= 4 ? 16 : 8;
  const int ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &all, size, 0));
  if (ruleset < 0) return failed("landlock_create_ruleset: ", std::strerror(errno));
  Status allowed =
      allow(ruleset, program.folder,
            handled & ~uint64_t{LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK}, handled);
  for (const char* path :
       {"/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache"})
    if (allowed) allowed = allow(ruleset, path, kRead, handled);
  for (const std::string& path : program.readable)
    if (allowed) allowed = allow(ruleset, path, kRead, handled);
  if (allowed)
    allowed =
        allow(ruleset, "/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE, handled);
  if (allowed) return ruleset;
  ::close(ruleset);
  return allowed;
}

// All that the child needs, made before it is forked: between fork and exec it calls the kernel and nothing
// else.
struct Prepared {
  std::vector<char*> words, environment;
  std::vector<std::string> texts;
  int rules = -1;
  uid_t user = 0;  // 0: as it is
  cpu_set_t cpus{};
  int64_t most_cpus = 1;  // that its threads may use at a time
};

// What the child says of itself: the step that was refused, and why; step 0: when it called exec.
struct Told {
  int step = 0, error = 0;
  int64_t at_ns = 0;
};

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// The folder and all in it become that user's.
Status give_to(const std::string& folder, uid_t user) {
  std::error_code error;
  if (::lchown(folder.c_str(), user, user) != 0) return failed(folder, ": ", std::strerror(errno));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error))
    if (::lchown(entry.path().c_str(), user, user) != 0)
      return failed(entry.path().string(), ": ", std::strerror(errno));
  return error ? failed(folder, ": ", error.message()) : Status::ok();
}

void limit(int resource, int64_t most) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &now) != 0) return;
  now.rlim_cur = now.rlim_max = std::min(static_cast<rlim_t>(most), now.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource>(resource), &now);
}

// In the child. Where a step is refused, its number and errno are told, and nothing has run.
[[noreturn]] void become(const ConfinedProgram& program, const Prepared& prepared, pid_t parent, int output,
                         int told) {
  const auto tell = [&told](const Told& what) {
    [[maybe_unused]] const ssize_t n = ::write(told, &what, sizeof what);
  };
  const auto refuse = [&tell](int step) {
    tell({.step = step, .error = errno});
    ::_exit(127);
  };
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  if (::setsid() < 0) refuse(1);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) refuse(2);
  // Out of the way of 0 to 4 first.
  const int said = ::fcntl(output, F_DUPFD, 10), refused = ::fcntl(told, F_DUPFD, 10);
  const int confined = prepared.rules < 0 ? -1 : ::fcntl(prepared.rules, F_DUPFD, 10);
  const int null = ::open("/dev/null", O_RDWR);
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(said, 1) < 0 || ::dup2(said, 2) < 0) refuse(3);
  if (::dup2(refused, 3) < 0 || ::fcntl(3, F_SETFD, FD_CLOEXEC) != 0)
    refuse(4);  // closes with exec: all went well
  told = 3;
  const int rules = confined < 0 ? -1 : ::dup2(confined, 4);
  ::syscall(SYS_close_range, rules < 0 ? 4 : 5, ~0U, 0);
  if (::chdir(program.folder.c_str()) != 0) refuse(5);
  limit(RLIMIT_AS, program.memory_bytes);
  limit(RLIMIT_FSIZE, program.file_bytes);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, 256);
  limit(RLIMIT_CPU, (program.deadline.count() / 1000 + 2) * prepared.most_cpus);
  // Nobody's network, where we may make one. Without it Landlock refuses connections.
  if (program.untrusted && ::unshare(CLONE_NEWNET) != 0) ::unshare(CLONE_NEWUSER | CLONE_NEWNET);
  if (!program.cpus.empty() && ::sched_setaffinity(0, sizeof prepared.cpus, &prepared.cpus) != 0) refuse(10);
  // Privileges go with root; groups first.
  if (prepared.user != 0 && (::syscall(SYS_setgroups, 0, nullptr) != 0 ||
                             ::syscall(SYS_setresgid, prepared.user, prepared.user, prepared.user) != 0 ||
                             ::syscall(SYS_setresuid, prepared.user, prepared.user, prepared.user) != 0))
    refuse(9);
  // Of that user, who has no other processes; of any other one it would count all.
  if (prepared.user != 0) limit(RLIMIT_NPROC, 512);
  // The change of user clears it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) refuse(2);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) refuse(6);
  if (rules >= 0 && ::syscall(SYS_landlock_restrict_self, rules, 0) != 0) refuse(7);
  if (rules >= 0) ::close(rules);
  tell({.at_ns = now_ns()});
  ::execve(program.path.c_str(), prepared.words.data(), prepared.environment.data());
  refuse(8);
  ::_exit(127);
}

// Reads what it says until it ends, the time is over, or somebody stops it.
void listen(int output, pid_t pid, const ConfinedProgram& program, ConfinedEnd& end) {
  const int64_t look_ms = program.stop ? 50 : 1000;
  const auto until = steady_clock::now() + program.deadline;
  const File ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
  bool open = true;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
    end.timed_out = left <= 0;
    end.stopped = program.stop && program.stop();
    if (end.timed_out || end.stopped) return;
    pollfd wait[2] = {{ended.fd(), POLLIN, 0}, {open ? output : -1, POLLIN, 0}};
    if (::poll(wait, 2, static_cast<int>(std::min<int64_t>(left, look_ms))) < 0 && errno != EINTR) {
      end.timed_out = true;
      return;
    }
    char piece[4096];
    if (open && wait[1].revents != 0) {
      const ssize_t n = ::read(output, piece, sizeof piece);
      if (n > 0)
        end.output.append(piece, std::min(static_cast<size_t>(n), program.output_bytes - end.output.size()));
      open = n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
      continue;  // all that was said before it ended is read first
    }
    if (wait[0].revents != 0) return;
  }
}

}  // namespace

Status can_confine() {
  if (landlock_version() >= 1) return Status::ok();
  return unavailable(
      "this kernel has no Landlock (", std::strerror(errno),
      "): code of users cannot be confined; Linux 5.13 or newer, booted with lsm=landlock, has it");
}

Result<ConfinedEnd> run_confined(const ConfinedProgram& program, bool confine) {
  Prepared prepared;
  prepared.texts = program.words;
  for (const char* text : {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"})
    prepared.texts.emplace_back(text);
  prepared.texts.push_back("TMPDIR=" + program.folder);
  prepared.texts.push_back("HOME=" + program.folder);
  prepared.texts.insert(prepared.texts.end(), program.environment.begin(), program.environment.end());
  if (program.untrusted && ::geteuid() == 0) {
    prepared.user = kNobodys + static_cast<uid_t>(::getpid()) % 500;
    RETURN_IF_ERROR(give_to(program.folder, prepared.user));
  }
  for (size_t i = 0; i < prepared.texts.size(); ++i)
    (i < program.words.size() ? prepared.words : prepared.environment).push_back(prepared.texts[i].data());
  prepared.words.push_back(nullptr);
  prepared.environment.push_back(nullptr);
  prepared.most_cpus = std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L);
  for (const int cpu : program.cpus) CPU_SET(static_cast<size_t>(cpu), &prepared.cpus);
  if (confine) {
    RETURN_IF_ERROR(can_confine());
    ASSIGN_OR_RETURN(prepared.rules, rules_for(program));
  }
  const File rules(prepared.rules);
  int output[2], told[2];
  if (::pipe2(output, O_CLOEXEC) != 0) return failed("pipe: ", std::strerror(errno));
  File output_in(output[1]);
  const File output_out(output[0]);
  if (::pipe2(told, O_CLOEXEC) != 0) return failed("pipe: ", std::strerror(errno));
  File told_in(told[1]);
  const File told_out(told[0]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::_Fork();  // no handlers of libraries: the child runs none of their code
  if (pid < 0) return failed(program.path, ": cannot be started: ", std::strerror(errno));
  if (pid == 0) become(program, prepared, parent, output_in.fd(), told_in.fd());
  output_in.close();
  told_in.close();
  ConfinedEnd end;
  listen(output_out.fd(), pid, program, end);
  const int64_t ended_ns = now_ns();
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
  rusage used{};
  while (::wait4(pid, &end.status, 0, &used) < 0 && errno == EINTR) {
  }
  const auto ns_of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_usec) * 1e3;
  };
  end.cpu_ns = ns_of(used.ru_utime) + ns_of(used.ru_stime);
  Told said;
  while (::read(told_out.fd(), &said, sizeof said) == sizeof said)
    if (said.step == 0) end.wall_ns = static_cast<double>(ended_ns - said.at_ns);
  if (said.step == 0) return end;
  static constexpr const char* kSteps[] = {
      "",        "setsid",       "parent's death",         "/dev/null", "descriptors",
      "chdir",   "no_new_privs", "landlock_restrict_self", "exec",      "another user",
      "its CPUs"};
  return failed(program.path, ": cannot be started: ", kSteps[std::clamp(said.step, 0, 10)], ": ",
                std::strerror(said.error));
}

}  // namespace tuner
