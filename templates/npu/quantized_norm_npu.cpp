// quantized_norm_npu: layer normalization of rows of bytes, on the NPU's vector unit: a program of one
// tuner.QLinearLayerNormalization, whose zero point is written out. npu_rows.h has its loops,
// codegen_npu/row_math.h its formula.
#include "compiler_core/codegen_npu/row_math.h"
#include "compiler_core/graph/operator.h"
#include "templates/npu/npu_rows.h"
#include "templates/npu/npu_templates.h"

namespace tuner {
namespace {

class QuantizedNormNpu final : public npu_rows::RowTemplate {
 public:
  QuantizedNormNpu()
      : RowTemplate("quantized_norm_npu", "tuner.QLinearLayerNormalization", {"sum", "squares"}) {}

  Program compute(const ProgramWorkload& w) const override {
    using te::Indices;
    const npu_rows::RowShape shape = shape_of(w);
    const graph::Use use(*w.fragment, w.fragment->nodes[0]);
    npu_rows::RowMath math(shape);
    const Buffer gain = math.builder().input("in1", {shape.columns}, DType::kFloat32),
                 offset = math.builder().input("in2", {shape.columns}, DType::kFloat32);
    const auto sum_of = [&](const char* called, Expr (*f)(const Expr&)) {
      return math.per_row(called, ReduceOp::kSum, [f](const Indices&, const Expr& x) { return f(x); });
    };
    const Buffer sum = sum_of("sum", npu_rows::summand), squares = sum_of("squares", npu_rows::square);
    const auto zero = static_cast<int64_t>(use.numbers(3)->at(0));
    const auto epsilon = static_cast<float>(use.number("epsilon", 1e-5));
    return math.finish([&](const Indices& row, const Expr& column, const Expr& x) {
      return npu_rows::norm(shape.dtype, {.x = x,
                                          .sum = load(sum, row),
                                          .squares = load(squares, row),
                                          .gain = load(gain, {column}),
                                          .offset = load(offset, {column}),
                                          .columns = shape.columns,
                                          .epsilon = epsilon,
                                          .zero = zero});
    });
  }

 private:
  std::string lacks(const graph::Graph& g) const override {
    const bool has_both =
        g.inputs.size() == 3 && g.nodes[0].inputs[1] == g.inputs[1] && g.nodes[0].inputs[2] == g.inputs[2];
    return has_both ? "" : "needs gains and offsets as inputs, and the zero point written out";
  }
};

}  // namespace

const AnyTemplate& quantized_norm_npu() {
  static const QuantizedNormNpu instance;
  return instance;
}

}  // namespace tuner
