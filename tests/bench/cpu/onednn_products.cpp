// Convolution and matrix product as oneDNN's users call them.
#include <algorithm>

#include "templates/workload/winograd_math.h"
#include "tests/bench/cpu/onednn_call.h"
#include "tests/bench/cpu/plain_matmul.h"

namespace tuner {
namespace {

// Which layout the images have when the call begins and ends, and which one the primitive works in.
struct ConvWay {
  const char* name;
  dnnl_alg_kind_t algorithm;
  dnnl_format_tag_t inside;  // dnnl_format_tag_any: the library's choice
  bool nchw_outside;         // NCHW in and out, with reorders that are timed where `inside` differs
  bool only_3x3;
};

constexpr ConvWay kLayoutFree[] = {
    {"oneDNN any", dnnl_convolution_direct, dnnl_format_tag_any, false, false},
    {"oneDNN nhwc", dnnl_convolution_direct, dnnl_nhwc, false, false},
    {"oneDNN auto", dnnl_convolution_auto, dnnl_format_tag_any, false, false},
    {"oneDNN Winograd", dnnl_convolution_winograd, dnnl_format_tag_any, false, true}};
constexpr ConvWay kNchw[] = {
    {"oneDNN any+reorders", dnnl_convolution_direct, dnnl_format_tag_any, true, false},
    {"oneDNN Winograd+reorders", dnnl_convolution_winograd, dnnl_format_tag_any, true, true},
    {"oneDNN nchw", dnnl_convolution_direct, dnnl_nchw, true, false}};

bool same(const DnnlMd& a, const DnnlMd& b) {
  return a.format_kind == b.format_kind && a.ndims == b.ndims &&
         std::equal(a.format_desc.blocking.strides, a.format_desc.blocking.strides + a.ndims,
                    b.format_desc.blocking.strides) &&
         a.format_desc.blocking.inner_nblks == b.format_desc.blocking.inner_nblks;
}

// A sum of oneDNN has no zero point of its own.
template <class Product>
Status has_form(const Product& w) {
  if (requantises(w) && w.residual) return failed("a residual of 8 bits is not done here");
  const ActivationKind kind = w.activation.kind;
  if (w.scale || !w.post.empty() || (kind != ActivationKind::kNone && kind != ActivationKind::kRelu))
    return failed("only bias, residual and relu are done here, in this order");
  return Status::ok();
}

Result<DnnlPd> conv_primitive(const DnnlWays& ways, const Conv2dWorkload& w, const ConvWay& way) {
  const OnednnApi& api = ways.api;
  const auto shape = [&](const char* operand) { return ways.bench_case.operand(operand).shape; };
  const DnnlMd src = dnnl_md(api, shape("data"), way.inside, left_dtype(w.dtype)),
               dst = dnnl_md(api, shape("out"), way.inside, w.out_dtype());
  std::vector<int64_t> weight_shape = shape("weight");
  if (w.groups > 1) {
    weight_shape[0] /= w.groups;
    weight_shape.insert(weight_shape.begin(), w.groups);
  }
  const DnnlMd weights = dnnl_md(api, weight_shape, dnnl_format_tag_any, w.dtype);
  const DnnlMd bias = dnnl_md(api, {w.out_channels}, dnnl_a, sum_dtype(w.dtype));
  const dnnl_dims_t strides = {w.stride[0], w.stride[1]}, dilates = {w.dilation[0] - 1, w.dilation[1] - 1},
                    before = {w.padding[0], w.padding[1]}, after = {w.padding[2], w.padding[3]};
  dnnl_convolution_desc_t description;
  RETURN_IF_ERROR(dnnl_ok(api.dilated_convolution_forward_desc_init(
                              &description, dnnl_forward_inference, way.algorithm, &src, &weights,
                              w.bias ? &bias : nullptr, &dst, strides, dilates, before, after),
                          "convolution"));
  const DnnlEpilogue epilogue(api, ways.bench_case, 1, w.residual ? &dst : nullptr, w.activation);
  return DnnlPd::make(api, &description, epilogue.get());
}

Result<Contestant> conv_contestant(const DnnlWays& ways, const Conv2dWorkload& w, const ConvWay& way) {
  RETURN_IF_ERROR(has_form(w));
  ASSIGN_OR_RETURN(const DnnlPd pd, conv_primitive(ways, w, way));
  // Code that shows what is right, a thousand times as slow as what is fast: timing it would take the run.
  if (pd.kernel().starts_with("ref")) return failed("oneDNN has only ", pd.kernel(), " for this");
  const auto call = std::make_shared<DnnlCall>(ways.api, ways.sets);
  const auto operand = [&](const char* name) -> const HostTensor& { return ways.bench_case.operand(name); };
  const DnnlMd src_md = pd.md(dnnl_query_src_md), dst_md = pd.md(dnnl_query_dst_md);
  const DnnlMd nchw_src = dnnl_plain_md(ways.api, operand("data").shape, left_dtype(w.dtype)),
               nchw_dst = dnnl_plain_md(ways.api, operand("out").shape, w.out_dtype());

  ASSIGN_OR_RETURN(DnnlCall::Slot src, call->filled(way.nchw_outside ? nchw_src : src_md, operand("data")));
  if (way.nchw_outside && !same(nchw_src, src_md)) {
    const DnnlCall::Slot inside = call->tensor(src_md);
    RETURN_IF_ERROR(call->add_reorder(src, inside));
    src = inside;
  }
  ASSIGN_OR_RETURN(const DnnlCall::Slot weights,
                   call->filled(pd.md(dnnl_query_weights_md), operand("weight")));
  const DnnlCall::Slot dst = call->tensor(dst_md);
  std::vector<std::pair<int, DnnlCall::Slot>> arguments{
      {DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}};
  if (w.bias) {
    ASSIGN_OR_RETURN(
        const DnnlCall::Slot bias,
        call->filled(dnnl_md(ways.api, {w.out_channels}, dnnl_a, sum_dtype(w.dtype)), operand("bias")));
    arguments.emplace_back(DNNL_ARG_BIAS, bias);
  }
  if (w.residual) {
    ASSIGN_OR_RETURN(const DnnlCall::Slot residual, call->filled(dst_md, operand("residual")));
    arguments.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, residual);
  }
  RETURN_IF_ERROR(call->add(pd, arguments));
  DnnlCall::Slot out = dst;
  if (way.nchw_outside && !same(nchw_dst, dst_md)) {
    out = call->tensor(nchw_dst);
    RETURN_IF_ERROR(call->add_reorder(dst, out));
  }
  const std::string kernel = pd.kernel();
  const bool winograd = kernel.find("wino") != std::string::npos;
  Contestant made =
      dnnl_contestant(ways.bench_case, call, out, way.name, kernel, winograd ? "winograd" : "direct");
  // Its tiles are of 2 or 4 outputs; its matrices may be scaled otherwise than ours.
  if (winograd) made.tolerance = Tolerance{winograd_tolerance({6, 6}, w.in_channels), 1e-5};
  return made;
}

// Row-major operands of the case; `packed`: the library lays out b as it likes, ahead.
Result<Contestant> matmul_contestant(const DnnlWays& ways, const MatmulWorkload& w, bool packed) {
  RETURN_IF_ERROR(has_form(w));
  const OnednnApi& api = ways.api;
  // As stored, and as the product sees it: strides do the transposing.
  const auto shape = [&](int64_t rows, int64_t columns) {
    return w.batch == 1 ? std::vector{rows, columns} : std::vector{w.batch, rows, columns};
  };
  const auto plain = [&](int64_t rows, int64_t columns, bool transposed, DType dtype) {
    const dnnl_format_tag_t tag =
        w.batch == 1 ? (transposed ? dnnl_ba : dnnl_ab) : (transposed ? dnnl_acb : dnnl_abc);
    return dnnl_md(api, shape(rows, columns), tag, dtype);
  };
  const DnnlMd a = plain(w.m, w.k, w.transpose_a, left_dtype(w.dtype)),
               b = plain(w.k, w.n, w.transpose_b, w.dtype), out = plain(w.m, w.n, false, w.out_dtype());
  const DnnlMd any = dnnl_md(api, shape(w.k, w.n), dnnl_format_tag_any, w.dtype);
  const DnnlMd bias =
      dnnl_md(api, w.batch == 1 ? std::vector<int64_t>{1, w.n} : std::vector<int64_t>{1, 1, w.n},
              w.batch == 1 ? dnnl_ab : dnnl_abc, sum_dtype(w.dtype));
  dnnl_matmul_desc_t description;
  RETURN_IF_ERROR(dnnl_ok(
      api.matmul_desc_init(&description, &a, packed ? &any : &b, w.bias ? &bias : nullptr, &out), "matmul"));
  const DnnlEpilogue epilogue(api, ways.bench_case, w.batch == 1 ? 1 : 2, w.residual ? &out : nullptr,
                              w.activation);
  ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::make(api, &description, epilogue.get()));
  const auto call = std::make_shared<DnnlCall>(api, ways.sets);
  // filled() takes row-major values; operands that are stored transposed are not among the benchmark's
  // shapes.
  if (w.transpose_a || w.transpose_b) return failed("operands that are stored transposed are not done here");
  ASSIGN_OR_RETURN(const DnnlCall::Slot src, call->filled(a, ways.bench_case.operand("a")));
  ASSIGN_OR_RETURN(const DnnlCall::Slot weights,
                   call->filled(pd.md(dnnl_query_weights_md), ways.bench_case.operand("b")));
  const DnnlCall::Slot dst = call->tensor(out);
  std::vector<std::pair<int, DnnlCall::Slot>> arguments{
      {DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}};
  if (w.bias) {
    ASSIGN_OR_RETURN(const DnnlCall::Slot slot, call->filled(bias, ways.bench_case.operand("bias")));
    arguments.emplace_back(DNNL_ARG_BIAS, slot);
  }
  if (w.residual) {
    ASSIGN_OR_RETURN(const DnnlCall::Slot slot, call->filled(out, ways.bench_case.operand("residual")));
    arguments.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, slot);
  }
  RETURN_IF_ERROR(call->add(pd, arguments));
  return dnnl_contestant(ways.bench_case, call, dst, packed ? "oneDNN packed" : "oneDNN matmul", pd.kernel());
}

