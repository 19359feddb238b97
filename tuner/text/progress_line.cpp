#include "tuner/text/progress_line.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace tuner {
namespace {

volatile std::sig_atomic_t drawn = 0;

}  // namespace

void draw_progress(std::string_view text) {
  std::fprintf(stderr, "\r\033[K%.*s", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
  drawn = 1;
}

void erase_progress() {
  if (drawn != 0) std::fputs("\r\033[K", stderr);
  drawn = 0;
}

void leave_progress() {
  if (drawn != 0) std::fputs("\n", stderr);
  drawn = 0;
}

void leave_progress_now() {
  if (drawn == 0) return;
  drawn = 0;
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, "\n", 1);
}

}  // namespace tuner
