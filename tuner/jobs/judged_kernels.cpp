#include "tuner/jobs/judged_kernels.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "compiler_core/backend.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/json_reader.h"
#include "compiler_core/base/printable.h"
#include "templates/source_kernel/source_kernel_json.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMostJobBytes = 16 << 20;

// The folder of a source that somebody brings, and behind it that of the job file.
class FoldersOfBoth final : public JobFolder {
 public:
  FoldersOfBoth(const std::string& own, const JobFolder& of_job) : own_(job_folder(own)), of_job_(of_job) {}
  bool has(const std::string& name) const override { return own_->has(name) || of_job_.has(name); }
  Result<std::string> read(const std::string& name, size_t most_bytes) const override {
    return own_->has(name) ? own_->read(name, most_bytes) : of_job_.read(name, most_bytes);
  }

 private:
  const std::unique_ptr<JobFolder> own_;
  const JobFolder& of_job_;
};

// The job file's only entry.
Result<json> read_entry_text(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path, "a job file with a kernel", kMostJobBytes));
  Result<json> document = json_input::parse(text);
  if (!document) return invalid_argument(path, ": ", json_input::one_line(document.message()));
  if (document->is_array() && document->size() == 1) document = json(document->front());
  if (document->is_array())
    return invalid_argument(path, ": expected one entry, found ", document->size(),
                            "; write the one that is meant into a file of its own");
  if (!document->is_object() || document->value("op", json()) != "kernel")
    return invalid_argument(path, ": expected an entry with \"op\": \"kernel\" (docs/own_kernels.md)");
  const json language = document->value("language", json());
  if (language == "command")
    return invalid_argument(path, ": a program that prints its time computes nothing that could be judged");
  if (language == "ptx" || language == "cubin")
    return invalid_argument(path,
                            ": its kernels come compiled, so no source can take their place; expected "
                            "\"language\": \"cuda\", \"c\" or \"c++\"");
  return document;
}

constexpr const char* kOfDevices = "cuda";
bool is_of_device(const json& entry) { return entry.value("language", json("c")) == kOfDevices; }

// C, C++ or CUDA, if its ending says so.
std::string language_of(const std::string& file) {
  const std::string ending = fs::path(file).extension();
  if (ending == ".c") return "c";
  if (ending == ".cu") return kOfDevices;
  for (const char* cxx : {".cc", ".cpp", ".cxx", ".C", ".c++"})
    if (ending == cxx) return "c++";
  return "";
}

// The entry with this file as its source, right as its default config is.
json with_source(json entry, const std::string& file, const std::string& function) {
  const std::string language = language_of(file);
  if (!language.empty() && entry.value("language", json("c")) != language) {
    entry["language"] = language;
    entry.erase("compiler");
  }
  entry["source"] = fs::path(file).filename().string();
  if (!function.empty()) entry["function"] = function;
  entry.erase("reference");
  return entry;
}

struct ReadTask {
  CliTask task;
  MeasureOptions measure;
};
Result<ReadTask> read_task(const json& entry, const std::string& name, const JobFolder& folder,
                           const std::string& target) {
  ASSIGN_OR_RETURN(std::vector<JobEntry> entries, parse_job_text(entry.dump(), name, &folder));
  JobEntry& one = entries.front();
  ReadTask read{.task = {.workload = one.workload}, .measure = one.measure};
  Result<Target> resolved = resolve_target(target.empty() ? one.target : target);
  if (!resolved)
    return resolved.status().with_context(target.empty() ? str(name, ": target: ") : "--target: ");
  RETURN_IF_ERROR(kernel_suits(one.workload, *resolved)
                      .with_context(target.empty() ? str(name, ": target: ") : "--target: "));
  read.task.target = *std::move(resolved);
  read.task.key = one.workload.key();
  read.task.target_name = read.task.target.name();
  return read;
}

Result<ReadTask> read_brought(const json& entry, const std::string& file, const std::string& function,
                              const JobFolder& of_job, const JudgeWish& wish) {
  std::error_code none;
  if (!fs::is_regular_file(file, none))
    return invalid_argument(printable(file), ": is no file; expected a source with the kernel");
  const std::string language = language_of(file);
  if (!language.empty() && (language == kOfDevices) != is_of_device(entry))
    return invalid_argument(printable(file), ": is a source in ",
                            language == kOfDevices ? "CUDA" : "C or C++", ", ", wish.job,
                            " is about a kernel in ", is_of_device(entry) ? "CUDA" : "C or C++");
  const FoldersOfBoth folders(fs::path(file).parent_path(), of_job);
  return read_task(with_source(entry, file, function), str(wish.job, " with ", file), folders, wish.target);
}

}  // namespace

Result<JudgedKernels> read_judged_kernels(const JudgeWish& wish) {
  ASSIGN_OR_RETURN(const json entry, read_entry_text(wish.job));
  const std::unique_ptr<JobFolder> folder = job_folder(fs::path(wish.job).parent_path());
  ASSIGN_OR_RETURN(ReadTask candidate, read_brought(entry, wish.file, wish.function, *folder, wish));
  JudgedKernels kernels{.candidate = std::move(candidate.task), .measure = candidate.measure};

  const json reference = entry.value("reference", json());
  json right = entry;
  right.erase("reference");
  const bool brought = reference.is_object() && reference.contains("files"), on_device = is_of_device(entry);
  if (brought || (on_device && reference.is_object())) {
    // The candidate's own source, which is not asked: the files have the answers, or the host's function.
    right = with_source(entry, wish.file, wish.function);
    right["reference"] = reference;
  } else if (reference.is_object()) {
    if (reference.contains("source")) right["source"] = reference["source"];
    right["function"] = reference.value("function", json());
  }
  const FoldersOfBoth folders(fs::path(wish.file).parent_path(), *folder);
  ASSIGN_OR_RETURN(ReadTask truth, brought || on_device ? read_task(right, wish.job, folders, wish.target)
                                                        : read_task(right, wish.job, *folder, wish.target));
  kernels.truth = std::move(truth.task);

  if (!wish.against.empty()) {
    ASSIGN_OR_RETURN(ReadTask rival, read_brought(entry, wish.against, wish.against_function, *folder, wish));
    kernels.rival = std::move(rival.task);
    kernels.rival_name = wish.against;
    return kernels;
  }
  if (on_device) {  // the reference runs on the host; the job file's own kernel does not
    json own = entry;
    own.erase("reference");
    ASSIGN_OR_RETURN(ReadTask rival, read_task(own, wish.job, *folder, wish.target));
    kernels.rival = std::move(rival.task);
    kernels.rival_name =
        str(entry.value("function", std::string()), " of ", entry.value("source", std::string()));
    return kernels;
  }
  if (brought)
    return invalid_argument(
        wish.job, ": its reference is files, with which nothing can race; expected --against SOURCE");
  kernels.rival = kernels.truth;
  kernels.rival_name = str(right["function"].get<std::string>(), " of ", right["source"].get<std::string>());
  return kernels;
}

}  // namespace tuner
