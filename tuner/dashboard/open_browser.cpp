#include "tuner/dashboard/open_browser.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "compiler_core/base/child_process.h"

namespace tuner::dashboard {
namespace {

constexpr std::chrono::milliseconds kOpens{2'000};  // it hands the file on and ends

std::string folder_of_user() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime != nullptr && runtime[0] == '/' && access(runtime, W_OK) == 0 ? runtime : "/tmp";
}

}  // namespace

Result<OpenedPage> OpenedPage::open(const std::string& link, const std::string& opener) {
  if ((std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) ||
      access(opener.c_str(), X_OK) != 0)
    return not_found("there is no desktop to open a browser on");
  std::string file = folder_of_user() + "/tuner-dashboard-XXXXXX.html";
  const int fd = mkostemps(file.data(), 5, O_CLOEXEC);  // mode 0600
  if (fd < 0) return failed(file, ": cannot be made: ", std::strerror(errno));
  OpenedPage page(file);
  const std::string text =
      "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=" + link + "\">\n";
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  if (!written) return failed(file, ": cannot be written: ", std::strerror(errno));
  ASSIGN_OR_RETURN(const pid_t started,
                   start_program({.path = opener, .words = {"xdg-open", file}, .log = "/dev/null"}));
  // Whether a browser runs, it does not say; the link is printed, too.
  (void)wait_for_end(started, kOpens);
  return page;
}

OpenedPage::OpenedPage(OpenedPage&& other) noexcept : file_(std::exchange(other.file_, "")) {}
OpenedPage::~OpenedPage() {
  if (!file_.empty()) unlink(file_.c_str());
}

}  // namespace tuner::dashboard
