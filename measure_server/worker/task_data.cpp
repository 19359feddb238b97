#include "measure_server/worker/task_data.h"

#include <filesystem>
#include <random>

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
  const auto add = [&text](const std::vector<std::pair<std::string, std::string>>& files) {
    for (const auto& [arg, path] : files) {
      const Result<std::string> bytes = read_whole(path);
      text +=
          bytes.is_ok() ? str(arg, " ", bytes->size(), " ", sha256_hex(*bytes), "\n") : arg + " missing\n";
    }
  };
  add(data.inputs), add(data.references);
  for (const TaskData::Set& set : data.others) add(set.inputs), add(set.references);
  return text;
}

bool has_others(const Workload& workload, const Program& program) {
  int64_t bytes = 0;
  bool inputs = false;
  for (const Buffer& arg : program.args) {
    bytes += arg->elements() * dtype_bytes(arg->dtype);
    inputs = inputs || arg->role == BufferRole::kInput;
  }
  return inputs && bytes <= kOthersUpToBytes && static_cast<double>(workload.flops()) <= kOthersUpToFlops;
}

// Writes inputs and answer. Inputs are of the seed, or, where `other_seed` is given, of that one, and then only
// constants are those of the seed.
Status make(const Workload& workload, const Program& program, uint64_t seed, const uint64_t* other_seed,
            const std::vector<std::pair<std::string, std::string>>& input_files,
            const std::vector<std::pair<std::string, std::string>>& reference_files) {
  std::vector<std::vector<float>> inputs;
  size_t next = 0;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (!is_given(arg->role)) continue;
    const bool other = other_seed != nullptr && arg->role == BufferRole::kInput;
    inputs.push_back(
        random_values(other ? *other_seed : seed, static_cast<int>(i), arg->elements(), arg->dtype));
    for (float& value : inputs.back()) value *= drawn_factor(workload, arg->name);
    if (other_seed == nullptr || other)
      RETURN_IF_ERROR(replace_file(input_files.at(next++).second, element_bytes(inputs.back(), arg->dtype)));
  }
  ASSIGN_OR_RETURN(const auto answers, reference_answer(program, inputs));
  const ReferenceKind kind = static_cast<double>(workload.flops()) > kChecksumsAboveFlops
                                 ? ReferenceKind::kChecksums
                                 : ReferenceKind::kFull;
  next = 0;
  for (const Buffer& arg : program.args) {
    if (!is_result(arg->role)) continue;
    RETURN_IF_ERROR(write_reference(reference_files.at(next).second, answers.at(next), arg->shape, kind));
    ++next;
  }
  return Status::ok();
}

}  // namespace

Result<TaskData> task_data(const Workload& workload, uint64_t seed, const std::string& directory) {
  const Program program = workload.compute();
  const fs::path folder = fs::path(directory) / str(sha256_hex(workload.key()).substr(0, 24), "-", seed);
  TaskData data;
  if (has_others(workload, program)) data.others.emplace_back();
  for (const Buffer& arg : program.args) {
    const auto named = [&](const char* ending) {
      return std::pair(arg->name, (folder / (arg->name + ending)).string());
    };
    if (is_given(arg->role)) data.inputs.push_back(named(".bin"));
    if (is_result(arg->role)) data.references.push_back(named(".ref"));
    if (data.others.empty()) continue;
    if (arg->role == BufferRole::kInput) data.others[0].inputs.push_back(named(".other.bin"));
    if (is_result(arg->role)) data.others[0].references.push_back(named(".other.ref"));
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
  RETURN_IF_ERROR(make(workload, program, seed, nullptr, data.inputs, data.references));
  for (const TaskData::Set& set : data.others) {
    std::random_device device;
    const uint64_t other_seed = (uint64_t{device()} << 32) | device();
    RETURN_IF_ERROR(make(workload, program, seed, &other_seed, set.inputs, set.references));
  }
  RETURN_IF_ERROR(replace_file(complete, description(workload, data)));
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error))
    data.made_bytes += static_cast<int64_t>(file.file_size(error));
  return data;
}

}  // namespace tuner
