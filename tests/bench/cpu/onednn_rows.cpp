// Pooling and the operators on rows as oneDNN's users call them.
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
  const DnnlEpilogue epilogue(ways.api, ways.bench_case, 1, operands.size() > 1 ? &operands[1].md : nullptr,
                              w.activation);
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

// Images are in layout `tag`; with `reorders` they are NCHW outside, and both changes of layout are timed.
Result<Contestant> pool_contestant(const DnnlWays& ways, const Pool2dWorkload& w, dnnl_format_tag_t tag,
                                   bool reorders, const char* name) {
  const OnednnApi& api = ways.api;
  const DnnlMd src = dnnl_md(api, {w.batch, w.channels, w.in_height, w.in_width}, tag),
               dst = dnnl_md(api, {w.batch, w.channels, w.out_height(), w.out_width()}, tag);
  const dnnl_alg_kind_t kind = w.pooling == Pooling::kMax ? dnnl_pooling_max
                               : w.count_include_pad      ? dnnl_pooling_avg_include_padding
                                                          : dnnl_pooling_avg_exclude_padding;
  const dnnl_dims_t strides = {w.stride[0], w.stride[1]}, kernel = {w.kernel_height, w.kernel_width},
                    before = {w.padding[0], w.padding[1]}, after = {w.padding[2], w.padding[3]};
  dnnl_pooling_desc_t description;
  RETURN_IF_ERROR(dnnl_ok(api.pooling_forward_desc_init(&description, dnnl_forward_inference, kind, &src,
                                                        &dst, strides, kernel, before, after),
                          "pooling"));
  ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::make(api, &description));
  const auto call = std::make_shared<DnnlCall>(api, ways.sets);
  const HostTensor& image = ways.bench_case.operand("data");
  ASSIGN_OR_RETURN(DnnlCall::Slot data,
                   call->filled(reorders ? dnnl_plain_md(api, image.shape) : src, image));
  if (reorders) {
    const DnnlCall::Slot inside = call->tensor(src);
    RETURN_IF_ERROR(call->add_reorder(data, inside));
    data = inside;
  }
  DnnlCall::Slot out = call->tensor(dst);
  RETURN_IF_ERROR(call->add(pd, {{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, out}}));
  if (reorders) {
    const DnnlCall::Slot outside = call->tensor(dnnl_plain_md(api, ways.bench_case.operand("out").shape));
    RETURN_IF_ERROR(call->add_reorder(out, outside));
    out = outside;
  }
  return dnnl_contestant(ways.bench_case, call, out, name, pd.kernel());
}

}  // namespace

void add_dnnl_rows(const DnnlWays& ways) {
  const Workload& workload = ways.bench_case.workload();
  if (const auto* w = workload.get_if<SoftmaxWorkload>()) ways.add("oneDNN", softmax_contestant(ways, *w));
  if (const auto* w = workload.get_if<LayerNormWorkload>())
    ways.add("oneDNN", layer_norm_contestant(ways, *w));
  if (const auto* w = workload.get_if<Pool2dWorkload>()) {
    const auto add = [&](const char* name, dnnl_format_tag_t tag, bool reorders) {
      ways.add(name, pool_contestant(ways, *w, tag, reorders, name));
    };
    if (w->layout == "NCHW") {
      add("oneDNN nchw", dnnl_nchw, false);
      add("oneDNN nChw16c+reorders", dnnl_nChw16c, true);
    } else {
      add("oneDNN nChw16c", dnnl_nChw16c, false);  // its own layout, where ours is NHWC
      add("oneDNN nhwc", dnnl_nhwc, false);
    }
  }
  if (const auto* w = workload.get_if<ElementwiseWorkload>())
    ways.add("oneDNN", elementwise_contestant(ways, *w));
}

}  // namespace tuner
