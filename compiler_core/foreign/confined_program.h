// Runs a program that may read the system's folders and its own, and write its own only.
//
// By Landlock: for the process and all that it starts, from before its first instruction. It sees no network
// (where the kernel has that, 6.7; code of strangers also by a namespace of its own, where one is to be had),
// can gain no rights, and has limits for time, memory, files and output.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct ConfinedProgram {
  std::string path;                   // absolute
  std::vector<std::string> words;     // argv, its own name first
  std::string folder;                 // where it runs; it may read and write here
  std::vector<std::string> readable;  // further files and folders that it may read and execute
  std::chrono::milliseconds deadline{60'000};
  int64_t memory_bytes = int64_t{4} << 30;  // addresses of each process
  int64_t file_bytes = int64_t{256} << 20;  // of each file it writes
  size_t output_bytes = size_t{64} << 10;   // of what it says; the rest is read and dropped
  std::vector<std::string> environment;     // NAME=VALUE, beside PATH, LC_ALL, TMPDIR and HOME
  // Code of a stranger's. Where we are root, it runs as a user that nobody else is, to whom the folder is
  // given.
  bool untrusted = false;
  std::vector<int> cpus;  // where it may run; empty: where this thread may
  // Asked 20 times a second; true ends it. Null: nobody stops it.
  std::function<bool()> stop;
};

struct ConfinedEnd {
  int status = 0;  // as waitpid() gives it
  bool timed_out = false, stopped = false;
  std::string output;              // of both its outputs
  double wall_ns = 0, cpu_ns = 0;  // from its exec to its end; of it and of its children that it waited for
};

// OK if this host can confine programs; Unavailable with the reason.
Status can_confine();

// Runs it to its end. What it started and left behind, in sessions of their own too, is killed before this
// returns (guardian.h). Failed: it could not be started or confined; nothing ran then. Or the guardian was
// killed. `confine` false: without Landlock, for code of this process's own user.
Result<ConfinedEnd> run_confined(const ConfinedProgram& program, bool confine = true);

}  // namespace tuner
