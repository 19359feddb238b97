#include "tuner/verify/verify_run.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "compiler_core/backend.h"
#include "compiler_core/base/output_file.h"
#include "measure_server/runner/reference_file.h"
#include "templates/workload/tolerance.h"

namespace tuner {

namespace fs = std::filesystem;

Result<std::unique_ptr<RunVerifier>> RunVerifier::make() {
  ASSIGN_OR_RETURN(const std::string runner_path, find_runner());
  ASSIGN_OR_RETURN(std::unique_ptr<RunnerClient> runner, RunnerClient::start(runner_path));
  ASSIGN_OR_RETURN(std::unique_ptr<ScratchFolder> folder, ScratchFolder::make("tuner-verify"));
  return std::unique_ptr<RunVerifier>(new RunVerifier(std::move(runner), std::move(folder)));
}

Status RunVerifier::begin(const Workload& workload, const VerifyData& data) {
  const fs::path folder = folder_->file(str("task", tasks_++));
  const ReferenceKind kind = static_cast<double>(workload.flops()) > kChecksumsAboveFlops
                                 ? ReferenceKind::kChecksums
                                 : ReferenceKind::kFull;
  RETURN_IF_ERROR(make_folders(folder));
  inputs_.clear();
  references_.clear();
  allow(data.tolerance);
  size_t input = 0, output = 0;
  for (size_t i = 0; i < data.unscheduled.args.size(); ++i) {
    const Buffer& buffer = data.unscheduled.args[i];
    if (is_result(buffer->role)) {
      references_.push_back({buffer->name, folder / (buffer->name + ".reference")});
      OutputFacts facts{buffer->dtype, shares_errors(workload)};
      if (const std::optional<Tolerance> own = output_tolerance(workload, i))
        facts.tolerance = CheckSpec{own->absolute, own->relative};
      RETURN_IF_ERROR(
          write_reference(references_.back().path, data.answers[output++], buffer->shape, kind, facts));
    }
    if (is_given(buffer->role)) {
      inputs_.push_back({buffer->name, folder / (buffer->name + ".input")});
      RETURN_IF_ERROR(replace_file(inputs_.back().path, data.given[input++]));
    }
  }
  return Status::ok();
}

Result<std::string> RunVerifier::problem_of(const Program& program, const Target& target) {
  const Result<Artifact> artifact = backend_of(target).compile(program, target);
  if (!artifact) return "compile: " + artifact.message();
  ASSIGN_OR_RETURN(const std::string digest, save_artifact(*artifact, folder_->path()));
  RunRequest request{.id = ++runs_,
                     .artifact_dir = folder_->path(),
                     .digest = digest,
                     .inputs = inputs_,
                     .references = references_,
                     .check = check_,
                     .min_repeat_ms = 0,  // one call a sample: only the answer counts here
                     .repeats = 1,
                     .run_timeout_s = 60};
  const Result<RunReply> reply = runner_->run(request);
  remove_artifact(folder_->path(), digest);
  if (!reply) return reply.status();
  if (reply->outcome == outcome_name(Outcome::kOk)) return std::string();
  return reply->outcome + ": " + reply->message;
}

}  // namespace tuner
