#include "tuner/client/progress_view.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "compiler_core/base/printable.h"
#include "proto/convert.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"
#include "tuner/text/progress_line.h"
#include "tuner/text/terminal.h"

namespace tuner {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::milliseconds kRedraw{200}, kLineEvery{1'000};
constexpr int kBarWidth = 20, kNarrowBar = 8, kNarrow = 110;

std::string duration(double seconds) {
  const int64_t s = std::llround(seconds);
  if (s < 60) return str(s, " s");
  if (s < 3600) return str(s / 60, " min ", s % 60, " s");
  return str(s / 3600, " h ", s / 60 % 60, " min");
}

std::string chance_text(const v1::Progress& p) {
  return p.has_gain_chance() ? fixed(100 * p.gain_chance(), p.gain_chance() < 0.1 ? 1 : 0) + " %" : "";
}

std::string gain_text(const v1::Progress& p) {
  return p.default_ns() > 0 && p.best_ns() > 0 ? fixed(p.default_ns() / p.best_ns(), 2) + "x the default"
                                               : "";
}

std::string failures(const v1::Progress& p) {
  std::string text;
  for (const v1::OutcomeCount& o : p.outcomes())
    if (const Result<Outcome> outcome = from_proto(o.outcome(), "outcome");
        outcome && *outcome != Outcome::kOk && o.count() > 0)
      text += str(text.empty() ? "" : ", ", o.count(), " ", outcome_name(*outcome));
  return text;
}

// What a race has come to, and how many others wait for it.
struct RaceWords {
  std::string left, process, disturbed, waiting;
};
RaceWords race_words(const v1::Progress& p, int tasks) {
  const auto name = [&](const v1::RaceProgress& race) {
    return tasks > 1 ? str("race of task ", race.task_index() + 1, ": ") : std::string("race: ");
  };
  RaceWords words;
  int waiting = 0;
  for (const v1::RaceProgress& race : p.races()) {
    const v1::RaceCourse& c = race.course();
    if (c.most_processes() == 0 || !words.left.empty()) {
      ++waiting;
      continue;
    }
    words.left = str(name(race), c.racing(), " of ", c.finalists(), " finalists left");
    words.process =
        str("process ", std::min(c.processes() + 1, c.most_processes()), " of at most ", c.most_processes());
    if (c.spoilt() > 0) words.disturbed = str(c.spoilt(), " disturbed");
  }
  if (waiting == 1 && words.left.empty())
    words.left = str(name(p.races(0)), "builds ", p.races(0).course().finalists(), " finalists");
  else if (waiting > 0)
    words.waiting = str(waiting, waiting == 1 ? " race waits" : " races wait");
  return words;
}

std::string bar(const v1::Progress& p, int width) {
  const double share = p.trials_total() > 0 ? static_cast<double>(p.trials_done()) / p.trials_total() : 0;
  const int filled = std::clamp(static_cast<int>(share * width), 0, width);
  return str("[", std::string(filled, '#'), std::string(width - filled, '.'), "]");
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
    text += str(" (", fixed(100 * p.best_gflops() / p.peak_gflops(), 0), " % of the peak of ",
                fixed(p.peak_gflops(), 1), ")");
  return text;
}

ProgressView::ProgressView(int tasks)
    : tasks_(tasks),
      terminal_(isatty(STDERR_FILENO) == 1 &&
                std::string_view(std::getenv("TERM") ? std::getenv("TERM") : "") != "dumb") {}

ProgressView::~ProgressView() { finish(); }

void ProgressView::finish() { leave_progress(); }
void ProgressView::erase() { erase_progress(); }

void ProgressView::say(const std::string& line) {
  erase_progress();
  std::fprintf(stderr, "%s\n", with_commands(printable_lines(line)).c_str());
  if (terminal_ && latest_.trials_total() > 0) draw_bar();
}

// On a terminal a few times a second; in a pipe when there is news.
bool ProgressView::due() const {
  const auto since = steady_clock::now() - shown_at_;
  const bool last = latest_.trials_done() >= latest_.trials_total() && latest_.trials_done() != done_shown_;
  if (terminal_) return since >= kRedraw || last;
  const bool better = latest_.best_ns() != best_shown_ns_;
  const bool results = latest_.trials_done() != done_shown_;
  const bool races = races_text(latest_, tasks_) != races_shown_;
  return (results && (since >= kLineEvery || better || last || done_shown_ < 0)) ||
         (races && since >= kLineEvery);
}

void ProgressView::show(const v1::JobEvent& event) {
  if (event.has_progress()) {
    latest_ = event.progress();
    if (!due()) return;
    // A fresh judgement of the cost model is news, once a batch.
    if (!latest_.search_status().empty() && latest_.search_status() != status_shown_) {
      status_shown_ = latest_.search_status();
      if (!terminal_) say("  " + status_shown_);
    }
    terminal_ ? draw_bar() : print_line();
    best_shown_ns_ = latest_.best_ns();
    done_shown_ = latest_.trials_done();
    races_shown_ = races_text(latest_, tasks_);
    shown_at_ = steady_clock::now();
  } else if (!event.message().empty() && event.state() == v1::JOB_RUNNING) {
    say("  " + event.message());
  }
}

void ProgressView::print_line() {
  const v1::Progress& p = latest_;
  const std::string races = races_text(p, tasks_);
  if (p.trials_done() == done_shown_ && !races.empty()) {
    std::fprintf(stderr, "%s\n", races.c_str());
    return;
  }
  std::string line = str(p.trials_done(), "/", p.trials_total(), " trials  ");
  if (tasks_ > 1) line += str("task ", p.task_index() + 1, "/", tasks_, "  ");
  line += str("best ", best_so_far(p));
  if (const std::string gain = gain_text(p); !gain.empty()) line += "  " + gain;
  if (p.trials_per_second() > 0) line += str("  ", fixed(p.trials_per_second(), 1), " trials/s");
  if (p.trials_per_second() > 0 && p.trials_done() < p.trials_total())
    line += str("  about ", duration(p.eta_s()), " left at most");
  if (p.has_gain_chance()) line += str("  chance that 100 more trials gain 1 %: ", chance_text(p));
  line += str("  [", outcome_counts(p.outcomes()), "]");
  if (!races.empty()) line += "  " + races;
  std::fprintf(stderr, "%s\n", line.c_str());
}

std::string races_text(const v1::Progress& p, int tasks) {
  const RaceWords race = race_words(p, tasks);
  return str(race.left, race.process.empty() ? "" : ", ", race.process, race.disturbed.empty() ? "" : ", ",
             race.disturbed, !race.left.empty() && !race.waiting.empty() ? "; " : "", race.waiting);
}

std::string progress_bar(const v1::Progress& p, int tasks, int width) {
  const bool searching = p.trials_done() < p.trials_total();
  const std::string best = p.best_ns() > 0 ? "best " + format_time(p.best_ns()) : "no right answer yet";
  const std::string share = p.best_ns() > 0 && p.best_gflops() > 0 && p.peak_gflops() > 0
                                ? str(fixed(p.best_gflops(), 1), " GFLOP/s, ",
                                      fixed(100 * p.best_gflops() / p.peak_gflops(), 0), " % of peak")
                                : "";
  const RaceWords race = race_words(p, tasks);
  const bool timed = searching && p.trials_per_second() > 0;
  return fitted({{str(bar(p, width > kNarrow ? kBarWidth : kNarrowBar)), 3},
                 {str(p.trials_done(), "/", p.trials_total()), 13},
                 {tasks > 1 && searching ? str("task ", p.task_index() + 1, "/", tasks) : "", 6},
                 {race.left, 12},
                 {race.process, 12},
                 {race.disturbed, 12},
                 {race.waiting, 6},
                 {best, 11},
                 {gain_text(p), 9},
                 {share, 4},
                 {timed ? fixed(p.trials_per_second(), 1) + "/s" : "", 8},
                 {timed ? duration(p.eta_s()) + " left" : "", 7},
                 {p.has_gain_chance() && searching ? str("chance of more ", chance_text(p)) : "", 5},
                 {failures(p), 2},
                 {p.search_status(), 1}},
                width);
}

void ProgressView::draw_bar() {
  // One column less: a line as wide as the terminal would wrap on some.
  draw_progress(progress_bar(latest_, tasks_, std::max(20, terminal_width(STDERR_FILENO) - 1)));
}

}  // namespace tuner
