#include "tests/bench/model/onednn_chain.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/bench/cpu/onednn_call.h"

namespace tuner {

using graph::ValueId;
using Slot = DnnlCall::Slot;

struct OnednnChain::Parts {
  explicit Parts(const OnednnApi& api) : call(api, 1) {}
  std::vector<AlignedBuffer> memory;  // of inputs, outputs, and between
  std::vector<size_t> inputs, outputs;
  DnnlCall call;
};

OnednnChain::OnednnChain() = default;
OnednnChain::~OnednnChain() = default;
void* OnednnChain::input(size_t i) const { return parts_->memory[parts_->inputs[i]].data(); }
const void* OnednnChain::output(size_t i) const { return parts_->memory[parts_->outputs[i]].data(); }
void OnednnChain::run() const { parts_->call.run(0); }

namespace {

bool same(const DnnlMd& a, const DnnlMd& b) {
  return a.format_kind == b.format_kind && a.ndims == b.ndims &&
         std::equal(a.dims, a.dims + a.ndims, b.dims) &&
         std::equal(a.padded_dims, a.padded_dims + a.ndims, b.padded_dims) &&
         std::equal(a.format_desc.blocking.strides, a.format_desc.blocking.strides + a.ndims,
                    b.format_desc.blocking.strides) &&
         a.format_desc.blocking.inner_nblks == b.format_desc.blocking.inner_nblks;
}

// Attributes with post-operations, owned.
class PostOps {
 public:
  explicit PostOps(const OnednnApi& api) : api_(api) {
    api.primitive_attr_create(&attributes_);
    api.post_ops_create(&operations_);
  }
  ~PostOps() {
    api_.post_ops_destroy(operations_);
    api_.primitive_attr_destroy(attributes_);
  }
  PostOps(const PostOps&) = delete;
  PostOps& operator=(const PostOps&) = delete;

  Status activation(const Activation& a) {
    const auto append = [&](dnnl_alg_kind_t kind, float alpha = 0, float beta = 0) {
      return dnnl_ok(api_.post_ops_append_eltwise(operations_, 1, kind, alpha, beta), "activation");
    };
    switch (a.kind) {
      case ActivationKind::kNone:
        return Status::ok();
      case ActivationKind::kRelu:
        return append(dnnl_eltwise_relu);
      case ActivationKind::kLeaky:
        return append(dnnl_eltwise_relu, a.first);
      case ActivationKind::kClip:
        return append(dnnl_eltwise_clip, a.first, a.second);
      case ActivationKind::kSigmoid:
        return append(dnnl_eltwise_logistic);
      case ActivationKind::kSilu:
        return append(dnnl_eltwise_swish, 1);
      case ActivationKind::kHardSwish:
        return append(dnnl_eltwise_hardswish);
      case ActivationKind::kTanh:
        return append(dnnl_eltwise_tanh);
      case ActivationKind::kGelu:
        return append(dnnl_eltwise_gelu_erf);
      case ActivationKind::kGeluTanh:
        return append(dnnl_eltwise_gelu_tanh);
    }
    return failed("an activation that is not known here");
  }
  // out = ... + what out holds.
  void add() { api_.post_ops_append_sum(operations_, 1); }
  const_dnnl_primitive_attr_t get() {
    api_.primitive_attr_set_post_ops(attributes_, operations_);
    return attributes_;
  }

 private:
  const OnednnApi& api_;
  dnnl_primitive_attr_t attributes_ = nullptr;
  dnnl_post_ops_t operations_ = nullptr;
};

}  // namespace

class OnednnChain::Maker {
 public:
  Maker(const OnednnApi& api, const ModelSteps& model, bool winograd, Parts& parts)
      : api_(api), model_(model), winograd_(winograd), parts_(parts) {}

