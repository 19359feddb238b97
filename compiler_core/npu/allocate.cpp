#include "compiler_core/npu/allocate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler_core/base/int_math.h"
#include "compiler_core/npu/encoding.h"
#include "compiler_core/npu/fault_text.h"
#include "compiler_core/npu/fields.h"
#include "compiler_core/npu/plan.h"

namespace tuner::npu {
namespace {

constexpr uint32_t kNotPlaced = UINT32_MAX;

class Allocator {
 public:
  Allocator(const Machine& machine, const Code& code, const std::vector<ScratchpadBuffer>& buffers)
      : m_(machine),
        code_(code),
        buffers_(buffers),
        lives_(buffers.size()),
        begin_(buffers.size(), kNotPlaced) {}

  Result<Allocation> run();

 private:
  struct Life {
    uint32_t first = UINT32_MAX, last = 0;  // instructions
    uint8_t queues = 0;                     // that touch it
    bool is_used() const { return first != UINT32_MAX; }
  };

  std::optional<size_t> buffer_of(uint32_t word) const;
  Status find_lives();
  Status place(size_t buffer);
  Status place_all(const std::vector<size_t>& order);
  bool is_free(size_t buffer, uint32_t begin) const;
  // `buffer`, placed at `begin`, would lie on `other`, which has its place.
  bool share_words(size_t buffer, uint32_t begin, size_t other) const {
    return begin_[other] != kNotPlaced && begin < begin_[other] + buffers_[other].words &&
           begin_[other] < begin + buffers_[buffer].words;
  }
  int64_t bank_cost(size_t buffer, uint32_t begin) const;
  std::vector<uint32_t> candidates() const;
  Status rename(Instruction& i, uint32_t index) const;
  bool live_together(size_t a, size_t b) const {
    return lives_[a].first <= lives_[b].last && lives_[b].first <= lives_[a].last;
  }

