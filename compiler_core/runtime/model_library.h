// ModelLibrary: the folder of a compiled model (`tuner compile -o`), its library loaded and its weights
// mapped; those of a model for GPUs are on GPU 0 then, with its kernels. Loading trusts it: a folder from
// elsewhere is a program from elsewhere. Needs neither a compiler nor what wrote the folder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/tuner_gpu_model.h"
#include "compiler_core/runtime/tuner_model.h"

namespace tuner {

// What plan.json tells of the files that a run needs; paths are those in the folder, digests SHA-256.
struct ModelFiles {
  struct File {
    std::string path, digest;
  };
  std::string model;          // C name
  std::string target;         // it is compiled for, for messages
  bool on_gpu = false;        // it is for GPUs: plan.json has "targets"
  std::optional<size_t> cpu;  // which of a library for several CPUs; nothing: the first that this machine has
  std::string weights;        // path
  File library;               // has the table
  std::vector<File> others;   // libraries that it needs: of functions that are none of ours
};

inline constexpr std::string_view kPlanFile = "plan.json";
inline constexpr int kPlanFormat = 1;  // "format" in it

// "tuner_NAME_model": the table's symbol.
std::string table_symbol(std::string_view model);
// Reads FOLDER/plan.json. InvalidArgument, with the path: it is missing, damaged, or of another format.
Result<ModelFiles> read_model_files(const std::string& folder);
// OK, or the reason in words: a code of tuner_model.h or tuner_gpu_model.h.
Status model_status(int32_t code);

class ModelLibrary {
 public:
  // InvalidArgument, with the path: a file is missing, damaged or belongs to another model, the table is of
  // another version, the loader took another library's functions, this CPU lacks instructions, or there is no
  // GPU and driver that run the model. Failed: out of memory, or a GPU that is lost.
  static Result<ModelLibrary> open(const std::string& folder, const ModelFiles& files);

  // As long as a copy of code() lives. Of a library for several CPUs that of the one that runs here.
  const tuner_model& table() const { return *table_; }
  size_t cpu() const { return cpu_; }                        // which of them that is; 0 for one
  tuner_weights* weights() const { return weights_.get(); }  // null: of a model for GPUs
  tuner_gpu_shared* gpu() const { return gpu_.get(); }       // null: of a model for CPUs
  const std::shared_ptr<const void>& code() const { return code_; }

 private:
  std::shared_ptr<const void> code_;
  Status open_gpu(const std::string& folder, const ModelFiles& files);
  Status choose_cpu(const ModelFiles& files);

  std::shared_ptr<tuner_weights> weights_;
  std::shared_ptr<tuner_gpu_shared> gpu_;
  const tuner_model* table_ = nullptr;
  size_t cpu_ = 0;
};

}  // namespace tuner