// A dense layer: weights [N, K], which the library packs.
Result<Contestant> inner_product_contestant(const DnnlWays& ways, const MatmulWorkload& w) {
  RETURN_IF_ERROR(has_form(w));
  const OnednnApi& api = ways.api;
  const DnnlMd src = dnnl_md(api, {w.m, w.k}, dnnl_ab, left_dtype(w.dtype)),
               dst = dnnl_md(api, {w.m, w.n}, dnnl_ab, w.out_dtype()),
               weights = dnnl_md(api, {w.n, w.k}, dnnl_format_tag_any, w.dtype),
               bias = dnnl_md(api, {w.n}, dnnl_a, sum_dtype(w.dtype));
  dnnl_inner_product_desc_t description;
  RETURN_IF_ERROR(dnnl_ok(api.inner_product_forward_desc_init(&description, dnnl_forward_inference, &src,
                                                              &weights, w.bias ? &bias : nullptr, &dst),
                          "inner product"));
  const DnnlEpilogue epilogue(api, ways.bench_case, 1, w.residual ? &dst : nullptr, w.activation);
  ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::make(api, &description, epilogue.get()));
  const auto call = std::make_shared<DnnlCall>(api, ways.sets);
  const HostTensor& b = ways.bench_case.operand("b");
  HostTensor transposed{
      .name = "b", .shape = {w.n, w.k}, .values = std::vector<float>(b.values.size()), .dtype = b.dtype};
  for (int64_t k = 0; k < w.k; ++k)
    for (int64_t n = 0; n < w.n; ++n) transposed.values[n * w.k + k] = b.values[k * w.n + n];
  ASSIGN_OR_RETURN(const DnnlCall::Slot a, call->filled(src, ways.bench_case.operand("a")));
  ASSIGN_OR_RETURN(const DnnlCall::Slot packed, call->filled(pd.md(dnnl_query_weights_md), transposed));
  const DnnlCall::Slot out = call->tensor(dst);
  std::vector<std::pair<int, DnnlCall::Slot>> arguments{
      {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, out}};
  if (w.bias) {
    ASSIGN_OR_RETURN(const DnnlCall::Slot slot, call->filled(bias, ways.bench_case.operand("bias")));
    arguments.emplace_back(DNNL_ARG_BIAS, slot);
  }
  RETURN_IF_ERROR(call->add(pd, arguments));
  return dnnl_contestant(ways.bench_case, call, out, "oneDNN inner product", pd.kernel());
}

