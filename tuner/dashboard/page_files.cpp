#include "tuner/dashboard/page_files.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "compiler_core/base/input_file.h"

namespace tuner::dashboard {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostFiles = 64, kMostBytes = size_t{8} << 20;

constexpr char kNoPage[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>tuner</title>"
    "<h1>The page is not built</h1>"
    "<p>The Debian package <b>tuner</b> brings it. In a source tree, <code>deploy/page.sh</code> builds it; "
    "it "
    "needs npm.</p><p>The facts are there without it: <code>/api/jobs</code>, "
    "<code>/api/answers</code>.</p></html>\n";

std::string type_of(const fs::path& file) {
  static const std::map<std::string, std::string> kTypes = {{".html", "text/html; charset=utf-8"},
                                                            {".js", "text/javascript; charset=utf-8"},
                                                            {".css", "text/css; charset=utf-8"},
                                                            {".svg", "image/svg+xml"},
                                                            {".txt", "text/plain; charset=utf-8"}};
  const auto found = kTypes.find(file.extension());
  return found == kTypes.end() ? "" : found->second;
}

}  // namespace

Result<PageFiles> PageFiles::read(const std::string& folder) {
  PageFiles page;
  size_t bytes = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string type = type_of(entry.path());
    if (type.empty() || !entry.is_regular_file()) continue;
    ASSIGN_OR_RETURN(std::string text, read_whole(entry.path(), kMostBytes - bytes));
    bytes += text.size();
    if (page.files_.size() >= kMostFiles)
      return invalid_argument(folder, ": expected at most ", kMostFiles, " files of a page, found more");
    page.files_["/" + entry.path().filename().string()] = {type, std::move(text)};
  }
  const auto index = page.files_.find("/index.html");
  if (index == page.files_.end())
    return not_found(folder,
                     ": expected the dashboard's page, found no index.html. Build it: deploy/page.sh");
  page.files_["/"] = index->second;
  page.built_ = true;
  return page;
}

PageFiles PageFiles::of_this_program() {
  std::error_code error;
  const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path();
  const char* const given = std::getenv("TUNER_DASHBOARD_PAGE");
  for (const fs::path& folder : {fs::path(given == nullptr ? "" : given),
                                 programs / "../share/tuner/dashboard", programs / "../dashboard_page"}) {
    if (folder.empty()) continue;
    if (Result<PageFiles> page = read(folder)) return *std::move(page);
  }
  PageFiles none;
  none.files_["/"] = {"text/html; charset=utf-8", kNoPage};
  return none;
}

const PageFiles::File* PageFiles::find(std::string_view path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace tuner::dashboard
