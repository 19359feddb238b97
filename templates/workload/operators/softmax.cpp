#include "templates/workload/operators/softmax.h"

#include <algorithm>

#include "templates/workload/parts/rounding.h"
#include "templates/workload/parts/rows.h"

namespace tuner {
namespace {

// The largest element is taken off before exp: no overflow, and at least one term of the sum is 1.
Program softmax_math(const SoftmaxWorkload& w, bool by_reciprocals) {
  using te::Indices;
  te::Builder b("softmax", w.dtype);
  const Buffer x = b.input("x", {w.rows, w.columns});
  const Buffer row_max = over_columns(b, "row_max", w.rows, w.columns, ReduceOp::kMax,
                                      [&](const Indices& i) { return load(x, i); });
  const Buffer exps =
      b.compute("exps", {w.rows, w.columns},
                [&](const Indices& i) { return unary(UnaryOp::kExp, load(x, i) - load(row_max, {i[0]})); },
                BufferRole::kIntermediate, {"i", "j"});
  const Buffer row_sum = over_columns(b, "row_sum", w.rows, w.columns, ReduceOp::kSum,
                                      [&](const Indices& i) { return load(exps, i); });
  const Buffer scale =
      !by_reciprocals ? nullptr
                      : b.compute("row_scale", {w.rows},
                                  [&](const Indices& i) { return float_imm(1, w.dtype) / load(row_sum, i); },
                                  BufferRole::kIntermediate, {"i"});
  b.compute("out", {w.rows, w.columns},
            [&](const Indices& i) {
              return by_reciprocals ? load(exps, i) * load(scale, {i[0]})
                                    : load(exps, i) / load(row_sum, {i[0]});
            },
            BufferRole::kOutput, {"i", "j"});
  return b.finish();
}

class SoftmaxFacts final : public RowOperator<SoftmaxWorkload> {
 public:
  Program math(const SoftmaxWorkload& w) const override { return softmax_math(w, /*by_reciprocals=*/false); }
  // Maximum; subtract, exp; sum; divide.
  int64_t flops(const SoftmaxWorkload& w) const override { return 5 * w.rows * w.columns; }
  // All elements are between exp(-2) and exp(2) over the number of columns: an error of any of them is
  // relative. exp itself is good to 2^-21 on every target (fast versions multiply by log2(e) first).
  Tolerance tolerance(const SoftmaxWorkload& w) const override {
    return {kLeastTolerance / static_cast<double>(w.columns),
            std::max(kRelativeTolerance, positive_sum_error(w.columns))};
  }
  bool shares_errors() const override { return true; }
};

}  // namespace

const OperatorFacts<SoftmaxWorkload>& SoftmaxWorkload::facts() {
  static const SoftmaxFacts facts;
  return facts;
}

Program softmax_by_reciprocals(const SoftmaxWorkload& w) { return softmax_math(w, /*by_reciprocals=*/true); }

}  // namespace tuner
