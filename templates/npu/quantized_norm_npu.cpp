// quantized_norm_npu: layer normalization of rows of bytes, on the NPU's vector unit: a program of one
// tuner.QLinearLayerNormalization, whose zero point is written out. npu_rows.h has its loops,
// codegen_npu/row_math.h its formula.
#include "compiler_core/codegen_npu/npu_family.h"
#include "compiler_core/codegen_npu/row_math.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/te/te.h"
#include "templates/npu/npu_rows.h"
#include "templates/npu/npu_templates.h"

namespace tuner {
namespace {

constexpr std::string_view kNormOp = "tuner.QLinearLayerNormalization";

class QuantizedNormNpu final : public ScheduleTemplate<ProgramWorkload, npu_rows::RowKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "quantized_norm_npu"; }
  int version() const override { return 1; }

  Support supports(const ProgramWorkload& w, const Target& t) const override {
    if (!is_npu(t)) return needs_target("an NPU", t);
    std::string why;
    const auto shape = npu_rows::rows_of_program(w, kNormOp, why);
    if (!shape) return declined(why);
    const graph::Graph& g = *w.fragment;
    if (g.inputs.size() != 3 || g.nodes[0].inputs[1] != g.inputs[1] || g.nodes[0].inputs[2] != g.inputs[2])
      return declined("needs gains and offsets as inputs, and the zero point written out");
    return npu_rows::serves_rows(*shape, t);
  }
  npu_rows::RowKnobs declare(ConfigSpace& space, const ProgramWorkload& w, const Target& t) const override {
    return npu_rows::declare_rows(space, shape_of(w), t);
  }

  Program compute(const ProgramWorkload& w) const override {
    using te::Indices;
    const npu_rows::RowShape shape = shape_of(w);
    const graph::Use use(*w.fragment, w.fragment->nodes[0]);
    te::Builder b("program", shape.dtype);
    const Buffer x = b.input("in0", {shape.rows, shape.columns});
    const Buffer gain = b.input("in1", {shape.columns}, DType::kFloat32),
                 offset = b.input("in2", {shape.columns}, DType::kFloat32);
    const auto at = [&](const Indices& i, const Expr& column) { return load(x, {i[0], column}); };
    const auto over_row = [&](const char* called, Expr (*f)(const Expr&)) {
      return b.reduce(called, {shape.rows}, {{"c", shape.columns}}, ReduceOp::kSum,
                      [&](const Indices& i, const Indices& r) { return f(at(i, r[0])); });
    };
    const Buffer sum = over_row("sum", npu_rows::summand), squares = over_row("squares", npu_rows::square);
    const auto zero = static_cast<int64_t>(use.numbers(3)->at(0));
    const auto epsilon = static_cast<float>(use.number("epsilon", 1e-5));
    const Buffer y = b.compute(
        "y", {shape.rows, shape.columns},
        [&](const Indices& i) {
          return npu_rows::norm(shape.dtype, {.x = at(i, i[1]),
                                              .sum = load(sum, {i[0]}),
                                              .squares = load(squares, {i[0]}),
                                              .gain = load(gain, {i[1]}),
                                              .offset = load(offset, {i[1]}),
                                              .columns = shape.columns,
                                              .epsilon = epsilon,
                                              .zero = zero});
        },
        BufferRole::kIntermediate, {"i", "j"}, shape.dtype);
    b.compute("out", {shape.rows, shape.columns}, [&](const Indices& i) { return load(y, i); },
              BufferRole::kOutput, {"i", "j"});
    return b.finish();
  }

  void schedule(Schedule& s, const ProgramWorkload& w, const Target& t, const npu_rows::RowKnobs& k,
                const Config& c) const override {
    npu_rows::schedule_rows(s, shape_of(w), t, {"sum", "squares"}, c[k.tile], c[k.stages]);
  }

 private:
  static npu_rows::RowShape shape_of(const ProgramWorkload& w) {
    std::string why;
    return *npu_rows::rows_of_program(w, kNormOp, why);
  }
};

}  // namespace

const AnyTemplate& quantized_norm_npu() {
  static const QuantizedNormNpu instance;
  return instance;
}

}  // namespace tuner
