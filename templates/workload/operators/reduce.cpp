#include "templates/workload/operators/reduce.h"

#include <algorithm>

#include "templates/workload/parts/rounding.h"
#include "templates/workload/parts/rows.h"

namespace tuner {
namespace {

constexpr std::string_view kReductionNames[] = {"sum", "max", "min", "mean"};

ReduceOp reduce_op(RowReduction reduction) {
  switch (reduction) {
    case RowReduction::kMax:
      return ReduceOp::kMax;
    case RowReduction::kMin:
      return ReduceOp::kMin;
    case RowReduction::kSum:
    case RowReduction::kMean:
      break;
  }
  return ReduceOp::kSum;
}

class ReduceFacts final : public RowOperator<ReduceWorkload> {
 public:
  void describe(ReduceWorkload& w, WorkloadFields& f) const override {
    describe_matrix(w.rows, w.columns, f);
    f.choice_of({.word = "reduction"}, kReductionNames, w.reduction);
    describe_matrix_type(w.dtype, f);
  }

  Program math(const ReduceWorkload& w) const override {
    using te::Indices;
    te::Builder b("reduce", w.dtype);
    const Buffer x = b.input("x", {w.rows, w.columns});
    const Buffer acc = over_columns(b, "acc", w.rows, w.columns, reduce_op(w.reduction),
                                    [&](const Indices& i) { return load(x, i); });
    b.compute("out", {w.rows},
              [&](const Indices& i) {
                const Expr all = load(acc, i);
                const bool mean = w.reduction == RowReduction::kMean;
                return mean ? all / float_imm(static_cast<double>(w.columns), w.dtype) : all;
              },
              BufferRole::kOutput, {"i"});
    return b.finish();
  }

  int64_t flops(const ReduceWorkload& w) const override { return w.rows * w.columns; }

  // The largest of numbers is one of them.
  Tolerance tolerance(const ReduceWorkload& w) const override {
    if (w.reduction == RowReduction::kMax || w.reduction == RowReduction::kMin) return {0, 0};
    const double error = value_sum_error(w.columns);
    if (w.reduction == RowReduction::kSum) return {std::max(kLeastTolerance, error), kRelativeTolerance};
    // A mean is small, and so must be what it may err: 2^-22 for few columns.
    return {std::max(4 * kRounding, error / static_cast<double>(w.columns)), kRelativeTolerance};
  }

  TaskShape shape(const ReduceWorkload& w) const override {
    TaskShape shape = RowOperator::shape(w);
    shape.variant += str(" reduction=", row_reduction_name(w.reduction));
    return shape;
  }
};

}  // namespace

std::string_view row_reduction_name(RowReduction r) { return kReductionNames[static_cast<size_t>(r)]; }

const OperatorFacts<ReduceWorkload>& ReduceWorkload::facts() {
  static const ReduceFacts facts;
  return facts;
}

}  // namespace tuner
