#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

template <class W>
class OperatorFacts;

// How the heads of an operand lie. `row` = 0: apart, [batch, heads, sequence, size]. Else side by side, `row`
// of them, [batch, sequence, row, size]; the operand's own heads stand from head `first` of the row on. One
// product that gives Q, K and V is read so, three times, without being taken apart.
struct HeadLayout {
  int64_t row = 0, first = 0;
};
// "BHSD", "BSHD" (the row has just these heads) or "BSHD:36:12" (36 in the row, its own from 12 on).
Result<HeadLayout> head_layout_from_text(std::string_view text, int64_t heads);
std::string head_layout_text(const HeadLayout& layout, int64_t heads);

// out[b, h, i, :] = sum over s of p[b, h, i, s] * v[b, g, s, :], g = h / (heads / kv_heads)
// p[b, h, i, :] = softmax over s of scale * (sum over d of q[b, h, i, d] * k[b, g, s, d]) + mask + bias
//
// With `causal`, query i sees the keys up to i + keys - queries, and the scores of others are `hidden`.
struct AttentionWorkload {
  static constexpr std::string_view kOp = "attention";
  static constexpr bool kMemoryBound = false;
  static const OperatorFacts<AttentionWorkload>& facts();
  int64_t batch = 1, heads = 1, kv_heads = 1;
  int64_t queries = 1, keys = 1;
  int64_t size = 1;    // of a query and a key
  int64_t v_size = 1;  // of a value
  double scale = 1;
  float hidden = -3.40282347e38F;
  bool causal = false;
  DType dtype = DType::kFloat32;
  // Summands of the scores, [batch, heads, queries, keys]: "none", or the first three extents, "1x12x1". An
  // extent is that of the scores or 1; of the batch any divisor, and images then take turns.
  std::string mask = "none", bias = "none";
  std::string q_layout = "BHSD", k_layout = "BHSD", v_layout = "BHSD", out_layout = "BHSD";

  int64_t group() const { return heads / kv_heads; }  // heads that share keys and values
};

// The extents that `mask` or `bias` says, or nothing for "none".
Result<std::optional<std::array<int64_t, 3>>> score_summand(std::string_view text);

// Its math with the keys and the values of each head apart, in stages of their own: "keys" and "values".
Program attention_of_copies(const AttentionWorkload& w);

}  // namespace tuner
