// Runs programs as children of this process. Each is started, waited for and ended by its process id alone.
//
// It uses posix_spawn, since a process that uses gRPC must not fork without exec. (Candidates are forked by
// the runner: measure_server/runner/candidate_run.cpp.)
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct ChildProgram {
  std::string path;
  std::vector<std::string> words;  // argv, its own name first
  // An open descriptor that the child gets as kHandedOver; it stays open here. -1: none.
  int handed_over = -1;
  // File to which its output is appended. Empty: its output goes where ours does.
  std::string log;
  // True: asking_signals() do not reach it. Batch systems send them to every process of a job; they mean the
  // owner, which ends this child in order.
  bool deaf = false;
};
inline constexpr int kHandedOver = 3;

// Starts the program in its own process group: Ctrl-C at a terminal reaches only us, and we end the child in
// order. It gets the default signal handlers, an empty input, and none of our other descriptors, because a
// lock file or a listening socket would outlive us in it. A process that an emulator runs (qemu-user) starts
// programs of its own architecture under the same emulator. Failed: what the system says.
Result<pid_t> start_program(const ChildProgram& program);

// Returns the status as waitpid() gives it, or nothing while the child runs. A returned status means that the
// child is reaped; for a child that was reaped before, the status is 0.
std::optional<int> status_if_ended(pid_t pid);
std::optional<int> wait_for_end(pid_t pid, std::chrono::milliseconds limit);
// Asks the child to end (SIGTERM), kills it after `grace`, and reaps it. Without grace it is killed at once.
int end_program(pid_t pid, std::chrono::milliseconds grace);

// The signals that ask a process to end or to take note: TERM, INT, HUP, QUIT, USR1 and USR2.
sigset_t asking_signals();
// True for signals that come from other processes or from the system, as a rule: the asking ones, KILL and
// XCPU. A process that ended by one of them may be innocent.
bool is_from_outside(int signal);

// Returns "signal 9 (SIGKILL)" or "exit status 1".
std::string ending_text(int status);
std::string signal_text(int signal);

}  // namespace tuner
