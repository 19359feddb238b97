#include "tests/bench/cpu/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>

namespace tuner {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> candidates(const std::vector<std::string>& names, const char* variable) {
  const char* given = std::getenv(variable);
  return given != nullptr && *given != '\0' ? std::vector<std::string>{given} : names;
}

Result<void*> load_first(const std::vector<std::string>& names, int flags) {
  std::string reason;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), flags)) return handle;
    const char* error = dlerror();
    reason += str(reason.empty() ? "" : "; ", error == nullptr ? name : error);
  }
  return not_found(reason);
}

// Where the loader found it.
Result<std::string> path_of(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || *map->l_name == '\0')
    return not_found("the loader does not tell where the library lies");
  return std::string(map->l_name);
}

void set(const std::string& name, const std::string& value) {
  if (value.empty())
    ::unsetenv(name.c_str());
  else
    ::setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace

Result<Library> Library::open(const std::vector<std::string>& names, const char* variable) {
  ASSIGN_OR_RETURN(void* const handle, load_first(candidates(names, variable), RTLD_NOW | RTLD_LOCAL));
  return Library(handle);
}

Result<Library> Library::open_copy(const std::vector<std::string>& names, const char* variable) {
  // Found lazily bound and unused: only to learn the path.
  ASSIGN_OR_RETURN(void* const found, load_first(candidates(names, variable), RTLD_LAZY | RTLD_LOCAL));
  const Result<std::string> path = path_of(found);
  dlclose(found);
  if (!path) return path.status();
  std::error_code error;
  std::string folder = fs::temp_directory_path(error) / "bench-cpu-XXXXXX";
  if (error || ::mkdtemp(folder.data()) == nullptr)
    return failed("no temporary folder can be made; set TMPDIR");
  const fs::path copy = fs::path(folder) / fs::path(*path).filename();
  fs::copy_file(*path, copy, error);
  Result<void*> handle = error ? Result<void*>(failed(copy.string(), ": ", error.message()))
                               : load_first({copy.string()}, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  fs::remove_all(folder, error);  // stays mapped
  if (!handle) return handle.status();
  return Library(*handle);
}

void* Library::address(const char* symbol) const { return dlsym(handle_, symbol); }

Settings::Settings(const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values) {
    const char* before = std::getenv(name.c_str());
    before_.emplace_back(name, before == nullptr ? "" : before);
    set(name, value);
  }
}

Settings::~Settings() {
  for (const auto& [name, value] : before_) set(name, value);
}

}  // namespace tuner
