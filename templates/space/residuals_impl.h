// Shared by residuals.cpp (numbers) and residuals_truths.cpp. Private to them.
#pragma once

#include <algorithm>
#include <utility>

#include "templates/space/residuals.h"

namespace tuner {

// Reordering sums and products is exact below this; above it they might saturate on the way.
inline constexpr int64_t kSafe = int64_t{1} << 52;
inline constexpr size_t kMostValues = 1024;

inline bool safe(IntRange r) { return r.lo > -kSafe && r.hi < kSafe; }
inline int64_t magnitude(IntRange r) {
  return std::max<int64_t>({r.hi, r.lo == INT64_MIN ? INT64_MAX : -r.lo, 1});
}
inline bool product_is_safe(int64_t a, int64_t b) { return static_cast<__int128>(a) * b < kSafe; }
inline bool sum_is_safe(IntRange a, IntRange b) {
  return safe(a) && safe(b) && magnitude(a) + magnitude(b) < kSafe;
}

inline constexpr std::pair<IntOp, Residuals::Kind> kWritten[] = {
    {IntOp::kAdd, Residuals::Kind::kAdd}, {IntOp::kSub, Residuals::Kind::kSub},
    {IntOp::kMul, Residuals::Kind::kMul}, {IntOp::kDiv, Residuals::Kind::kDiv},
    {IntOp::kMod, Residuals::Kind::kMod}, {IntOp::kMin, Residuals::Kind::kMin},
    {IntOp::kMax, Residuals::Kind::kMax}};
inline Residuals::Kind kind_of(IntOp op) {
  for (const auto& [known, kind] : kWritten)
    if (known == op) return kind;
  CHECK(false) << "no operation on two numbers";
  return Residuals::Kind::kConst;
}
inline IntOp op_of(Residuals::Kind kind) {
  for (const auto& [op, known] : kWritten)
    if (known == kind) return op;
  CHECK(false) << "no operation on two numbers";
  return IntOp::kConst;
}

template <class F>
ResidualId Residuals::tabulate(std::initializer_list<ResidualId> operands, F value_of) {
  uint64_t layers = 0;
  for (const ResidualId e : operands) layers |= node(e).layers;
  if (layers == 0) return constant(value_of(0));
  if ((layers & (layers - 1)) != 0) return ResidualId::kNone;
  const int layer = __builtin_ctzll(layers);
  std::vector<int64_t> values(candidates_[layer]->size());
  for (size_t c = 0; c < values.size(); ++c) values[c] = value_of(static_cast<int>(c));
  return table_node(layer, values);
}

}  // namespace tuner
