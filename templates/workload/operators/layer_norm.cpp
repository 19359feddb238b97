#include "templates/workload/operators/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "templates/workload/parts/rounding.h"
#include "templates/workload/parts/rows.h"

namespace tuner {
namespace {

class LayerNormFacts final : public RowOperator<LayerNormWorkload> {
 public:
  void describe(LayerNormWorkload& w, WorkloadFields& f) const override {
    describe_matrix(w.rows, w.columns, f);
    // Below 1e-12 float32 loses it beside any variance, and a constant row divides by almost nothing.
    f.number({.word = "eps", .json = "epsilon"}, w.epsilon, 1e-12, 1);
    describe_matrix_type(w.dtype, f);
  }

  // The variance is of centred values: the difference of two large sums would lose what is asked for.
  Program math(const LayerNormWorkload& w) const override {
    using te::Indices;
    te::Builder b("layer_norm", w.dtype);
    const Buffer x = b.input("x", {w.rows, w.columns});
    const Buffer gamma = b.input("gamma", {w.columns});
    const Buffer beta = b.input("beta", {w.columns});
    const Expr columns = float_imm(static_cast<double>(w.columns), w.dtype);
    const Buffer row_sum = over_columns(b, "row_sum", w.rows, w.columns, ReduceOp::kSum,
                                        [&](const Indices& i) { return load(x, i); });
    const Buffer mean =
        b.compute("mean", {w.rows}, [&](const Indices& i) { return load(row_sum, i) / columns; },
                  BufferRole::kIntermediate, {"i"});
    const Buffer centred = b.compute("centred", {w.rows, w.columns},
                                     [&](const Indices& i) { return load(x, i) - load(mean, {i[0]}); },
                                     BufferRole::kIntermediate, {"i", "j"});
    const Buffer squares =
        over_columns(b, "squares", w.rows, w.columns, ReduceOp::kSum,
                     [&](const Indices& i) { return load(centred, i) * load(centred, i); });
    const Buffer inverse =
        b.compute("inverse_deviation", {w.rows},
                  [&](const Indices& i) {
                    return float_imm(1, w.dtype) /
                           unary(UnaryOp::kSqrt, load(squares, i) / columns + float_imm(w.epsilon, w.dtype));
                  },
                  BufferRole::kIntermediate, {"i"});
    b.compute("out", {w.rows, w.columns},
              [&](const Indices& i) {
                return load(centred, i) * load(inverse, {i[0]}) * load(gamma, {i[1]}) + load(beta, {i[1]});
              },
              BufferRole::kOutput, {"i", "j"});
    return b.finish();
  }

  // Sum; centre; square, sum; by the deviation, by gamma, plus beta; and centre once more, as most kernels
  // do.
  int64_t flops(const LayerNormWorkload& w) const override { return 8 * w.rows * w.columns; }

  // Outputs are below a few units, since the variance of many columns is about 1/3. A row of few columns may
  // have almost none: then the rounding of (x - mean) is divided by what is left, in the worst case by the
  // root of epsilon.
  Tolerance tolerance(const LayerNormWorkload& w) const override {
    constexpr int64_t kManyColumns = 32;
    const double spread = std::max(2 * kLeastTolerance, 2 * positive_sum_error(w.columns));
    if (w.columns >= kManyColumns) return {spread, kRelativeTolerance};
    return {std::max(spread, 4 * kRounding / std::sqrt(w.epsilon)), kRelativeTolerance};
  }
  bool shares_errors() const override { return true; }
};

}  // namespace

const OperatorFacts<LayerNormWorkload>& LayerNormWorkload::facts() {
  static const LayerNormFacts facts;
  return facts;
}

}  // namespace tuner