  Status make() {
    const graph::Graph& graph = model_.graph;
    for (size_t s = 0; s < model_.steps.size(); ++s)
      for (const ValueId v : model_.steps[s].reads) last_read_[root_of(v)] = s;
    for (const ValueId v : graph.inputs) {
      parts_.inputs.push_back(parts_.memory.size());
      slots_[v] = own(dnnl_plain_md(api_, graph[v].type.shape));
    }
    for (step_ = 0; step_ < model_.steps.size(); ++step_) {
      const ModelStep& step = model_.steps[step_];
      RETURN_IF_ERROR(chain(step).with_context(str("step ", step.name, ": ")));
      give_back();
    }
    for (const ValueId v : graph.outputs) {
      const DnnlMd plain = dnnl_plain_md(api_, graph[v].type.shape);
      parts_.outputs.push_back(parts_.memory.size());
      const Slot out = own(plain);
      ASSIGN_OR_RETURN(const Slot made, read(v, graph[v].type.shape));
      RETURN_IF_ERROR(parts_.call.add_reorder(made, out));
    }
    return Status::ok();
  }

 private:
  const graph::TensorType& type_of(ValueId v) const { return model_.graph[v].type; }
  ValueId root_of(ValueId v) const {
    while (model_.aliases[v].source != v) v = model_.aliases[v].source;
    return v;
  }

  // --- memory ---
  Slot own(const DnnlMd& md) {
    parts_.memory.emplace_back(std::max<int64_t>(64, static_cast<int64_t>(api_.memory_desc_get_size(&md))));
    return parts_.call.tensor_at(md, parts_.memory.back().data());
  }
  // Of what is written between steps: the piece that was freed last, if it is large enough and not much too
  // large.
  size_t piece_for(const DnnlMd& md) {
    const auto bytes = std::max<int64_t>(64, static_cast<int64_t>(api_.memory_desc_get_size(&md)));
    for (size_t i = free_.size(); i-- > 0;) {
      const size_t piece = free_[i];
      if (parts_.memory[piece].bytes() < bytes || parts_.memory[piece].bytes() > 4 * bytes) continue;
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
      return piece;
    }
    parts_.memory.emplace_back(bytes);
    return parts_.memory.size() - 1;
  }
  Slot between(ValueId v, const DnnlMd& md) {
    const size_t piece = piece_for(md);
    pieces_[v].push_back(piece);
    return parts_.call.tensor_at(md, parts_.memory[piece].data());
  }
  void give_back() {
    for (auto at = pieces_.begin(); at != pieces_.end();) {
      const auto last = last_read_.find(at->first);
      const bool shown =
          std::ranges::any_of(model_.graph.outputs, [&](ValueId v) { return root_of(v) == at->first; });
      if (shown || last == last_read_.end() || last->second > step_) {
        ++at;
        continue;
      }
      free_.insert(free_.end(), at->second.begin(), at->second.end());
      at = pieces_.erase(at);
    }
  }

  // --- tensors ---
  // The value as it lies now; of a view the elements in order, in this shape.
  Result<Slot> read(ValueId v, const std::vector<int64_t>& shape) {
    const ValueId root = root_of(v);
    for (ValueId at = v; at != root; at = model_.aliases[at].source)
      if (model_.aliases[at].offset != 0 || type_of(at).bytes() != type_of(root).bytes())
        return not_found("a part of a tensor is not chained here");
    const auto slot = slots_.find(root);
    if (slot == slots_.end()) return not_found("a value that no step made");
    const DnnlMd& lies = parts_.call.md(slot->second);
    if (std::equal(shape.begin(), shape.end(), lies.dims, lies.dims + lies.ndims)) return slot->second;
    const std::vector<int64_t> made(lies.dims, lies.dims + lies.ndims);
    const size_t piece = piece_for(dnnl_plain_md(api_, made));
    pieces_[root].push_back(piece);
    void* memory = parts_.memory[piece].data();
    RETURN_IF_ERROR(
        parts_.call.add_reorder(slot->second, parts_.call.tensor_at(dnnl_plain_md(api_, made), memory)));
    return parts_.call.tensor_at(dnnl_plain_md(api_, shape), memory);
  }
  Result<Slot> read_as(ValueId v, const std::vector<int64_t>& shape, const DnnlMd& wanted) {
    ASSIGN_OR_RETURN(const Slot lies, read(v, shape));
    if (same(parts_.call.md(lies), wanted)) return lies;
    const Slot there = between(root_of(v), wanted);
    RETURN_IF_ERROR(parts_.call.add_reorder(lies, there));
    return there;
  }
  Result<Slot> constant(ValueId v, const std::vector<int64_t>& shape, const DnnlMd& md) {
    const graph::Value& value = model_.graph[root_of(v)];
    if (!value.constant) return not_found("weights that are no constant are not chained here");
    const std::vector<double> numbers = value.constant->numbers(value.type.dtype);
    return parts_.call.filled(md, {value.name, shape, {numbers.begin(), numbers.end()}, value.type.dtype});
  }

