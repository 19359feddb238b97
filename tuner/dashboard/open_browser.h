// Opens a link in the browser of whoever sits at this machine.
#pragma once

#include <string>

#include "compiler_core/base/status.h"

namespace tuner::dashboard {

// The link may hold a token, and other users of this machine see the words of every program. So the
// browser is given a file that only this user can read, which leads to the link. The file lives as long as
// this.
class OpenedPage {
 public:
  // NotFound: there is no desktop (xdg-open, DISPLAY or WAYLAND_DISPLAY). Failed: the file or the program.
  // `opener` is given the file's name.
  static Result<OpenedPage> open(const std::string& link, const std::string& opener = "/usr/bin/xdg-open");
  OpenedPage(OpenedPage&& other) noexcept;
  OpenedPage& operator=(OpenedPage&&) = delete;
  ~OpenedPage();

 private:
  explicit OpenedPage(std::string file) : file_(std::move(file)) {}
  std::string file_;
};

}  // namespace tuner::dashboard
