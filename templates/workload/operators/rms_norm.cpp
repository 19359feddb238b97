#include "templates/workload/operators/rms_norm.h"

#include <algorithm>

#include "templates/workload/parts/rounding.h"
#include "templates/workload/parts/rows.h"

namespace tuner {
namespace {

class RmsNormFacts final : public RowOperator<RmsNormWorkload> {
 public:
  void describe(RmsNormWorkload& w, WorkloadFields& f) const override {
    describe_matrix(w.rows, w.columns, f);
    // Below 1e-12 float32 loses it beside any square, and a row of zeros divides by almost nothing.
    f.number({.word = "eps", .json = "epsilon"}, w.epsilon, 1e-12, 1);
    describe_matrix_type(w.dtype, f);
  }

  Program math(const RmsNormWorkload& w) const override {
    using te::Indices;
    te::Builder b("rms_norm", w.dtype);
    const Buffer x = b.input("x", {w.rows, w.columns});
    const Buffer gamma = b.input("gamma", {w.columns});
    const Expr columns = float_imm(static_cast<double>(w.columns), w.dtype);
    const Buffer squares = over_columns(b, "squares", w.rows, w.columns, ReduceOp::kSum,
                                        [&](const Indices& i) { return load(x, i) * load(x, i); });
    const Buffer inverse =
        b.compute("inverse_root", {w.rows},
                  [&](const Indices& i) {
                    return float_imm(1, w.dtype) /
                           unary(UnaryOp::kSqrt, load(squares, i) / columns + float_imm(w.epsilon, w.dtype));
                  },
                  BufferRole::kIntermediate, {"i"});
    b.compute("out", {w.rows, w.columns},
              [&](const Indices& i) { return load(x, i) * load(inverse, {i[0]}) * load(gamma, {i[1]}); },
              BufferRole::kOutput, {"i", "j"});
    return b.finish();
  }

  // Square, sum; by the root, by gamma.
  int64_t flops(const RmsNormWorkload& w) const override { return 4 * w.rows * w.columns; }

  // Squares are positive, so their sum errs relative to itself, and its root by half of that.
  Tolerance tolerance(const RmsNormWorkload& w) const override {
    return {kLeastTolerance, std::max(kRelativeTolerance, positive_sum_error(w.columns))};
  }
  bool shares_errors() const override { return true; }
};

}  // namespace

const OperatorFacts<RmsNormWorkload>& RmsNormWorkload::facts() {
  static const RmsNormFacts facts;
  return facts;
}

}  // namespace tuner
