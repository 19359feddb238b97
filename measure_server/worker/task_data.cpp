#include "measure_server/worker/task_data.h"

#include <filesystem>
#include <random>

#include "compiler_core/base/output_file.h"
#include "compiler_core/codegen/reference.h"
#include "measure_server/runner/reference_file.h"
#include "templates/workload/tolerance.h"

namespace tuner {
namespace {

Status make(const Workload& workload, const Program& program, int threads, uint64_t seed, uint64_t other_seed,
            const TaskData::Files& input_files, const TaskData::Files& reference_files) {
  const std::vector<std::vector<float>> values = given_values(workload, program, seed, other_seed);
  RETURN_IF_ERROR(write_inputs(program, values, other_seed != 0, input_files));
  ASSIGN_OR_RETURN(const auto answers, reference_answer(program, values, threads));
  const ReferenceKind kind = static_cast<double>(workload.flops()) > kChecksumsAboveFlops
                                 ? ReferenceKind::kChecksums
                                 : ReferenceKind::kFull;
  size_t next = 0;
  for (const Buffer& arg : program.args) {
    if (!is_result(arg->role)) continue;
    RETURN_IF_ERROR(write_reference(reference_files.at(next).second, answers.at(next), arg->shape, kind,
                                    {arg->dtype, shares_errors(workload)}));
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
