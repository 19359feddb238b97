// quantized_softmax_npu: softmax along rows of bytes by a table of exponentials, on the NPU's vector unit: a
// program of one com.microsoft.QLinearSoftmax, whose scales and zero points are written out. npu_rows.h has
// its loops, codegen_npu/row_math.h its formula.
#include "compiler_core/codegen_npu/row_math.h"
#include "compiler_core/graph/operator.h"
#include "templates/npu/npu_rows.h"
#include "templates/npu/npu_templates.h"

namespace tuner {
namespace {

class QuantizedSoftmaxNpu final : public npu_rows::RowTemplate {
 public:
  QuantizedSoftmaxNpu()
      : RowTemplate("quantized_softmax_npu", "com.microsoft.QLinearSoftmax", {"most", "total"}) {}

  Program compute(const ProgramWorkload& w) const override {
    using te::Indices;
    const npu_rows::RowShape shape = shape_of(w);
    const graph::Use use(*w.fragment, w.fragment->nodes[0]);
    const auto number = [&](size_t i) { return use.has(i) ? use.numbers(i)->at(0) : 0.0; };
    npu_rows::RowMath math(shape);
    const Buffer table = math.builder().input("out.exponentials", {256}, DType::kInt32);
    const Buffer most = math.per_row("most", ReduceOp::kMax,
                                     [](const Indices&, const Expr& x) { return npu_rows::whole(x); });
    const Buffer total = math.per_row("total", ReduceOp::kSum, [&](const Indices& row, const Expr& x) {
      return cast(DType::kInt64, npu_rows::exponential(table, load(most, row), x));
    });
    const float scale = 1 / static_cast<float>(number(3));
    const auto zero = static_cast<int64_t>(number(4));
    return math.finish([&](const Indices& row, const Expr&, const Expr& x) {
      return npu_rows::softmax(shape.dtype, table, load(most, row), load(total, row), x, scale, zero);
    });
  }

 private:
  std::string lacks(const graph::Graph& g) const override {
    return g.inputs.size() == 1 ? "" : "needs scales and zero points written out";
  }
};

}  // namespace

const AnyTemplate& quantized_softmax_npu() {
  static const QuantizedSoftmaxNpu instance;
  return instance;
}

}  // namespace tuner
