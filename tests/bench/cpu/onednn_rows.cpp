// The operators on rows as oneDNN's users call them.
#include "tests/bench/cpu/onednn_call.h"

namespace tuner {
namespace {

Result<Contestant> softmax_contestant(const DnnlWays& ways, const SoftmaxWorkload& w) {
  const DnnlMd md = dnnl_md(ways.api, {w.rows, w.columns}, dnnl_ab);
  dnnl_softmax_desc_t description;
  RETURN_IF_ERROR(dnnl_ok(
      ways.api.softmax_forward_desc_init(&description, dnnl_forward_inference, &md, /*axis=*/1), "softmax"));
  ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::make(ways.api, &description));
  const auto call = std::make_shared<DnnlCall>(ways.api, ways.sets);
  ASSIGN_OR_RETURN(const DnnlCall::Slot x, call->filled(md, ways.bench_case.operand("x")));
  const DnnlCall::Slot out = call->tensor(md);
  RETURN_IF_ERROR(call->add(pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, out}}));
  return dnnl_contestant(ways.bench_case, call, out, "oneDNN", pd.kernel());
}

Result<Contestant> layer_norm_contestant(const DnnlWays& ways, const LayerNormWorkload& w) {
  const DnnlMd md = dnnl_md(ways.api, {w.rows, w.columns}, dnnl_ab);
  const DnnlMd statistics = dnnl_md(ways.api, {w.rows}, dnnl_a),
               vector = dnnl_md(ways.api, {w.columns}, dnnl_a);
  dnnl_layer_normalization_desc_t description;
  RETURN_IF_ERROR(dnnl_ok(ways.api.layer_normalization_forward_desc_init(
                              &description, dnnl_forward_inference, &md, &statistics,
                              static_cast<float>(w.epsilon), dnnl_use_scale | dnnl_use_shift),
                          "layer normalisation"));
  ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::make(ways.api, &description));
  const auto call = std::make_shared<DnnlCall>(ways.api, ways.sets);
  ASSIGN_OR_RETURN(const DnnlCall::Slot x, call->filled(md, ways.bench_case.operand("x")));
  ASSIGN_OR_RETURN(const DnnlCall::Slot gamma, call->filled(vector, ways.bench_case.operand("gamma")));
  ASSIGN_OR_RETURN(const DnnlCall::Slot beta, call->filled(vector, ways.bench_case.operand("beta")));
  const DnnlCall::Slot out = call->tensor(md);
  RETURN_IF_ERROR(call->add(
      pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_SCALE, gamma}, {DNNL_ARG_SHIFT, beta}, {DNNL_ARG_DST, out}}));
  return dnnl_contestant(ways.bench_case, call, out, "oneDNN", pd.kernel());
}

// One binary primitive (x with the first operand there is), the rest fused into it. ReLU alone is an eltwise.
Result<Contestant> elementwise_contestant(const DnnlWays& ways, const ElementwiseWorkload& w) {
  const DnnlMd md = dnnl_md(ways.api, {w.rows, w.columns}, dnnl_ab),
               row = dnnl_md(ways.api, {1, w.columns}, dnnl_ab);
  struct Operand {
    const char* name;
    dnnl_alg_kind_t kind;
    DnnlMd md;
  };
  std::vector<Operand> operands;
  if (w.scale) operands.push_back({"scale", dnnl_binary_mul, row});
  if (w.bias) operands.push_back({"bias", dnnl_binary_add, row});
  if (w.residual) operands.push_back({"residual", dnnl_binary_add, md});
  const auto call = std::make_shared<DnnlCall>(ways.api, ways.sets);
  ASSIGN_OR_RETURN(const DnnlCall::Slot x, call->filled(md, ways.bench_case.operand("x")));
  const auto filled = [&](const Operand& o) -> Result<DnnlCall::Slot> {
    HostTensor values = ways.bench_case.operand(o.name);
    return call->filled(o.md, values);
  };
  if (operands.empty()) {
    dnnl_eltwise_desc_t description;
    RETURN_IF_ERROR(dnnl_ok(ways.api.eltwise_forward_desc_init(&description, dnnl_forward_inference,
                                                               dnnl_eltwise_relu, &md, 0, 0),
                            "eltwise"));
    ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::make(ways.api, &description));
    const DnnlCall::Slot out = call->tensor(md);
    RETURN_IF_ERROR(call->add(pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, out}}));
    return dnnl_contestant(ways.bench_case, call, out, "oneDNN eltwise", pd.kernel());
  }
  if (operands.size() > 2) return failed("three operands are not done here");
  dnnl_binary_desc_t description;
  RETURN_IF_ERROR(dnnl_ok(
      ways.api.binary_desc_init(&description, operands[0].kind, &md, &operands[0].md, &md), "binary"));
  // The second operand as a fused binary; only additions come second.
  const DnnlEpilogue epilogue(ways.api, operands.size() > 1 ? &operands[1].md : nullptr, w.activation);
  ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::make(ways.api, &description, epilogue.get()));
  ASSIGN_OR_RETURN(const DnnlCall::Slot first, filled(operands[0]));
  const DnnlCall::Slot out = call->tensor(md);
  std::vector<std::pair<int, DnnlCall::Slot>> arguments{
      {DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, first}, {DNNL_ARG_DST, out}};
  if (operands.size() > 1) {
    ASSIGN_OR_RETURN(const DnnlCall::Slot second, filled(operands[1]));
    arguments.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, second);
  }
  RETURN_IF_ERROR(call->add(pd, arguments));
  return dnnl_contestant(ways.bench_case, call, out, "oneDNN binary", pd.kernel());
}

}  // namespace

void add_dnnl_rows(const DnnlWays& ways) {
  const Workload& workload = ways.bench_case.workload();
  if (const auto* w = workload.get_if<SoftmaxWorkload>()) ways.add("oneDNN", softmax_contestant(ways, *w));
  if (const auto* w = workload.get_if<LayerNormWorkload>())
    ways.add("oneDNN", layer_norm_contestant(ways, *w));
  if (const auto* w = workload.get_if<ElementwiseWorkload>())
    ways.add("oneDNN", elementwise_contestant(ways, *w));
}

}  // namespace tuner
