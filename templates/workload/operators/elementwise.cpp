#include "templates/workload/operators/elementwise.h"

#include <algorithm>

#include "templates/workload/parts/checks.h"
#include "templates/workload/parts/rounding.h"
#include "templates/workload/parts/rows.h"

namespace tuner {
namespace {

// True if the activation gives one of the numbers it is given, or a limit: nothing is rounded.
bool is_exact(const Activation& a) {
  return a.kind == ActivationKind::kNone || a.kind == ActivationKind::kRelu ||
         a.kind == ActivationKind::kClip;
}

class ElementwiseFacts final : public RowOperator<ElementwiseWorkload> {
 public:
  void describe(ElementwiseWorkload& w, WorkloadFields& f) const override {
    describe_matrix(w.rows, w.columns, f);
    f.flag({.word = "scale"}, w.scale);
    f.flag({.word = "bias"}, w.bias);
    f.flag({.word = "residual"}, w.residual);
    f.activation({.word = "act", .json = "activation"}, w.activation);
    describe_matrix_type(w.dtype, f);
  }
  Status check(const ElementwiseWorkload& w) const override {
    RETURN_IF_ERROR(check_activation_numbers(w.activation));
    return RowOperator::check(w);
  }

  Program math(const ElementwiseWorkload& w) const override {
    using te::Indices;
    te::Builder b("elementwise", w.dtype);
    const Buffer x = b.input("x", {w.rows, w.columns});
    const Buffer scale = w.scale ? b.input("scale", {w.columns}) : nullptr;
    const Buffer bias = w.bias ? b.input("bias", {w.columns}) : nullptr;
    const Buffer residual = w.residual ? b.input("residual", {w.rows, w.columns}) : nullptr;
    b.compute("out", {w.rows, w.columns},
              [&](const Indices& i) {
                Expr value = load(x, i);
                if (scale) value = value * load(scale, {i[1]});
                if (bias) value = value + load(bias, {i[1]});
                if (residual) value = value + load(residual, i);
                return activated(w.activation, value);
              },
              BufferRole::kOutput, {"i", "j"});
    return b.finish();
  }

  int64_t flops(const ElementwiseWorkload& w) const override {
    const int parts = w.scale + w.bias + w.residual + (w.activation != Activation::kNone ? 1 : 0);
    return parts * w.rows * w.columns;
  }

  // Without arithmetic it is a copy.
  Tolerance tolerance(const ElementwiseWorkload& w) const override {
    if (!w.scale && !w.bias && !w.residual && is_exact(w.activation)) return {0, 0};
    return {kLeastTolerance * std::max(1.0, steepest(w.activation)), kRelativeTolerance};
  }

  TaskShape shape(const ElementwiseWorkload& w) const override {
    TaskShape shape = RowOperator::shape(w);
    shape.variant += str(" scale=", w.scale);
    return shape;
  }
};

}  // namespace

const OperatorFacts<ElementwiseWorkload>& ElementwiseWorkload::facts() {
  static const ElementwiseFacts facts;
  return facts;
}

}  // namespace tuner
