// Programs that run as children of this process: started, waited for, ended, each by its process id alone.
//
// By posix_spawn, since a process that uses gRPC must not fork without exec. (The runner's children for
// candidates, which do fork, are measure_server/runner/candidate_run.cpp's.)
#pragma once

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
  // Descriptor kHandedOver of the child; stays open here. -1: none.
  int handed_over = -1;
  // File that its output is appended to. Empty: where ours goes.
  std::string log;
};
inline constexpr int kHandedOver = 3;

// Starts the program in a process group of its own (Ctrl-C at a terminal reaches us, and we end it in order),
// with the signals of a login, its input empty, and none of our other descriptors: a lock file or a listening
// socket would outlive us in it. Failed: what the system says.
Result<pid_t> start_program(const ChildProgram& program);

// How it ended, as waitpid() puts it, or nothing while it runs. Whoever gets a status has reaped the child;
// of one that was reaped before it is 0.
std::optional<int> status_if_ended(pid_t pid);
std::optional<int> wait_for_end(pid_t pid, std::chrono::milliseconds limit);
// Asks it to end (SIGTERM), kills it when `grace` is over, and reaps it. Without grace it is killed at once.
int end_program(pid_t pid, std::chrono::milliseconds grace);

// "signal 9 (SIGKILL)", "exit status 1".
std::string ending_text(int status);
std::string signal_text(int signal);

}  // namespace tuner
