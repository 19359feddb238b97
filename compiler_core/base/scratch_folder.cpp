#include "compiler_core/base/scratch_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tuner {

namespace fs = std::filesystem;

Result<std::unique_ptr<ScratchFolder>> ScratchFolder::make(std::string_view name,
                                                           const std::vector<std::string>& parents) {
  std::error_code error;
  const std::vector<std::string> places =
      parents.empty() ? std::vector<std::string>{fs::temp_directory_path(error).string()} : parents;
  if (error) return failed("no temporary folder can be made; set TMPDIR");
  std::string tried;
  int code = 0;
  for (const std::string& parent : places) {
    std::string path = str(parent, "/", name, "-XXXXXX");
    if (::mkdtemp(path.data()) != nullptr) return std::unique_ptr<ScratchFolder>(new ScratchFolder(path));
    code = errno;
    tried += (tried.empty() ? "" : " or ") + parent;
  }
  return failed("no temporary folder can be made in ", tried, ": ", std::strerror(code),
                parents.empty() ? "; set TMPDIR" : "");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace tuner
