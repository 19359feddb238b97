#include "compiler_core/codegen_npu/queue_work.h"

#include <algorithm>
#include <array>

#include "compiler_core/npu/plan.h"

namespace tuner {

int64_t QueueWork::least_cycles() const { return std::max({array + vector, load, store, dram, bank}); }

std::string_view QueueWork::bound() const {
  const int64_t least = least_cycles();
  if (least == array + vector) return array >= vector ? "array" : "vector unit";
  if (least == dram || least == load || least == store) return "DRAM";
  return "banks";
}

QueueWork queue_work(const npu::Machine& machine, const npu::Code& code) {
  QueueWork work;
  std::vector<int64_t> banks(static_cast<size_t>(machine.banks), 0);
  std::array<npu::Strides, npu::kQueues> strides{};
  npu::Plan plan;
  for (const npu::Instruction& i : code) {
    const auto queue = static_cast<size_t>(npu::queue_of(i.op));
    if (i.op == npu::Op::kSetLoad || i.op == npu::Op::kSetStore) strides[queue] = {i.dram_stride, i.stride};
    plan.clear();
    npu::make_plan(machine, i, strides[queue], plan);
    for (const uint32_t entry : plan.words)
      ++banks[std::min(static_cast<size_t>(npu::Plan::word(entry) / machine.words_per_bank()),
                       banks.size() - 1)];
    for (const npu::Plan::Step& step : plan.steps) work.dram += step.bus != 0 ? 1 : 0;
    const auto steps = static_cast<int64_t>(plan.steps.size()), first = int64_t{plan.second_stream};
    if (npu::is_array(i.op))
      work.array += std::max(first, steps - first);
    else if (npu::queue_of(i.op) == npu::Queue::kCompute)
      work.vector += steps;
    else
      (npu::queue_of(i.op) == npu::Queue::kLoad ? work.load : work.store) += steps;
  }
  work.bank = *std::ranges::max_element(banks);
  return work;
}

}  // namespace tuner
