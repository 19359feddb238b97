// Unit: one queue of the machine and what runs in it, for the simulator.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "compiler_core/npu/ledger.h"
#include "compiler_core/npu/plan.h"
#include "compiler_core/npu/simulator.h"

namespace tuner::npu {

// Steps of a plan, one after the other.
struct Stream {
  uint32_t step = 0, end = 0;
  uint64_t taken = 0;  // of the step's words, those that had their bank
  bool done() const { return step == end; }
};

struct Running {
  uint32_t index = 0;  // in the code
  Span span;
  Clock clock{};  // what it comes behind
  Plan plan;
  Stream first, second;
  int64_t first_until = 0;  // the end of the first stream's last step
  bool begun = false, steps_done = false;
  int64_t own_end = -1;  // once its steps are done
};

class Unit {
 public:
  struct Waiting {
    uint32_t index;
    int64_t dispatch;
  };
  std::deque<Waiting> waiting;
  std::deque<Running> running;
  Clock clock{};

  size_t held() const { return waiting.size() + running.size(); }
  // The first running instruction that has steps left; null if there is none.
  Running* current() {
    for (Running& r : running)
      if (!r.steps_done) return &r;
    return nullptr;
  }
  // Plans are large and come often, so their memory is used again.
  Plan take_plan() {
    if (spare_.empty()) return {};
    Plan plan = std::move(spare_.back());
    spare_.pop_back();
    return plan;
  }
  void give_back(Plan plan) { spare_.push_back(std::move(plan)); }

 private:
  std::vector<Plan> spare_;
};

}  // namespace tuner::npu
