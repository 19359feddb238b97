// TopView: what a daemon does now, as the lines of a screen: its jobs, its workers, what waits.
//
// Pure text: no terminal (tuner/text/screen.h draws it), no calls. Names come from a daemon and its workers,
// so control characters are taken out here.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tuner/text/screen.h"
#include "tuning.pb.h"

namespace tuner {

// What one look at a daemon found.
struct TopLook {
  std::string daemon;  // its name
  v1::ListReply list;  // asked for with `known`
  v1::ListWorkersReply workers;
  double trials_per_second = 0;
  std::string trouble;  // why the latest look found nothing, when this one is older; else empty
};

// Trials a second, over the latest ten seconds of looks; before there are two, what the jobs say of
// themselves.
class TrialRate {
 public:
  double look(const v1::ListReply& list, int64_t now_ms);

 private:
  std::deque<std::pair<int64_t, int64_t>> looks_;  // when, results
};

// A frame of this size. `scroll`: rows of the tables that are above it; it is brought into range. `height` 0:
// all rows, and no line about keys; `width` 0: no limit.
std::vector<ScreenLine> top_frame(const TopLook& look, int width, int height, int& scroll);

}  // namespace tuner
