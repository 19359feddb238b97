#include "measure_server/runner/jail.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace tuner {

namespace {

#if defined(__x86_64__)
constexpr unsigned kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArch = AUDIT_ARCH_AARCH64;
#else
#error "seccomp: name the architecture here"
#endif

constexpr unsigned kDenied = SECCOMP_RET_ERRNO | EPERM;

// Builds the filter: one small block for each system call that is not simply allowed.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
  }
  void refuse(unsigned nr, unsigned with = kDenied) {
    add(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
    add(BPF_RET | BPF_K, with);
  }
  // Allowed only when the low half of argument `arg` is `value`.
  void only_if_equal(unsigned nr, int arg, unsigned value) {
    add(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 4);
    load(argument(arg));
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    add(BPF_RET | BPF_K, kDenied);
  }
  // Allowed only when (argument & mask) is 0 (or, with want_set, is not).
  void only_if_bits(unsigned nr, int arg, unsigned mask, bool want_set) {
    add(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 4);
    load(argument(arg));
    add(BPF_JMP | BPF_JSET | BPF_K, mask, want_set ? 1 : 0, want_set ? 0 : 1);
    add(BPF_RET | BPF_K, kDenied);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  bool install() {
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0;
  }

 private:
  static unsigned argument(int i) {
    return offsetof(seccomp_data, args) + 8 * i;
  }  // little-endian: the low half
  void load(unsigned offset) { add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void add(unsigned short op, unsigned k, unsigned char yes = 0, unsigned char no = 0) {
    code_.push_back({op, yes, no, k});
  }
  std::vector<sock_filter> code_;
};

void install_filter() {
  Filter f;
  const unsigned self = static_cast<unsigned>(getpid());
  // Signals to itself stay: abort() is one.
  f.only_if_equal(SYS_kill, 0, self);
  f.only_if_equal(SYS_tgkill, 0, self);
  // Threads, but no processes. clone3's flags lie in memory which a filter cannot read; libc falls back to
  // clone.
  f.only_if_bits(SYS_clone, 0, /*CLONE_THREAD*/ 0x10000, /*want_set=*/true);
  f.refuse(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
  // Reading files is how libraries are loaded; writing is not for kernels.
  constexpr unsigned kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
  f.only_if_bits(SYS_openat, 2, kWriting, /*want_set=*/false);
  f.only_if_equal(SYS_prlimit64, 0, 0);  // its own
  f.refuse(SYS_openat2, SECCOMP_RET_ERRNO | ENOSYS);
#if defined(__x86_64__)
  f.only_if_bits(SYS_open, 1, kWriting, /*want_set=*/false);
  for (unsigned nr : {SYS_fork, SYS_vfork, SYS_creat, SYS_unlink, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_link,
                      SYS_symlink, SYS_mknod, SYS_chmod, SYS_chown, SYS_lchown})
    f.refuse(nr);
#endif
  for (unsigned nr : {SYS_execve,
                      SYS_execveat,
                      SYS_ptrace,
                      SYS_process_vm_readv,
                      SYS_process_vm_writev,
                      SYS_tkill,
                      SYS_rt_sigqueueinfo,
                      SYS_rt_tgsigqueueinfo,
                      SYS_pidfd_open,
                      SYS_pidfd_send_signal,
                      SYS_pidfd_getfd,
                      SYS_setsid,
                      SYS_setpgid,
                      SYS_setns,
                      SYS_unshare,
                      SYS_socket,
                      SYS_socketpair,
                      SYS_connect,
                      SYS_bind,
                      SYS_unlinkat,
                      SYS_renameat2,
                      SYS_mkdirat,
                      SYS_linkat,
                      SYS_symlinkat,
                      SYS_mknodat,
                      SYS_fchmodat,
                      SYS_fchownat,
                      SYS_fchmod,
                      SYS_fchown,
                      SYS_truncate,
                      SYS_mount,
                      SYS_umount2,
                      SYS_pivot_root,
                      SYS_chroot,
                      SYS_reboot,
                      SYS_io_uring_setup,
                      SYS_bpf,
                      SYS_userfaultfd,
                      SYS_perf_event_open,
                      SYS_keyctl,
                      SYS_add_key,
                      SYS_init_module,
                      SYS_finit_module,
                      SYS_delete_module,
                      SYS_kexec_load,
                      SYS_setpriority,
                      SYS_sched_setscheduler,
                      SYS_sched_setattr,
                      SYS_shmget,
                      SYS_shmat,
                      SYS_msgget,
                      SYS_semget,
                      SYS_mq_open,
                      SYS_setrlimit})
    f.refuse(nr);
  (void)f.install();  // where the kernel has none, ProbeReply::isolation says so
}

void limit(__rlimit_resource resource, rlim_t value) {
  const rlimit r{value, value};
  setrlimit(resource, &r);
}

}  // namespace

bool seccomp_available() {
  const unsigned action = SECCOMP_RET_ERRNO;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int enter_jail(pid_t runner, int keep_fd) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != runner) _exit(1);  // it died before the line above
  prctl(PR_SET_NAME, "candidate");
  const int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (oom >= 0) {
    (void)!write(oom, "1000", 4);
    close(oom);
  }
  const int null = open("/dev/null", O_RDWR);
  if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0) return -1;
  if (keep_fd != 3 && dup2(keep_fd, 3) < 0) return -1;
  if (syscall(SYS_close_range, 4u, ~0u, 0u) != 0)
    for (int fd = 4; fd < 1024; ++fd) close(fd);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, 64);
  install_filter();
  return 3;
}

bool descriptors_untouched() {
  for (int fd = 0; fd <= 2; ++fd) {
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)) return false;
  }
  return true;
}

}  // namespace tuner
