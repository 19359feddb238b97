#include "compiler_core/npu/tokens.h"

#include <vector>

#include "compiler_core/npu/fault_text.h"
#include "compiler_core/npu/ledger.h"

namespace tuner::npu {
namespace {

// Drops an instruction of `needed` (one per queue, 0 for none) that another one of them comes behind anyway.
//
// All orders go forward in the code. So what an instruction comes behind is final when the next one is
// looked at, and what is left is the transitive reduction: for one pair of queues, givers and takers both
// increase.
void drop_implied(Clock& needed, const std::vector<Clock>& behind) {
  for (int q = 0; q < kQueues; ++q)
    for (int other = 0; other < kQueues; ++other)
      if (other != q && needed[q] > 0 && needed[other] > 0 && behind[needed[other]][q] >= needed[q])
        needed[q] = 0;
}

}  // namespace

Result<Code> place_tokens(const Machine& machine, Code code, uint64_t dram_bytes) {
  Ledger ledger(machine, dram_bytes);
  std::vector<Clock> behind(code.size() +
                            1);  // by instruction, from 1: what it comes behind, itself included
  Clock last{};                  // by queue: its last instruction so far
  Strides strides[kQueues];
  Plan plan;
  for (uint32_t n = 1; n <= code.size(); ++n) {
    Instruction& i = code[n - 1];
    i.waits = i.gives = 0;
    const Queue queue = queue_of(i.op);
    const int own = static_cast<int>(queue);
    if (i.op == Op::kSetLoad || i.op == Op::kSetStore) strides[own] = {i.dram_stride, i.stride};
    make_plan(machine, i, strides[own], plan);
    if (const auto bad = ledger.bad_cell(plan))
      return invalid_argument(fault_text(code, n - 1, bad_cell_text(*bad)));
    Clock& known = behind[n];
    known = behind[last[own]];
    Clock needed = ledger.last_conflicts(plan, queue);
    for (int q = 0; q < kQueues; ++q)
      if (needed[q] <= known[q]) needed[q] = 0;
    drop_implied(needed, behind);
    for (int q = 0; q < kQueues; ++q) {
      if (needed[q] == 0) continue;
      code[needed[q] - 1].gives |= bit(queue);
      i.waits |= bit(static_cast<Queue>(q));
      for (int k = 0; k < kQueues; ++k) known[k] = std::max(known[k], behind[needed[q]][k]);
    }
    known[own] = n;
    last[own] = n;
    ledger.record(plan, queue, n);
  }
  return code;
}

}  // namespace tuner::npu
