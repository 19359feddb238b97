#include "measure_server/worker/task_data.h"

#include <filesystem>
#include <random>

#include "compiler_core/base/output_file.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/host_cuda/host_answers.h"
#include "measure_server/runner/reference_file.h"
#include "templates/workload/tolerance.h"

namespace tuner {
namespace {

Status make(const Workload& workload, const Program& program, int threads, uint64_t seed, uint64_t other_seed,
            const TaskData::Files& input_files, const TaskData::Files& reference_files) {
  ASSIGN_OR_RETURN(const std::vector<std::string> given, given_bytes(workload, program, seed, other_seed));
  RETURN_IF_ERROR(write_inputs(program, given, other_seed != 0, input_files));
  std::vector<std::vector<double>> answers;
  if (program.foreign != nullptr) {
    ASSIGN_OR_RETURN(answers, user_answers(program, given, {.threads = threads},
                                           [&](size_t argument) { return workload.answer(argument); }));
  } else {
    ASSIGN_OR_RETURN(answers,
                     reference_answer(program, given_values(workload, program, seed, other_seed), threads));
  }
  const ReferenceKind kind = static_cast<double>(workload.flops()) > kChecksumsAboveFlops
                                 ? ReferenceKind::kChecksums
                                 : ReferenceKind::kFull;
  size_t next = 0;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (!is_result(arg->role)) continue;
    OutputFacts output{arg->dtype, shares_errors(workload)};
    if (const std::optional<Tolerance> own = output_tolerance(workload, i))
      output.tolerance = CheckSpec{own->absolute, own->relative};
    RETURN_IF_ERROR(
        write_reference(reference_files.at(next).second, answers.at(next), arg->shape, kind, output));
    ++next;
  }
  return Status::ok();
}

uint64_t drawn_seed() {
  std::random_device device;
  const uint64_t seed = (uint64_t{device()} << 32) | device();
  return seed == 0 ? 1 : seed;
}

}  // namespace

Result<TaskData> task_data(const Workload& workload, uint64_t seed, const std::string& directory,
                           int threads) {
  TaskData data = task_files(workload, seed, directory);
  if (is_complete(workload, data)) return data;
  const Program program = workload.compute();
  TaskDataMaking making(data);
  TaskData& made = making.data;
  RETURN_IF_ERROR(make_folders(std::filesystem::path(made.references.at(0).second).parent_path()));
  RETURN_IF_ERROR(make(workload, program, threads, seed, /*other_seed=*/0, made.inputs, made.references));
  for (TaskData::Set& set : made.others) {
    set.seed = drawn_seed();
    RETURN_IF_ERROR(make(workload, program, threads, seed, set.seed, set.inputs, set.references));
  }
  RETURN_IF_ERROR(making.put_in_place(workload, data));
  return data;
}

}  // namespace tuner