  // --- steps ---
  Status chain(const ModelStep& step) {
    if (type_of(step.writes).dtype != DType::kFloat32) return not_found("only float32 is chained here");
    if (const auto* conv = step.workload.get_if<Conv2dWorkload>()) return convolution(step, *conv);
    if (const auto* pool = step.workload.get_if<Pool2dWorkload>()) return pooling(step, *pool);
    if (const auto* product = step.workload.get_if<MatmulWorkload>()) return inner_product(step, *product);
    if (const auto* rows = step.workload.get_if<ReduceWorkload>()) return average(step, *rows);
    if (const auto* rows = step.workload.get_if<SoftmaxWorkload>()) return softmax(step, *rows);
    return not_found(step.workload.op_name(), " is not chained here");
  }

  template <class W>
  static Status epilogue(const W& w, PostOps& post) {
    if (w.scale || (!w.post.empty() && !adds_residual_last(w)))
      return not_found("an epilogue in this order is not chained here");
    if (w.residual && !adds_residual_last(w)) post.add();
    RETURN_IF_ERROR(post.activation(w.activation));
    if (adds_residual_last(w)) post.add();
    return Status::ok();
  }

  // Where the step writes: on its residual, if nobody reads that later, or on a copy of it; else a place of
  // its own.
  Result<Slot> destination(const ModelStep& step, bool has_residual, const std::vector<int64_t>& shape,
                           const DnnlMd& md) {
    if (!has_residual) return between(step.writes, md);
    const ValueId residual = root_of(step.reads.back());
    ASSIGN_OR_RETURN(const Slot lies, read(step.reads.back(), shape));
    const bool given = std::ranges::count(model_.graph.inputs, residual) > 0;
    if (!given && last_read_.at(residual) == step_ && same(parts_.call.md(lies), md)) {
      pieces_[step.writes] = std::move(pieces_[residual]);
      pieces_.erase(residual);
      return lies;
    }
    const Slot copy = between(step.writes, md);
    RETURN_IF_ERROR(parts_.call.add_reorder(lies, copy));
    return copy;
  }

  Result<DnnlPd> conv_pd(const Conv2dWorkload& w, const std::vector<int64_t>& weight_shape,
                         dnnl_alg_kind_t algorithm, PostOps& post) {
    const DnnlMd src = dnnl_md(api_, {w.batch, w.in_channels, w.in_height, w.in_width}, dnnl_format_tag_any),
                 dst = dnnl_md(api_, {w.batch, w.out_channels, w.out_height(), w.out_width()},
                               dnnl_format_tag_any),
                 weights = dnnl_md(api_, weight_shape, dnnl_format_tag_any),
                 bias = dnnl_md(api_, {w.out_channels}, dnnl_a);
    const dnnl_dims_t strides = {w.stride[0], w.stride[1]}, dilates = {w.dilation[0] - 1, w.dilation[1] - 1},
                      before = {w.padding[0], w.padding[1]}, after = {w.padding[2], w.padding[3]};
    dnnl_convolution_desc_t description;
    RETURN_IF_ERROR(dnnl_ok(api_.dilated_convolution_forward_desc_init(
                                &description, dnnl_forward_inference, algorithm, &src, &weights,
                                w.bias ? &bias : nullptr, &dst, strides, dilates, before, after),
                            "convolution"));
    RETURN_IF_ERROR(epilogue(w, post));
    return DnnlPd::make(api_, &description, post.get());
  }

