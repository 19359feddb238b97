// What a candidate's process may not do. Entered in the forked child before the first byte of the candidate
// is loaded.
#pragma once

#include <sys/types.h>

namespace tuner {

// Limits that need no privilege: own session, dies with `runner`, no core dump, no files written, first
// choice of the kernel when memory runs out, descriptors 0..2 on /dev/null and no others but `keep_fd`
// (moved; the new number is returned, -1 on failure). Then, where the kernel has it, a seccomp filter: no new
// processes, no signals to others, no sockets, no writing to files, no tracing. Threads are free. The filter
// is installed with SPEC_ALLOW, because the default would turn on a mitigation (SSBD) which slows the very
// code that is being timed.
int enter_jail(pid_t runner, int keep_fd);

// Whether the kernel offers seccomp filters. Without them candidates are only watched.
bool seccomp_available();

// 0..2 are still the /dev/null given by enter_jail().
bool descriptors_untouched();

}  // namespace tuner
