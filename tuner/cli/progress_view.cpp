#include "tuner/cli/progress_view.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "proto/convert.h"
#include "tuner/cli/format.h"

namespace tuner::cli {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::milliseconds kRedraw{200}, kLineEvery{1'000};
constexpr int kBarWidth = 20;

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string duration(double seconds) {
  const int64_t s = std::llround(seconds);
  if (s < 60) return str(s, " s");
  if (s < 3600) return str(s / 60, " min ", s % 60, " s");
  return str(s / 3600, " h ", s / 60 % 60, " min");
}

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

// The chance that the task's best time falls by 1 % or more in its next 100 trials.
std::string chance_of_gain(const v1::Progress& p) {
  return str("P(1 % in 100 more) ", fixed(100 * p.gain_chance(), p.gain_chance() < 0.1 ? 1 : 0), " %");
}

}  // namespace

std::string outcome_counts(const google::protobuf::RepeatedPtrField<v1::OutcomeCount>& outcomes) {
  std::string text;
  for (const v1::OutcomeCount& o : outcomes) {
    const Result<Outcome> outcome = from_proto(o.outcome(), "outcome");
    if (o.count() > 0 && outcome)
      text += str(text.empty() ? "" : ", ", o.count(), " ", outcome_name(*outcome));
  }
  return text;
}

std::string best_so_far(const v1::Progress& p) {
  if (p.best_ns() <= 0) return "no right answer yet";
  std::string text = format_time(p.best_ns());
  if (p.best_gflops() == 0) return text;  // nothing is computed, only moved
  text += str(", ", fixed(p.best_gflops(), 1), " GFLOP/s");
  if (p.peak_gflops() > 0)
    text += str(" (", fixed(100 * p.best_gflops() / p.peak_gflops(), 0), " % of the vector unit's peak)");
  return text;
}

ProgressView::ProgressView(int tasks)
    : tasks_(tasks),
      terminal_(isatty(STDERR_FILENO) == 1 &&
                std::string_view(std::getenv("TERM") ? std::getenv("TERM") : "") != "dumb") {}

ProgressView::~ProgressView() { finish(); }

void ProgressView::finish() {
  if (drawn_) std::fputs("\n", stderr);
  drawn_ = false;
}

void ProgressView::say(const std::string& line) {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
  std::fprintf(stderr, "%s\n", line.c_str());
  if (terminal_ && latest_.trials_total() > 0) draw_bar();
}

void ProgressView::show(const v1::JobEvent& event) {
  if (event.has_progress()) {
    latest_ = event.progress();
    const bool last = latest_.trials_done() >= latest_.trials_total();
    const auto since = steady_clock::now() - shown_at_;
    const bool better = latest_.best_ns() != best_shown_ns_;
    const bool new_results = latest_.trials_done() != done_shown_;
    const bool due = terminal_ ? since >= kRedraw || last
                               : new_results && (since >= kLineEvery || better || last || done_shown_ < 0);
    if (!due) return;
    // A fresh judgement of the cost model is news, once a batch.
    if (!latest_.search_status().empty() && latest_.search_status() != status_shown_) {
      status_shown_ = latest_.search_status();
      if (!terminal_) say("  model: " + status_shown_);
    }
    best_shown_ns_ = latest_.best_ns();
    done_shown_ = latest_.trials_done();
    shown_at_ = steady_clock::now();
    terminal_ ? draw_bar() : print_line();
  } else if (!event.message().empty() && event.state() == v1::JOB_RUNNING) {
    say("  " + event.message());
  }
}

void ProgressView::print_line() {
  const v1::Progress& p = latest_;
  std::string line = str(p.trials_done(), "/", p.trials_total(), " trials  ");
  if (tasks_ > 1) line += str("task ", p.task_index() + 1, "/", tasks_, "  ");
  line += str("best ", best_so_far(p));
  if (p.trials_per_second() > 0) line += str("  ", fixed(p.trials_per_second(), 1), " trials/s");
  if (p.trials_per_second() > 0 && p.trials_done() < p.trials_total())
    line += str("  about ", duration(p.eta_s()), " left at most");
  if (p.has_gain_chance()) line += str("  ", chance_of_gain(p));
  line += str("  [", outcome_counts(p.outcomes()), "]");
  std::fprintf(stderr, "%s\n", line.c_str());
}

void ProgressView::draw_bar() {
  const v1::Progress& p = latest_;
  const double share = p.trials_total() > 0 ? static_cast<double>(p.trials_done()) / p.trials_total() : 0;
  const int filled = std::clamp(static_cast<int>(share * kBarWidth), 0, kBarWidth);
  std::string line = str("[", std::string(filled, '#'), std::string(kBarWidth - filled, '.'), "] ",
                         p.trials_done(), "/", p.trials_total());
  if (tasks_ > 1) line += str("  task ", p.task_index() + 1, "/", tasks_);
  line += str("  best ", best_so_far(p));
  if (p.trials_per_second() > 0)
    line += str("  ", fixed(p.trials_per_second(), 1), "/s  ",
                p.trials_done() < p.trials_total() ? duration(p.eta_s()) + " left" : "");
  if (p.has_gain_chance()) line += "  " + chance_of_gain(p);
  std::string failures;
  for (const v1::OutcomeCount& o : p.outcomes()) {
    const Result<Outcome> outcome = from_proto(o.outcome(), "outcome");
    if (outcome && *outcome != Outcome::kOk) failures += str("  ", o.count(), " ", outcome_name(*outcome));
  }
  line += failures;
  if (!p.search_status().empty()) line += "  " + p.search_status();
  const size_t width = std::max(20, terminal_width() - 1);
  if (line.size() > width) line.resize(width);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace tuner::cli