  Status convolution(const ModelStep& step, const Conv2dWorkload& w) {
    std::vector<int64_t> weight_shape = {w.out_channels, w.in_channels / w.groups, w.kernel_height,
                                         w.kernel_width};
    if (w.groups > 1) {
      weight_shape[0] /= w.groups;
      weight_shape.insert(weight_shape.begin(), w.groups);
    }
    const std::vector<int64_t> out_shape = {w.batch, w.out_channels, w.out_height(), w.out_width()};
    const bool may_winograd = winograd_ && w.groups == 1 && w.kernel_height == 3 && w.kernel_width == 3 &&
                              w.stride == std::array<int64_t, 2>{1, 1};
    PostOps direct(api_), other(api_);
    Result<DnnlPd> pd = may_winograd ? conv_pd(w, weight_shape, dnnl_convolution_winograd, other)
                                     : Result<DnnlPd>(failed("not wanted"));
    if (!pd.is_ok()) pd = conv_pd(w, weight_shape, dnnl_convolution_direct, direct);
    if (!pd.is_ok()) return pd.status();
    ASSIGN_OR_RETURN(const Slot src, read_as(step.reads[0], {w.batch, w.in_channels, w.in_height, w.in_width},
                                             pd->md(dnnl_query_src_md)));
    ASSIGN_OR_RETURN(const Slot weights,
                     constant(step.reads[1], weight_shape, pd->md(dnnl_query_weights_md)));
    ASSIGN_OR_RETURN(const Slot dst, destination(step, w.residual, out_shape, pd->md(dnnl_query_dst_md)));
    std::vector<std::pair<int, Slot>> arguments{
        {DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}};
    if (w.bias) {
      ASSIGN_OR_RETURN(const Slot bias,
                       constant(step.reads[2], {w.out_channels}, dnnl_md(api_, {w.out_channels}, dnnl_a)));
      arguments.emplace_back(DNNL_ARG_BIAS, bias);
    }
    slots_[step.writes] = dst;
    return parts_.call.add(*pd, arguments);
  }

