// Attention as exporters write it: two products around a softmax, and the moves around them.
//
//   MatMul(Q, K transposed), times a number, hidden where a key comes later, plus up to two masks,
//   Softmax, MatMul with V, and a Transpose that puts heads side by side
//
// Q, K and V are read where they lie before reshapes, transpositions, parts of one product, and repeats of
// heads, so that none of these is work.
#pragma once

#include <optional>

#include "tuner/model/anchors.h"

namespace tuner {

// Nothing if node `n` does not end such a pattern, if anything between is read by others, or if the scores
// are made in another way or order. Rows of fewer than kLeastQueries queries are left to plain products.
inline constexpr int64_t kLeastQueries = 4;
std::optional<Anchor> attention_anchor(const graph::Graph& graph, const graph::Uses& uses, size_t n);

}  // namespace tuner
