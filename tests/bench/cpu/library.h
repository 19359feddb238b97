// A shared library of somebody else, found at run time. Never unloaded: its threads may outlive any owner.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

class Library {
 public:
  // The first of these names or paths that loads. $`variable`, where set, is the only one tried.
  static Result<Library> open(const std::vector<std::string>& names, const char* variable);
  // A copy of the library of its own: settings that are read once, when a library is loaded, differ between
  // copies. Its symbols meet no other library's.
  static Result<Library> open_copy(const std::vector<std::string>& names, const char* variable);

  // Null when there is none of this name.
  template <class Function>
  Function find(const char* symbol) const {
    return reinterpret_cast<Function>(address(symbol));
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* address(const char* symbol) const;
  void* handle_;
};

// Environment variables that hold while it lives: libraries read them when they are loaded. An empty value
// stands for unset.
class Settings {
 public:
  explicit Settings(const std::vector<std::pair<std::string, std::string>>& values);
  ~Settings();
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

 private:
  std::vector<std::pair<std::string, std::string>> before_;
};

}  // namespace tuner
