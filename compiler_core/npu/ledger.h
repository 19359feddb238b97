// Ledger: who touched what last, cell by cell: words of the scratchpad, rows of the accumulators, bursts of
// DRAM.
//
// The simulator asks it whether tokens order an instruction behind all that it depends on; the placement of
// tokens asks it what that is. Instructions are numbers counted from 1 in the order of the program; 0 is
// none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler_core/npu/plan.h"

namespace tuner::npu {

// By queue: the last instruction whose end something is known to come behind.
using Clock = std::array<uint32_t, kQueues>;

enum class Space : uint8_t { kScratchpad, kSums, kDram };

// Two accesses to one cell, from two queues, one of them a write.
struct Conflict {
  Space space = Space::kScratchpad;
  uint64_t cell = 0;       // word, row, or number of the burst
  uint32_t earlier = 0;    // the instruction that touched it before
  bool was_write = false;  // what the earlier one did
  bool is_write = false;
};

// A place that lies outside, or that nothing has written.
struct BadCell {
  Space space = Space::kScratchpad;
  uint64_t cell = 0, cells = 0;  // for DRAM bytes
  bool outside = false;
};

class Ledger {
 public:
  Ledger(const Machine& machine, uint64_t dram_bytes);

  // The first access of the plan that lies outside, or reads a scratchpad word or a row that nothing wrote.
  std::optional<BadCell> bad_cell(const Plan& plan) const;
  // The first conflict with an instruction of another queue that is later than `known` says. Requires
  // !bad_cell().
  std::optional<Conflict> conflict(const Plan& plan, Queue queue, const Clock& known) const;
  // By queue: the last instruction that conflicts with the plan. Requires !bad_cell().
  Clock last_conflicts(const Plan& plan, Queue queue) const;
  // Requires !bad_cell(), and instructions of one queue in order.
  void record(const Plan& plan, Queue queue, uint32_t instruction);

 private:
  struct Cell {
    Clock read{}, written{};
  };
  // Calls f(cell, is_write, space, number) until it returns true.
  template <class Cells, class F>
  static bool visit(Cells& ledger, const Plan& plan, const F& f);

  uint64_t burst_bytes_, dram_bytes_;
  std::vector<Cell> words_, sums_, bursts_;
};

}  // namespace tuner::npu
