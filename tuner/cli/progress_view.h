// ProgressView: a running job on the screen: one line that is rewritten on a terminal, plain lines into a
// pipe.
#pragma once

#include <chrono>
#include <string>

#include "compiler_core/base/status.h"
#include "tuning.pb.h"

namespace tuner::cli {

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
  void draw_bar();
  void print_line();

  const int tasks_;
  const bool terminal_;
  v1::Progress latest_;
  std::string status_shown_;
  double best_shown_ns_ = 0;
  int64_t done_shown_ = -1;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point shown_at_{};
};

// "1.234 ms, 123.4 GFLOP/s (71 % of peak)"; "no right answer yet" of 0.
std::string best_so_far(const v1::Progress& progress);
// "117 ok, 7 build_error".
std::string outcome_counts(const google::protobuf::RepeatedPtrField<v1::OutcomeCount>& outcomes);

}  // namespace tuner::cli
