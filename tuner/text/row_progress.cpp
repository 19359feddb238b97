#include "tuner/text/row_progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "tuner/text/progress_line.h"
#include "tuner/text/terminal.h"

namespace tuner {

namespace {

double now_s() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RowProgress::RowProgress(std::string what, std::string unit)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      begun_s_(now_s()),
      told_s_(begun_s_),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

RowProgress::~RowProgress() { erase_progress(); }

void RowProgress::operator()(int64_t rows) {
  const double now = now_s(), every = terminal_ ? 0.2 : 10;
  if (now - told_s_ < every) return;
  told_s_ = now;
  char line[160];
  std::snprintf(line, sizeof line, "%.80s: %lld %.20s, %.0f per second", what_.c_str(),
                static_cast<long long>(rows), unit_.c_str(), static_cast<double>(rows) / (now - begun_s_));
  if (terminal_)
    draw_progress(shortened(line, terminal_width(STDERR_FILENO) - 1));
  else
    std::fprintf(stderr, "%s\n", line);
}

}  // namespace tuner