// Plain operands, as a BLAS.
Contestant sgemm_contestant(const DnnlWays& ways) {
  const auto multiply = [sgemm = ways.api.sgemm](const PlainMatmul& x, int set, int64_t i) {
    const MatmulWorkload& w = x.w;
    sgemm(w.transpose_a ? 'T' : 'N', w.transpose_b ? 'T' : 'N', w.m, w.n, w.k, 1, x.a(set, i),
          w.transpose_a ? w.m : w.k, x.b(set, i), w.transpose_b ? w.k : w.n, 0, x.out(set, i), w.n);
  };
  return plain_matmul_contestant(ways.bench_case, ways.sets, "oneDNN sgemm", ContestantKind::kPeer,
                                 "dnnl_sgemm", multiply);
}

}  // namespace

void add_dnnl_conv2d(const DnnlWays& ways, const Conv2dWorkload& w) {
  const auto add = [&](const ConvWay& way) {
    const bool is_3x3 = w.kernel_height == 3 && w.kernel_width == 3 && w.stride[0] == 1 && w.stride[1] == 1;
    if (way.only_3x3 && (!is_3x3 || w.groups > 1 || w.dtype != DType::kFloat32)) return;
    ways.add(way.name, conv_contestant(ways, w, way));
  };
  if (w.layout == "NCHW" && w.out_layout == "NCHW")
    for (const ConvWay& way : kNchw) add(way);
  else
    for (const ConvWay& way : kLayoutFree) add(way);
}

void add_dnnl_matmul(const DnnlWays& ways, const MatmulWorkload& w) {
  ways.add("oneDNN packed", matmul_contestant(ways, w, /*packed=*/true));
  ways.add("oneDNN matmul", matmul_contestant(ways, w, /*packed=*/false));
  if (w.batch == 1) ways.add("oneDNN inner product", inner_product_contestant(ways, w));
  if (is_plain_matmul(ways.bench_case.workload())) ways.contestants.push_back(sgemm_contestant(ways));
}

}  // namespace tuner
