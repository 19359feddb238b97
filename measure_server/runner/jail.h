// Restricts what a candidate's process may do. The forked child enters the jail before it loads the first
// byte of the candidate.
#pragma once

#include <sys/types.h>

namespace tuner {

// First come limits that need no privilege: own session, dies with `runner`, no core dump, writes no files,
// is the kernel's first choice when memory runs out, and has no descriptors but 0..2 on /dev/null and
// `keep_fd`. That one is moved: its new number is returned, or -1 on failure. Then, if the kernel has it, a
// seccomp filter forbids new processes, signals to others, sockets, writing to files, and tracing. Threads
// are allowed. SPEC_ALLOW is set, because the default would turn on a mitigation (SSBD) that slows the code
// being timed.
int enter_jail(pid_t runner, int keep_fd);

// True if the kernel offers seccomp filters. Without them candidates are only watched.
bool seccomp_available();

// True if descriptors 0..2 are still the /dev/null of enter_jail().
bool descriptors_untouched();

}  // namespace tuner
