// PageFiles: the built page, read once into memory. A request names a file of this list or gets nothing,
// so no path leads out of the folder.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner::dashboard {

class PageFiles {
 public:
  struct File {
    std::string type, bytes;
  };
  // Reads index.html and what lies beside it: .js, .css, .svg, .txt. At most 64 files, 8 MiB together.
  // NotFound: there is no such folder, or no index.html in it.
  static Result<PageFiles> read(const std::string& folder);
  // The page of this installation: $TUNER_DASHBOARD_PAGE, else beside the program, as it is installed or
  // built. Without one, a single file that says how to get it.
  static PageFiles of_this_program();

  const File* find(std::string_view path) const;  // "/app.js"; "/" is index.html. Null: no such file
  bool is_built() const { return built_; }

 private:
  std::map<std::string, File, std::less<>> files_;
  bool built_ = false;
};

}  // namespace tuner::dashboard
