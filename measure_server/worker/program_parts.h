// What the programs of all kinds of workers share: options, the log, signals.
#pragma once

#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "compiler_core/base/status.h"
#include "proto/daemon_access.h"

namespace tuner {

struct CommonOptions {
  std::string daemon;
  std::string worker_id, work_dir, shared_dir;
  double cache_gib = 4;
  std::string log_level = "info";
  pid_t owner = 0;  // the process that started this one and with which it ends; 0: none
  const CLI::Option* work_dir_option = nullptr;

  bool next_work_dir() const { return work_dir_option->count() == 0; }
  int64_t cache_bytes() const { return static_cast<int64_t>(cache_gib * (int64_t{1} << 30)); }
};
// Adds the options; `options` is filled when the app parses, and must live until then.
void add_common_options(CLI::App& app, CommonOptions& options);
void add_isolation(CLI::App& app, std::string& level);
// Reads the command line. Empty: go on; else the exit status.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

// Where the daemon is. InvalidArgument: the option is missing or names none.
Result<DaemonAccess> access_to(const std::string& daemon);
// 2: something in the command line has to change first.
int exit_status(const Status& status);
// Logs go to standard error, with this name.
void start_log(const std::string& name, const std::string& level);
// Blocks the signals that end a worker. Call it before any thread starts.
void block_signals();
// Runs `work`; the first signal calls `drain`, the second ends the process. Returns the exit status.
int run_until_told(pid_t owner, const std::function<void()>& drain, const std::function<Status()>& work);

}  // namespace tuner