  const Machine m_;
  const Code& code_;
  const std::vector<ScratchpadBuffer>& buffers_;
  std::vector<Life> lives_;
  std::map<std::pair<size_t, size_t>, int64_t> together_;  // words of instructions that touch both
  std::vector<uint32_t> begin_;
  std::vector<size_t> by_address_;
  bool mind_banks_ = true;
};

// The plan of an instruction does not depend on strides of others but for DMA, whose registers are followed
// here.
void follow_strides(const Instruction& i, Strides (&strides)[kQueues]) {
  if (i.op == Op::kSetLoad || i.op == Op::kSetStore)
    strides[static_cast<int>(queue_of(i.op))] = {i.dram_stride, i.stride};
}

std::optional<size_t> Allocator::buffer_of(uint32_t word) const {
  const auto after =
      std::ranges::upper_bound(by_address_, word, {}, [&](size_t b) { return buffers_[b].begin; });
  if (after == by_address_.begin()) return std::nullopt;
  const size_t b = *std::prev(after);
  if (word - buffers_[b].begin >= buffers_[b].words) return std::nullopt;
  return b;
}

Status Allocator::find_lives() {
  Strides strides[kQueues];
  Plan plan;
  for (uint32_t n = 0; n < code_.size(); ++n) {
    const Queue queue = queue_of(code_[n].op);
    follow_strides(code_[n], strides);
    make_plan(m_, code_[n], strides[static_cast<int>(queue)], plan);
    std::map<size_t, int64_t> touched;  // words by buffer
    for (const uint32_t entry : plan.words) {
      const std::optional<size_t> b = buffer_of(Plan::word(entry));
      if (!b)
        return invalid_argument(
            fault_text(code_, n, str("touches word ", Plan::word(entry), ", of no buffer")));
      ++touched[*b];
    }
    for (const auto& [b, words] : touched) {
      lives_[b].first = std::min(lives_[b].first, n);
      lives_[b].last = n;
      lives_[b].queues |= bit(queue);
      for (const auto& [other, its_words] : touched)
        if (other != b) together_[{b, other}] += std::min(words, its_words);
    }
  }
  return Status::ok();
}

bool Allocator::is_free(size_t buffer, uint32_t begin) const {
  if (begin + buffers_[buffer].words > m_.words()) return false;
  for (size_t other = 0; other < buffers_.size(); ++other)
    if (other != buffer && live_together(buffer, other) && share_words(buffer, begin, other)) return false;
  return true;
}

// Words that would wait: those of one instruction for each other, and those that another queue moves
// meanwhile.
int64_t Allocator::bank_cost(size_t buffer, uint32_t begin) const {
  const auto banks = [&](size_t b, uint32_t at) {
    const int64_t first = at / m_.words_per_bank();
    return std::pair(first, (int64_t{at} + buffers_[b].words - 1) / m_.words_per_bank());
  };
  const auto [first, last] = banks(buffer, begin);
  int64_t cost = 0;
  for (size_t other = 0; other < buffers_.size(); ++other) {
    if (other == buffer || begin_[other] == kNotPlaced || !live_together(buffer, other)) continue;
    const auto [others_first, others_last] = banks(other, begin_[other]);
    if (last < others_first || others_last < first) continue;
    const auto both = together_.find({buffer, other});
    if (both != together_.end()) cost += both->second;
    if ((lives_[buffer].queues | lives_[other].queues) != bit(Queue::kCompute))
      cost += std::min(buffers_[buffer].words, buffers_[other].words);
  }
  return cost;
}

// Places where a buffer may begin: banks, and where others end.
std::vector<uint32_t> Allocator::candidates() const {
  std::vector<uint32_t> found;
  for (int64_t b = 0; b < m_.banks; ++b) found.push_back(static_cast<uint32_t>(b * m_.words_per_bank()));
  for (size_t other = 0; other < buffers_.size(); ++other)
    if (begin_[other] != kNotPlaced) found.push_back(begin_[other] + buffers_[other].words);
  std::ranges::sort(found);
  return found;
}

Status Allocator::place(size_t buffer) {
  int64_t least = 0;
  for (const uint32_t begin : candidates()) {
    if (!is_free(buffer, begin)) continue;
    const int64_t cost = mind_banks_ ? bank_cost(buffer, begin) : 0;
    if (begin_[buffer] != kNotPlaced && cost >= least) continue;
    least = cost;
    begin_[buffer] = begin;
  }
  if (begin_[buffer] != kNotPlaced) return Status::ok();
  int64_t live = buffers_[buffer].words;
  for (size_t other = 0; other < buffers_.size(); ++other)
    if (begin_[other] != kNotPlaced && live_together(buffer, other)) live += buffers_[other].words;
  return invalid_config(fault_text(code_, lives_[buffer].first,
                                   str("no place for a buffer of ", buffers_[buffer].words, " words; ", live,
                                       " words are in use with it, and the scratchpad has ", m_.words())));
}

// Gives the instruction the real places of its buffers.
Status Allocator::rename(Instruction& i, uint32_t index) const {
  for (const Field& field : row_of(i.op).fields) {
    if (field.number != &Instruction::source && field.number != &Instruction::source2 &&
        field.number != &Instruction::target)
      continue;
    // A product without rows names no rows, one that fills nothing no weights.
    if (i.op == Op::kMatmul && ((field.number == &Instruction::source && i.rows == 0) ||
                                (field.number == &Instruction::source2 && !i.fill)))
      continue;
    uint32_t& word = i.*field.number;
    if (const std::optional<size_t> b = buffer_of(word); b && lives_[*b].is_used())
      word = word - buffers_[*b].begin + begin_[*b];
  }
  return check(i).with_context(str("#", index, ": "));
}

Status Allocator::place_all(const std::vector<size_t>& order) {
  for (const size_t b : order)
    if (lives_[b].is_used()) RETURN_IF_ERROR(place(b));
  return Status::ok();
}

Result<Allocation> Allocator::run() {
  by_address_.resize(buffers_.size());
  std::iota(by_address_.begin(), by_address_.end(), size_t{0});
  std::ranges::sort(by_address_, {}, [&](size_t b) { return buffers_[b].begin; });
  RETURN_IF_ERROR(find_lives());
  std::vector<size_t> order = by_address_;
  std::ranges::stable_sort(order, {}, [&](size_t b) { return lives_[b].first; });
  if (!place_all(order).is_ok()) {
    mind_banks_ = false;
    std::ranges::fill(begin_, kNotPlaced);
    RETURN_IF_ERROR(place_all(order));
  }
  Allocation result{.code = code_, .begin = begin_};
  Strides strides[kQueues];
  Plan before, after;
  for (uint32_t n = 0; n < code_.size(); ++n) {
    Instruction& i = result.code[n];
    follow_strides(i, strides);
    const Strides& own = strides[static_cast<int>(queue_of(i.op))];
    make_plan(m_, i, own, before);
    RETURN_IF_ERROR(rename(i, n));
    make_plan(m_, i, own, after);
    for (size_t k = 0; k < before.words.size(); ++k) {
      const size_t b = *buffer_of(Plan::word(before.words[k]));
      if (Plan::word(after.words[k]) - begin_[b] != Plan::word(before.words[k]) - buffers_[b].begin)
        return invalid_argument(fault_text(code_, n, "reaches from one buffer into another by one address"));
    }
  }
  for (uint32_t& begin : result.begin)
    if (begin == kNotPlaced) begin = 0;
  return result;
}

}  // namespace

Result<Allocation> allocate_scratchpad(const Machine& machine, const Code& code,
                                       const std::vector<ScratchpadBuffer>& buffers) {
  return Allocator(machine, code, buffers).run();
}

}  // namespace tuner::npu
