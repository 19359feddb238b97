// `tuner verify` by running: each config is compiled, run in the runner's jail and compared there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/scratch_folder.h"
#include "measure_server/runner/runner_client.h"
#include "tuner/jobs/tasks.h"
#include "tuner/verify/verify_data.h"

namespace tuner {

// A runner and its folder, shared by all tasks of a command. The folder goes with it.
class RunVerifier {
 public:
  static Result<std::unique_ptr<RunVerifier>> make();

  // Writes the data of the task whose configs follow.
  Status begin(const Workload& workload, const VerifyData& data);
  // Sets the tolerance for the configs that follow.
  void allow(const Tolerance& tolerance) { check_ = {tolerance.absolute, tolerance.relative}; }
  // Returns what is wrong with a schedule; empty if nothing is. An error: this could not be found out.
  Result<std::string> problem_of(const Program& program, const Target& target);

 private:
  RunVerifier(std::unique_ptr<RunnerClient> runner, std::unique_ptr<ScratchFolder> folder)
      : runner_(std::move(runner)), folder_(std::move(folder)) {}

  std::unique_ptr<RunnerClient> runner_;
  std::unique_ptr<ScratchFolder> folder_;
  std::vector<RunRequest::Data> inputs_, references_;
  CheckSpec check_;
  uint64_t tasks_ = 0, runs_ = 0;
};

}  // namespace tuner
