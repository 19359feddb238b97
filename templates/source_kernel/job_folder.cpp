#include <filesystem>

#include "compiler_core/base/input_file.h"
#include "templates/source_kernel/source_kernel_json.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

class FolderHere final : public JobFolder {
 public:
  explicit FolderHere(const std::string& path) : path_(path.empty() ? "." : path) {}

  bool has(const std::string& name) const override {
    std::error_code none;
    return fs::is_regular_file(path_ / name, none);
  }
  Result<std::string> read(const std::string& name, size_t most_bytes) const override {
    std::error_code error;
    const fs::path folder = fs::weakly_canonical(path_, error),
                   file = fs::weakly_canonical(path_ / name, error);
    const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
    if (error || end != folder.end())
      return invalid_argument(
          "\"", name, "\" leads out of the job file's folder by a link; expected a file in it, or below it");
    return read_file((path_ / name).string(), "a file that the job file names", most_bytes);
  }

 private:
  const fs::path path_;
};

}  // namespace

std::unique_ptr<JobFolder> job_folder(const std::string& path) { return std::make_unique<FolderHere>(path); }

}  // namespace tuner
