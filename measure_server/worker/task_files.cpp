#include "measure_server/worker/task_files.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <random>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "measure_server/worker/shared_cache.h"
#include "templates/workload/tolerance.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr char kSeed[] = "other seed ";
// Of the file `complete`. Raised when what earlier releases left there must not be used: 2: two processes
// could mix sets of two seeds. 3: sums of answers of 16 bits are of rounded values. 4: what a type cannot
// hold is infinite.
constexpr char kFormat[] = "4 ";

fs::path folder_of(const TaskData& data) { return fs::path(data.references.at(0).second).parent_path(); }

// The workload's key, the seed of the others, and each file with its size and digest ("missing" when it
// cannot be read).
std::string description(const Workload& workload, const TaskData& data) {
  std::string text = kFormat + workload.key() + "\n";
  for (const TaskData::Set& set : data.others) text += str(kSeed, set.seed, "\n");
  const auto add = [&text](const TaskData::Files& files) {
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

// As the text of a complete folder tells it; 0: it does not.
uint64_t other_seed_in(const std::string& text) {
  const size_t at = text.find(str("\n", kSeed));
  if (at == std::string::npos) return 0;
  uint64_t seed = 0;
  std::from_chars(text.data() + at + sizeof kSeed, text.data() + text.size(), seed);
  return seed;
}

}  // namespace

TaskData task_files(const Workload& workload, uint64_t seed, const std::string& directory) {
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
  return data;
}

// The file holds the key, against a collision of shortened digests, and the digest of every file: what a
// power loss left half written is made again.
bool is_complete(const Workload& workload, TaskData& data) {
  if (data.references.empty()) return true;  // a program of a user's, which has no operands
  const fs::path folder = folder_of(data);
  const Result<std::string> found = read_whole(folder / "complete");
  if (!found.is_ok()) return false;
  for (TaskData::Set& set : data.others) set.seed = other_seed_in(*found);
  if (*found != description(workload, data)) return false;
  touch_reference(folder);
  return true;
}

std::vector<std::vector<float>> given_values(const Workload& workload, const Program& program, uint64_t seed,
                                             uint64_t other_seed) {
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (!is_given(arg->role)) continue;
    const bool other = other_seed != 0 && arg->role == BufferRole::kInput;
    values.push_back(
        random_values(other ? other_seed : seed, static_cast<int>(i), arg->elements(), arg->dtype));
    for (float& value : values.back()) value *= drawn_factor(workload, arg->name);
  }
  return values;
}

Result<std::vector<std::string>> given_bytes(const Workload& workload, const Program& program, uint64_t seed,
                                             uint64_t other_seed) {
  std::vector<std::string> all;
  for (size_t i = 0; i < program.args.size(); ++i) {
    const Buffer& arg = program.args[i];
    if (!is_given(arg->role)) continue;
    const uint64_t drawn = other_seed != 0 && arg->role == BufferRole::kInput ? other_seed : seed;
    if (std::optional<Result<std::string>> brought = workload.operand(i, drawn)) {
      ASSIGN_OR_RETURN(std::string bytes, *std::move(brought));
      all.push_back(std::move(bytes));
      continue;
    }
    std::vector<float> values = random_values(drawn, static_cast<int>(i), arg->elements(), arg->dtype);
    for (float& value : values) value *= drawn_factor(workload, arg->name);
    all.push_back(element_bytes(values, arg->dtype));
  }
  return all;
}

Status write_inputs(const Program& program, const std::vector<std::string>& bytes, bool others,
                    const TaskData::Files& files) {
  if (!files.empty()) RETURN_IF_ERROR(make_folders(fs::path(files.front().second).parent_path()));
  size_t next_value = 0, next_file = 0;
  for (const Buffer& arg : program.args) {
    if (!is_given(arg->role)) continue;
    const std::string& of_arg = bytes.at(next_value++);
    if (others && arg->role != BufferRole::kInput) continue;
    RETURN_IF_ERROR(replace_file(files.at(next_file++).second, of_arg));
  }
  return Status::ok();
}

TaskDataMaking::TaskDataMaking(const TaskData& of) : data(of) {
  std::random_device device;
  const fs::path folder = str(folder_of(of).string(), ".making-", ::getpid(), "-", device());
  const auto move = [&](TaskData::Files& files) {
    for (auto& [arg, path] : files) path = (folder / fs::path(path).filename()).string();
  };
  move(data.inputs), move(data.references);
  for (TaskData::Set& set : data.others) move(set.inputs), move(set.references);
}

TaskDataMaking::~TaskDataMaking() {
  std::error_code ignored;
  fs::remove_all(folder_of(data), ignored);
}

Status TaskDataMaking::put_in_place(const Workload& workload, TaskData& to) const {
  const fs::path from = folder_of(data), place = folder_of(to);
  RETURN_IF_ERROR(replace_file(from / "complete", description(workload, data)));
  std::error_code error;
  int64_t bytes = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(from, error))
    bytes += static_cast<int64_t>(file.file_size(error));
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    fs::rename(from, place, error);
    if (!error) to.made_bytes = bytes;
    if (is_complete(workload, to)) return Status::ok();  // ours, or that of another process
    std::error_code ignored;
    if (error) fs::remove_all(place, ignored);  // half made in an earlier release, or damaged
  }
  return failed("the data of ", workload.key(), " in ", place.string(), ": ",
                error ? error.message() : std::string("damaged as soon as it was there"));
}

}  // namespace tuner
