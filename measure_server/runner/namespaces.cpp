#include "measure_server/runner/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace tuner {
namespace {

constexpr int kEnteredByFork = CLONE_NEWUSER | CLONE_NEWPID;

// In the order in which they are entered: the first one gives the right to enter the others.
constexpr std::pair<int, const char*> kFiles[] = {{CLONE_NEWUSER, "user"}, {CLONE_NEWPID, "pid"},
                                                  {CLONE_NEWNET, "net"},   {CLONE_NEWIPC, "ipc"},
                                                  {CLONE_NEWUTS, "uts"},   {CLONE_NEWNS, "mnt"}};

// What the keeper says when it is ready, or why it is not.
struct Ready {
  int error = 0;
  char step[32] = "";
};

bool empty_root(Ready& ready) {
  const auto step = [&](const char* name, long result) {
    if (result == 0) return true;
    ready.error = errno;
    std::strncpy(ready.step, name, sizeof ready.step - 1);
    return false;
  };
  return step("make mounts private", mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr)) &&
         step("mount a tmpfs", mount("none", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                                     "size=4k,nr_inodes=2,mode=555")) &&
         step("enter it", chdir("/tmp")) && step("pivot_root", syscall(SYS_pivot_root, ".", ".")) &&
         step("detach the host's files", umount2(".", MNT_DETACH)) && step("leave it", chdir("/")) &&
         step("make it read-only", mount("none", "/", nullptr,
                                         MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
}

// The first process of the namespaces. Signals from inside do not reach it.
[[noreturn]] void keep(int flags, pid_t runner, int go, int tell) {
  prctl(PR_SET_NAME, "jail-keeper");
  char c;
  if (read(go, &c, 1) != 1) _exit(1);
  Ready ready;
  if ((flags & CLONE_NEWUSER) != 0 && (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)) {
    ready.error = errno;
    std::strncpy(ready.step, "become its user 0", sizeof ready.step - 1);
  }
  if (ready.error == 0 && (flags & CLONE_NEWNS) != 0) (void)empty_root(ready);
  // After the change of user, which clears it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t parent = getppid();
  if (parent != runner && parent != 0) _exit(1);
  signal(SIGCHLD, SIG_IGN);  // orphans of candidates end here, unseen
  const bool said = write(tell, &ready, sizeof ready) == static_cast<ssize_t>(sizeof ready);
  if (!said || ready.error != 0) _exit(1);
  syscall(SYS_close_range, 0u, ~0u, 0u);
  for (;;) pause();
}

bool write_text(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  close(fd);
  errno = error;
  return written;
}

Status map_user(pid_t keeper, uid_t outside) {
  const std::string folder = str("/proc/", keeper, "/");
  // Who is not root may map itself only, and must give up groups first.
  if (geteuid() != 0 && !write_text(folder + "setgroups", "deny"))
    return failed("giving up groups: ", std::strerror(errno));
  if (!write_text(folder + "uid_map", str("0 ", outside, " 1")))
    return failed("mapping its user: ", std::strerror(errno));
  if (!write_text(folder + "gid_map", str("0 ", geteuid() == 0 ? outside : getegid(), " 1")))
    return failed("mapping its group: ", std::strerror(errno));
  return Status::ok();
}

struct Pipe {
  int from = -1, to = -1;
  Pipe() {
    int both[2];
    if (pipe2(both, O_CLOEXEC) == 0) from = both[0], to = both[1];
  }
  ~Pipe() { close_from(), close_to(); }
  void close_from() {
    if (from >= 0) close(from);
    from = -1;
  }
  void close_to() {
    if (to >= 0) close(to);
    to = -1;
  }
};

}  // namespace

Result<std::unique_ptr<Namespaces>> Namespaces::make(int flags, uid_t outside_uid) {
  std::unique_ptr<Namespaces> made(new Namespaces());
  made->flags_ = flags;
  Pipe go, told;
  const pid_t runner = getpid();
  made->keeper_ = static_cast<pid_t>(syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (made->keeper_ < 0) return failed(std::strerror(errno));
  if (made->keeper_ == 0) {
    go.close_to();
    told.close_from();
    keep(flags, runner, go.from, told.to);
  }
  go.close_from();
  told.close_to();
  if ((flags & CLONE_NEWUSER) != 0) RETURN_IF_ERROR(map_user(made->keeper_, outside_uid));
  Ready ready;
  if (write(go.to, "g", 1) != 1 || read(told.from, &ready, sizeof ready) != sizeof ready)
    return failed("its first process ended at once");
  if (ready.error != 0) return failed(ready.step, ": ", std::strerror(ready.error));
  for (const auto& [flag, name] : kFiles) {
    if ((flags & flag) == 0) continue;
    const int fd = open(str("/proc/", made->keeper_, "/ns/", name).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failed("opening its ", name, " namespace: ", std::strerror(errno));
    made->files_.emplace_back(flag, fd);
  }
  return made;
}

bool Namespaces::is_kept() {
  if (lost_ && keeper_ > 0) end_keeper();
  if (keeper_ > 0 && waitpid(keeper_, nullptr, WNOHANG) != 0) keeper_ = -1;
  return keeper_ > 0;
}

// Returns 0 or errno.
int Namespaces::enter(int flags) const {
  for (const auto& [flag, fd] : files_)
    if ((flags & flag) != 0 && setns(fd, flag) != 0) return errno;
  return 0;
}

void Namespaces::end_keeper() {
  if (keeper_ <= 0) return;
  kill(keeper_, SIGKILL);
  while (waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
  keeper_ = -1;
}

Namespaces::~Namespaces() {
  end_keeper();
  for (const auto& [flag, fd] : files_) close(fd);
}

// Only children enter a process namespace, and whoever entered a user namespace cannot come back: so a
// process in between does both, forks, and ends. It borrows our memory (vfork), which spares it a copy. Its
// child comes to us as the subreaper, and goes on when it has: a parent's death signal asked for earlier
// would be that of the one in between.
pid_t Namespaces::fork_inside(int without) const {
  const int entered = flags_ & kEnteredByFork & ~without;
  if (entered == 0) return fork();
  int adopted[2];
  if (pipe2(adopted, O_CLOEXEC) != 0) return -1;
  volatile pid_t child = -1;
  volatile int error = 0;
  const pid_t between = vfork();
  if (between == 0) {
    pid_t forked = -1;
    error = enter(entered);
    if (error == 0) forked = fork();
    if (forked == 0) {
      close(adopted[1]);
      char c;
      while (read(adopted[0], &c, 1) < 0 && errno == EINTR) {
      }
      close(adopted[0]);
      return 0;
    }
    if (error == 0 && forked < 0) error = errno;
    child = forked;
    _exit(0);
  }
  if (between > 0)
    while (waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
    }
  close(adopted[0]);
  close(adopted[1]);
  lost_ = child < 0;
  if (between > 0 && child < 0) errno = error;
  return child;
}

int Namespaces::enter_rest(int without) const { return enter(flags_ & ~kEnteredByFork & ~without); }

}  // namespace tuner
