#include "measure_server/worker/task_data.h"

#include <filesystem>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/codegen/reference.h"
#include "measure_server/runner/reference_file.h"
#include "measure_server/worker/shared_cache.h"
#include "templates/workload/tolerance.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

// The workload's key, and each file with its size and digest ("missing" when it cannot be read).
std::string description(const Workload& workload, const TaskData& data) {
  std::string text = workload.key() + "\n";
  for (const auto* files : {&data.inputs, &data.references})
    for (const auto& [arg, path] : *files) {
      const Result<std::string> bytes = read_whole(path);
      text +=
          bytes.is_ok() ? str(arg, " ", bytes->size(), " ", sha256_hex(*bytes), "\n") : arg + " missing\n";
    }
  return text;
}

}  // namespace

Result<TaskData> task_data(const Workload& workload, uint64_t seed, const std::string& directory) {
  const Program program = workload.compute();
  const fs::path folder = fs::path(directory) / str(sha256_hex(workload.key()).substr(0, 24), "-", seed);
  TaskData data;
  for (const Buffer& arg : program.args) {
    const bool output = arg->role == BufferRole::kOutput;
    (output ? data.references : data.inputs)
        .emplace_back(arg->name, (folder / (arg->name + (output ? ".ref" : ".bin"))).string());
  }
  const Tolerance tolerance = tolerance_of(workload);
  data.absolute = tolerance.absolute;
  data.relative = tolerance.relative;

  // Written last: whoever finds it finds the rest. It holds the key, against a collision of shortened
  // digests, and the digest of every file: what a power loss left half written is made again.
  const fs::path complete = folder / "complete";
  if (const Result<std::string> found = read_whole(complete);
      found.is_ok() && *found == description(workload, data)) {
    touch_reference(folder);
    return data;
  }

  RETURN_IF_ERROR(make_folders(folder));
  std::vector<std::vector<float>> inputs;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (arg->role == BufferRole::kOutput) continue;
    inputs.push_back(random_values(seed, static_cast<int>(i), arg->elements(), arg->dtype));
    RETURN_IF_ERROR(replace_file(folder / (arg->name + ".bin"), element_bytes(inputs.back(), arg->dtype)));
  }
  ASSIGN_OR_RETURN(const auto answers, reference_answer(program, inputs));
  const ReferenceKind kind = static_cast<double>(workload.flops()) > kChecksumsAboveFlops
                                 ? ReferenceKind::kChecksums
                                 : ReferenceKind::kFull;
  size_t next = 0;
  for (const Buffer& arg : program.args) {
    if (arg->role != BufferRole::kOutput) continue;
    RETURN_IF_ERROR(
        write_reference((folder / (arg->name + ".ref")).string(), answers.at(next++), arg->shape, kind));
  }
  RETURN_IF_ERROR(replace_file(complete, description(workload, data)));
  return data;
}

}  // namespace tuner
