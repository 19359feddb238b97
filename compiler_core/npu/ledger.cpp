#include "compiler_core/npu/ledger.h"

#include <algorithm>

namespace tuner::npu {

Ledger::Ledger(const Machine& machine, uint64_t dram_bytes)
    : burst_bytes_(machine.burst_bytes),
      dram_bytes_(dram_bytes),
      words_(machine.words()),
      sums_(machine.accumulator_rows()),
      bursts_((dram_bytes + burst_bytes_ - 1) / burst_bytes_) {}

template <class Cells, class F>
bool Ledger::visit(Cells& ledger, const Plan& plan, const F& f) {
  for (const uint32_t entry : plan.words)
    if (f(ledger.words_[Plan::word(entry)], Plan::writes(entry), Space::kScratchpad, Plan::word(entry)))
      return true;
  for (const Plan::SumRows& rows : plan.sums)
    for (uint32_t r = rows.begin; r < rows.begin + rows.count; ++r)
      if (f(ledger.sums_[r], rows.write, Space::kSums, r)) return true;
  for (const Plan::DramRow& row : plan.dram)
    for (uint64_t b = row.begin / ledger.burst_bytes_; b <= (row.begin + row.bytes - 1) / ledger.burst_bytes_;
         ++b)
      if (f(ledger.bursts_[b], row.write, Space::kDram, b)) return true;
  return false;
}

std::optional<BadCell> Ledger::bad_cell(const Plan& plan) const {
  static_assert(kQueues == 3);
  const auto never = [](const Cell& cell) {
    return (cell.written[0] | cell.written[1] | cell.written[2]) == 0;
  };
  for (const uint32_t entry : plan.words) {
    const uint32_t word = Plan::word(entry);
    if (word >= words_.size()) return BadCell{Space::kScratchpad, word, words_.size(), true};
    if (!Plan::writes(entry) && never(words_[word]))
      return BadCell{Space::kScratchpad, word, words_.size(), false};
  }
  for (const Plan::SumRows& rows : plan.sums)
    for (uint32_t r = rows.begin; r < rows.begin + rows.count; ++r) {
      if (r >= sums_.size()) return BadCell{Space::kSums, r, sums_.size(), true};
      if (rows.read && never(sums_[r])) return BadCell{Space::kSums, r, sums_.size(), false};
    }
  for (const Plan::DramRow& row : plan.dram)
    if (row.begin + row.bytes > dram_bytes_)
      return BadCell{Space::kDram, std::max(row.begin, dram_bytes_), dram_bytes_, true};
  return std::nullopt;
}

std::optional<Conflict> Ledger::conflict(const Plan& plan, Queue queue, const Clock& known) const {
  std::optional<Conflict> found;
  const int own = static_cast<int>(queue);
  visit(*this, plan, [&](const Cell& cell, bool write, Space space, uint64_t number) {
    for (int q = 0; q < kQueues; ++q) {
      if (q == own) continue;
      const bool after_write = cell.written[q] > known[q];
      if (!after_write && !(write && cell.read[q] > known[q])) continue;
      found = Conflict{space, number, after_write ? cell.written[q] : cell.read[q], after_write, write};
      return true;
    }
    return false;
  });
  return found;
}

Clock Ledger::last_conflicts(const Plan& plan, Queue queue) const {
  Clock last{};
  visit(*this, plan, [&](const Cell& cell, bool write, Space, uint64_t) {
    for (int q = 0; q < kQueues; ++q) {
      if (q == static_cast<int>(queue)) continue;
      last[q] = std::max(last[q], cell.written[q]);
      if (write) last[q] = std::max(last[q], cell.read[q]);
    }
    return false;
  });
  return last;
}

void Ledger::record(const Plan& plan, Queue queue, uint32_t instruction) {
  const int q = static_cast<int>(queue);
  visit(*this, plan, [&](Cell& cell, bool write, Space, uint64_t) {
    (write ? cell.written : cell.read)[q] = instruction;
    return false;
  });
}

}  // namespace tuner::npu