  Status pool(ValueId from, ValueId to, const Pool2dWorkload& w) {
    const std::vector<int64_t> shape = {w.batch, w.channels, w.in_height, w.in_width};
    ASSIGN_OR_RETURN(const Slot src, read(from, shape));
    const DnnlMd src_md = parts_.call.md(src),
                 dst_md =
                     dnnl_md(api_, {w.batch, w.channels, w.out_height(), w.out_width()}, dnnl_format_tag_any);
    const dnnl_dims_t strides = {w.stride[0], w.stride[1]}, kernel = {w.kernel_height, w.kernel_width},
                      before = {w.padding[0], w.padding[1]}, after = {w.padding[2], w.padding[3]};
    const dnnl_alg_kind_t algorithm = w.pooling == Pooling::kMax ? dnnl_pooling_max
                                      : w.count_include_pad      ? dnnl_pooling_avg_include_padding
                                                                 : dnnl_pooling_avg_exclude_padding;
    dnnl_pooling_desc_t description;
    RETURN_IF_ERROR(dnnl_ok(api_.pooling_forward_desc_init(&description, dnnl_forward_inference, algorithm,
                                                           &src_md, &dst_md, strides, kernel, before, after),
                            "pooling"));
    ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::make(api_, &description));
    slots_[to] = between(to, pd.md(dnnl_query_dst_md));
    return parts_.call.add(pd, {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, slots_[to]}});
  }
  Status pooling(const ModelStep& step, const Pool2dWorkload& w) {
    return pool(step.reads[0], step.writes, w);
  }

  // The mean of each channel of an image.
  Status average(const ModelStep& step, const ReduceWorkload& w) {
    const std::vector<int64_t>& shape = type_of(step.reads[0]).shape;
    if (shape.size() != 4 || w.reduction != RowReduction::kMean || w.rows != shape[0] * shape[1])
      return not_found("this reduction is not chained here");
    return pool(step.reads[0], step.writes,
                {.batch = shape[0],
                 .channels = shape[1],
                 .in_height = shape[2],
                 .in_width = shape[3],
                 .kernel_height = shape[2],
                 .kernel_width = shape[3],
                 .pooling = Pooling::kAverage});
  }

  Status inner_product(const ModelStep& step, const MatmulWorkload& w) {
    if (w.batch != 1 || w.transpose_a || !model_.graph[root_of(step.reads[1])].constant)
      return not_found("this product is not chained here");
    const DnnlMd src = dnnl_md(api_, {w.m, w.k}, dnnl_ab), dst = dnnl_md(api_, {w.m, w.n}, dnnl_ab),
                 weights = dnnl_md(api_, {w.n, w.k}, dnnl_format_tag_any),
                 bias = dnnl_md(api_, {w.n}, dnnl_a);
    dnnl_inner_product_desc_t description;
    RETURN_IF_ERROR(dnnl_ok(api_.inner_product_forward_desc_init(&description, dnnl_forward_inference, &src,
                                                                 &weights, w.bias ? &bias : nullptr, &dst),
                            "inner product"));
    PostOps post(api_);
    RETURN_IF_ERROR(epilogue(w, post));
    ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::make(api_, &description, post.get()));
    ASSIGN_OR_RETURN(const Slot a, read_as(step.reads[0], {w.m, w.k}, src));
    ASSIGN_OR_RETURN(const Slot b, weights_of(step.reads[1], w, pd.md(dnnl_query_weights_md)));
    ASSIGN_OR_RETURN(const Slot out, destination(step, w.residual, {w.m, w.n}, dst));
    std::vector<std::pair<int, Slot>> arguments{
        {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, out}};
    if (w.bias) {
      ASSIGN_OR_RETURN(const Slot slot, constant(step.reads[2], {w.n}, bias));
      arguments.emplace_back(DNNL_ARG_BIAS, slot);
    }
    slots_[step.writes] = out;
    return parts_.call.add(pd, arguments);
  }
  // [N, K], as inner products have them.
  Result<Slot> weights_of(ValueId v, const MatmulWorkload& w, const DnnlMd& md) {
    if (w.transpose_b) return constant(v, {w.n, w.k}, md);
    const std::vector<double> b = model_.graph[root_of(v)].constant->numbers(DType::kFloat32);
    HostTensor turned{"b", {w.n, w.k}, std::vector<float>(b.size()), DType::kFloat32};
    for (int64_t k = 0; k < w.k; ++k)
      for (int64_t n = 0; n < w.n; ++n)
        turned.values[static_cast<size_t>(n * w.k + k)] =
            static_cast<float>(b[static_cast<size_t>(k * w.n + n)]);
    return parts_.call.filled(md, turned);
  }

  Status softmax(const ModelStep& step, const SoftmaxWorkload& w) {
    const DnnlMd rows = dnnl_md(api_, {w.rows, w.columns}, dnnl_ab);
    dnnl_softmax_desc_t description;
    RETURN_IF_ERROR(
        dnnl_ok(api_.softmax_forward_desc_init(&description, dnnl_forward_inference, &rows, 1), "softmax"));
    ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::make(api_, &description));
    ASSIGN_OR_RETURN(const Slot src, read_as(step.reads[0], {w.rows, w.columns}, rows));
    slots_[step.writes] = between(step.writes, rows);
    return parts_.call.add(pd, {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, slots_[step.writes]}});
  }

  const OnednnApi& api_;
  const ModelSteps& model_;
  const bool winograd_;
  Parts& parts_;
  size_t step_ = 0;
  std::map<ValueId, Slot> slots_;                  // of roots
  std::map<ValueId, size_t> last_read_;            // of roots: the last step that reads any of it
  std::map<ValueId, std::vector<size_t>> pieces_;  // of roots, into parts_.memory
  std::vector<size_t> free_;                       // pieces, the latest at the end
};

Result<std::unique_ptr<OnednnChain>> OnednnChain::make(const Onednn& library, const ModelSteps& model,
                                                       bool winograd) {
  std::unique_ptr<OnednnChain> chain(new OnednnChain);
  chain->parts_ = std::make_unique<Parts>(library.api());
  RETURN_IF_ERROR(Maker(library.api(), model, winograd, *chain->parts_).make());
  return chain;
}

}  // namespace tuner
