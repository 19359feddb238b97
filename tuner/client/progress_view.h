// ProgressView: shows a running job. On a terminal it rewrites one line no longer than the terminal is wide;
// into a pipe it prints plain lines.
#pragma once

#include <chrono>
#include <string>

#include "compiler_core/base/status.h"
#include "tuning.pb.h"

namespace tuner {

class ProgressView {
 public:
  // Draws on stderr. `tasks`: how many the job has.
  explicit ProgressView(int tasks);
  ~ProgressView();
  // Shows the event if it has news. Progress is shown a few times a second at most; in a pipe about once a
  // second and at each improvement.
  void show(const v1::JobEvent& event);
  // Prints a line of its own above the bar.
  void say(const std::string& line);
  // Moves the cursor below the drawing.
  void finish();
  // Takes the drawing away.
  void erase();
  const v1::Progress& latest() const { return latest_; }

 private:
  bool due() const;
  void draw_bar();
  void print_line();

  const int tasks_;
  const bool terminal_;
  v1::Progress latest_;
  std::string status_shown_;
  double best_shown_ns_ = 0;
  int64_t done_shown_ = -1;
  std::string races_shown_;
  std::chrono::steady_clock::time_point shown_at_{};
};

// Returns the line for a terminal of this width. Done and best come first; the least important parts are left
// out if they do not fit. `tasks`: how many the job has.
std::string progress_bar(const v1::Progress& progress, int tasks, int width);
// Returns "race of task 2: 3 of 9 finalists left, process 4 of at most 9; 1 race waits"; empty if no race is
// running.
std::string races_text(const v1::Progress& progress, int tasks);
// Returns "1.234 ms, 123.4 GFLOP/s (71 % of the peak of 173.8)", or "no right answer yet".
std::string best_so_far(const v1::Progress& progress);
// Returns "117 ok, 7 build_error".
std::string outcome_counts(const google::protobuf::RepeatedPtrField<v1::OutcomeCount>& outcomes);

}  // namespace tuner
