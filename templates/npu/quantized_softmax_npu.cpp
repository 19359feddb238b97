// quantized_softmax_npu: softmax along rows of bytes by a table of exponentials, on the NPU's vector unit: a
// program of one com.microsoft.QLinearSoftmax, whose scales and zero points are written out. npu_rows.h has
// its loops, codegen_npu/row_math.h its formula.
#include "compiler_core/codegen_npu/npu_family.h"
#include "compiler_core/codegen_npu/row_math.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/te/te.h"
#include "templates/npu/npu_rows.h"
#include "templates/npu/npu_templates.h"

namespace tuner {
namespace {

constexpr std::string_view kSoftmaxOp = "com.microsoft.QLinearSoftmax";

class QuantizedSoftmaxNpu final : public ScheduleTemplate<ProgramWorkload, npu_rows::RowKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "quantized_softmax_npu"; }
  int version() const override { return 1; }

  Support supports(const ProgramWorkload& w, const Target& t) const override {
    if (!is_npu(t)) return needs_target("an NPU", t);
    std::string why;
    const auto shape = npu_rows::rows_of_program(w, kSoftmaxOp, why);
    if (!shape) return declined(why);
    if (w.fragment->inputs.size() != 1) return declined("needs scales and zero points written out");
    return npu_rows::serves_rows(*shape, t);
  }
  npu_rows::RowKnobs declare(ConfigSpace& space, const ProgramWorkload& w, const Target& t) const override {
    return npu_rows::declare_rows(space, shape_of(w), t);
  }

  Program compute(const ProgramWorkload& w) const override {
    using te::Indices;
    const npu_rows::RowShape shape = shape_of(w);
    const graph::Use use(*w.fragment, w.fragment->nodes[0]);
    const auto number = [&](size_t i) { return use.has(i) ? use.numbers(i)->at(0) : 0.0; };
    te::Builder b("program", shape.dtype);
    const Buffer x = b.input("in0", {shape.rows, shape.columns});
    const Buffer table = b.input("out.exponentials", {256}, DType::kInt32);
    const auto at = [&](const Indices& i, const Expr& column) { return load(x, {i[0], column}); };
    const Buffer most =
        b.reduce("most", {shape.rows}, {{"c", shape.columns}}, ReduceOp::kMax,
                 [&](const Indices& i, const Indices& r) { return npu_rows::whole(at(i, r[0])); });
    const Buffer total =
        b.reduce("total", {shape.rows}, {{"c", shape.columns}}, ReduceOp::kSum,
                 [&](const Indices& i, const Indices& r) {
                   return cast(DType::kInt64, npu_rows::exponential(table, load(most, {i[0]}), at(i, r[0])));
                 });
    const Buffer y = b.compute(
        "y", {shape.rows, shape.columns},
        [&](const Indices& i) {
          return npu_rows::softmax(shape.dtype, table, load(most, {i[0]}), load(total, {i[0]}), at(i, i[1]),
                                   1 / static_cast<float>(number(3)), static_cast<int64_t>(number(4)));
        },
        BufferRole::kIntermediate, {"i", "j"}, shape.dtype);
    b.compute("out", {shape.rows, shape.columns}, [&](const Indices& i) { return load(y, i); },
              BufferRole::kOutput, {"i", "j"});
    return b.finish();
  }

  void schedule(Schedule& s, const ProgramWorkload& w, const Target& t, const npu_rows::RowKnobs& k,
                const Config& c) const override {
    npu_rows::schedule_rows(s, shape_of(w), t, {"most", "total"}, c[k.tile], c[k.stages]);
  }

 private:
  static npu_rows::RowShape shape_of(const ProgramWorkload& w) {
    std::string why;
    return *npu_rows::rows_of_program(w, kSoftmaxOp, why);
  }
};

}  // namespace

const AnyTemplate& quantized_softmax_npu() {
  static const QuantizedSoftmaxNpu instance;
  return instance;
}

}  // namespace tuner
