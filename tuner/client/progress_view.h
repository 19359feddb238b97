// ProgressView: a running job on the screen: one line that is rewritten on a terminal and never longer than
// it is wide, plain lines into a pipe.
#pragma once

#include <chrono>
#include <string>

#include "compiler_core/base/status.h"
#include "tuning.pb.h"

namespace tuner {

class ProgressView {
 public:
  // Draws on stderr. `tasks`: of the job.
  explicit ProgressView(int tasks);
  ~ProgressView();
  // Shows the event when it says something; progress at most a few times a second, in a pipe about once a
  // second and at each improvement.
  void show(const v1::JobEvent& event);
  // A line of its own above the bar.
  void say(const std::string& line);
  // Leaves the cursor below what was drawn.
  void finish();
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
  bool drawn_ = false;
  std::chrono::steady_clock::time_point shown_at_{};
};

// The line of a terminal so wide: what is done and found first, the least important left out where it does
// not fit. `tasks`: of the job.
std::string progress_bar(const v1::Progress& progress, int tasks, int width);
// "race of task 2: 3 of 9 finalists left, process 4 of at most 9; 1 race waits"; empty when none is under
// way.
std::string races_text(const v1::Progress& progress, int tasks);
// "1.234 ms, 123.4 GFLOP/s (71 % of peak)"; "no right answer yet" of 0.
std::string best_so_far(const v1::Progress& progress);
// "117 ok, 7 build_error".
std::string outcome_counts(const google::protobuf::RepeatedPtrField<v1::OutcomeCount>& outcomes);

}  // namespace tuner
