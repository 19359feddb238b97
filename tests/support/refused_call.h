// What a process does where the system refuses one kind of call with an error of our choice: a file system
// without locks, a service that is missing. In a child, by a filter of system calls (seccomp).
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

namespace tuner {

// For this process, for good: `call` (SYS_flock) fails with `error` (ENOLCK). False: this kernel takes no
// filters.
inline bool refuse_call(long call, int error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<__u32>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = sizeof program / sizeof *program, .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Whether `holds()` is true in a child where the call fails.
template <class F>
bool holds_where_refused(long call, int error, const F& holds) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(refuse_call(call, error) && holds() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace tuner
