#include "tests/bench/cpu/onednn_call.h"

#include <algorithm>
#include <cstring>

#include "compiler_core/base/elements.h"
#include "compiler_core/runtime/flush.h"

namespace tuner {

Status dnnl_ok(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return Status::ok();
  if (status == dnnl_unimplemented) return failed("oneDNN has no ", what, " like this");
  return failed("oneDNN: ", what, ": status ", static_cast<int>(status));
}

namespace {

dnnl_data_type_t dnnl_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return dnnl_f32;
    case DType::kBFloat16:
      return dnnl_bf16;
    case DType::kFloat16:
      return dnnl_f16;
    case DType::kInt32:
      return dnnl_s32;
    case DType::kInt8:
      return dnnl_s8;
    case DType::kUInt8:
      return dnnl_u8;
    default:
      CHECK(false) << "oneDNN is not given " << dtype;
      return dnnl_data_type_undef;
  }
}

}  // namespace

DnnlMd dnnl_md(const OnednnApi& api, const std::vector<int64_t>& shape, dnnl_format_tag_t tag, DType dtype) {
  DnnlMd md;
  dnnl_dims_t dims{};
  std::copy(shape.begin(), shape.end(), dims);
  const dnnl_status_t status =
      api.memory_desc_init_by_tag(&md, static_cast<int>(shape.size()), dims, dnnl_type(dtype), tag);
  CHECK(status == dnnl_success) << "a memory descriptor of rank " << shape.size() << ", layout " << tag;
  return md;
}

DnnlMd dnnl_plain_md(const OnednnApi& api, const std::vector<int64_t>& shape, DType dtype) {
  constexpr dnnl_format_tag_t kRowMajor[] = {dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
  return dnnl_md(api, shape, kRowMajor[shape.size() - 1], dtype);
}

Result<DnnlPd> DnnlPd::make(const OnednnApi& api, const_dnnl_op_desc_t description,
                            const_dnnl_primitive_attr_t attributes) {
  dnnl_primitive_desc_t pd = nullptr;
  RETURN_IF_ERROR(
      dnnl_ok(api.primitive_desc_create(&pd, description, attributes, api.engine, nullptr), "primitive"));
  return DnnlPd(api, pd);
}

Result<DnnlPd> DnnlPd::reorder(const OnednnApi& api, const DnnlMd& from, const DnnlMd& to) {
  dnnl_primitive_desc_t pd = nullptr;
  RETURN_IF_ERROR(dnnl_ok(api.reorder_primitive_desc_create(&pd, &from, api.engine, &to, api.engine, nullptr),
                          "reorder"));
  return DnnlPd(api, pd);
}

std::string DnnlPd::kernel() const {
  const char* text = nullptr;
  if (api_->primitive_desc_query(pd_.get(), dnnl_query_impl_info_str, 0, &text) != dnnl_success) return {};
  return text;
}

DnnlEpilogue::DnnlEpilogue(const OnednnApi& api, const BenchCase& bench_case, int channel,
                           const DnnlMd* residual, Activation activation)
    : api_(api) {
  dnnl_post_ops_t operations = nullptr;
  api.primitive_attr_create(&attributes_);
  api.post_ops_create(&operations);
  if (residual != nullptr) api.post_ops_append_binary(operations, dnnl_binary_add, residual);
  if (activation == Activation::kRelu) api.post_ops_append_eltwise(operations, 1, dnnl_eltwise_relu, 0, 0);
  api.primitive_attr_set_post_ops(attributes_, operations);
  if (bench_case.has("zero_point")) {
    const std::vector<float>& scales = bench_case.operand("scale").values;
    api.primitive_attr_set_output_scales(attributes_, std::ssize(scales), 1 << channel, scales.data());
    const auto zero_point = static_cast<int32_t>(bench_case.operand("zero_point").values.front());
    api.primitive_attr_set_zero_points(attributes_, DNNL_ARG_DST, 1, 0, &zero_point);
  }
  api.post_ops_destroy(operations);
}

DnnlEpilogue::~DnnlEpilogue() { api_.primitive_attr_destroy(attributes_); }

DnnlCall::~DnnlCall() {
  for (const Step& step : steps_) api_.primitive_destroy(step.primitive);
  for (const Tensor& tensor : tensors_)
    for (dnnl_memory_t memory : tensor.memory) api_.memory_destroy(memory);
}

DnnlCall::Slot DnnlCall::tensor(const DnnlMd& md) {
  Tensor tensor{.md = md};
  const auto bytes = static_cast<int64_t>(api_.memory_desc_get_size(&md));
  for (int set = 0; set < sets_; ++set) {
    tensor.buffers.emplace_back(std::max<int64_t>(bytes, 64));
    dnnl_memory_t memory = nullptr;
    const dnnl_status_t status = api_.memory_create(&memory, &md, api_.engine, tensor.buffers.back().data());
    CHECK(status == dnnl_success) << "memory of " << bytes << " bytes";
    tensor.memory.push_back(memory);
  }
  tensors_.push_back(std::move(tensor));
  return static_cast<Slot>(tensors_.size()) - 1;
}

DnnlCall::Slot DnnlCall::tensor_at(const DnnlMd& md, void* bytes) {
  Tensor tensor{.md = md};
  for (int set = 0; set < sets_; ++set) {
    dnnl_memory_t memory = nullptr;
    const dnnl_status_t status = api_.memory_create(&memory, &md, api_.engine, bytes);
    CHECK(status == dnnl_success) << "memory of the caller's";
    tensor.memory.push_back(memory);
  }
  tensors_.push_back(std::move(tensor));
  return static_cast<Slot>(tensors_.size()) - 1;
}

Result<DnnlCall::Slot> DnnlCall::filled(const DnnlMd& md, const HostTensor& values) {
  // Groups give weights one dimension more; the elements are the same.
  std::vector<int64_t> shape(md.dims, md.dims + md.ndims);
  DnnlCall source(api_, 1);
  const Slot plain = source.tensor(dnnl_plain_md(api_, shape, values.dtype));
  const AlignedBuffer& buffer = source.tensors_[plain].buffers[0];
  const auto count = static_cast<int64_t>(values.values.size());
  CHECK(buffer.bytes() >= count * dtype_bytes(values.dtype)) << values.name;
  store_elements(values.values.data(), count, values.dtype, buffer.data());
  const Slot slot = tensor(md);
  tensors_[slot].is_filled = true;
  ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::reorder(api_, source.tensors_[plain].md, md));
  for (int set = 0; set < sets_; ++set)
    RETURN_IF_ERROR(execute(
        pd, {{DNNL_ARG_FROM, source.tensors_[plain].memory[0]}, {DNNL_ARG_TO, tensors_[slot].memory[set]}}));
  return slot;
}

Status DnnlCall::add(const DnnlPd& pd, const std::vector<std::pair<int, Slot>>& arguments) {
  Step step;
  RETURN_IF_ERROR(dnnl_ok(api_.primitive_create(&step.primitive, pd.get()), "primitive"));
  for (int set = 0; set < sets_; ++set) {
    std::vector<dnnl_exec_arg_t> of_set;
    for (const auto& [argument, slot] : arguments) of_set.push_back({argument, tensors_[slot].memory[set]});
    step.arguments.push_back(std::move(of_set));
  }
  steps_.push_back(std::move(step));
  return Status::ok();
}

Status DnnlCall::add_reorder(Slot from, Slot to) {
  ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::reorder(api_, tensors_[from].md, tensors_[to].md));
  return add(pd, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

Status DnnlCall::execute(const DnnlPd& pd, const std::vector<dnnl_exec_arg_t>& arguments) const {
  dnnl_primitive_t primitive = nullptr;
  RETURN_IF_ERROR(dnnl_ok(api_.primitive_create(&primitive, pd.get()), "primitive"));
  const dnnl_status_t status =
      api_.primitive_execute(primitive, api_.stream, static_cast<int>(arguments.size()), arguments.data());
  api_.stream_wait(api_.stream);
  api_.primitive_destroy(primitive);
  return dnnl_ok(status, "execution");
}

void DnnlCall::run(int set) const {
  for (const Step& step : steps_) {
    const std::vector<dnnl_exec_arg_t>& arguments = step.arguments[set];
    api_.primitive_execute(step.primitive, api_.stream, static_cast<int>(arguments.size()), arguments.data());
  }
  api_.stream_wait(api_.stream);
}

void DnnlCall::poison(Slot slot) const {
  const AlignedBuffer& buffer = tensors_[slot].buffers[0];
  std::memset(buffer.data(), 0xff, static_cast<size_t>(buffer.bytes()));
}

void DnnlCall::flush(Slot out) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    if (tensor.is_filled || static_cast<Slot>(i) == out)
      flush_lines(tensor.buffers[0].data(), tensor.buffers[0].bytes());
  }
}

Result<std::vector<double>> DnnlCall::read(Slot slot, const HostTensor& out) const {
  DnnlCall target(api_, 1);
  const Slot plain = target.tensor(dnnl_plain_md(api_, out.shape, out.dtype));
  ASSIGN_OR_RETURN(const DnnlPd pd, DnnlPd::reorder(api_, tensors_[slot].md, target.tensors_[plain].md));
  RETURN_IF_ERROR(execute(
      pd, {{DNNL_ARG_FROM, tensors_[slot].memory[0]}, {DNNL_ARG_TO, target.tensors_[plain].memory[0]}}));
  return load_elements(target.tensors_[plain].buffers[0].data(), out.count(), out.dtype);
}

Contestant dnnl_contestant(const BenchCase& bench_case, const std::shared_ptr<DnnlCall>& call,
                           DnnlCall::Slot out, const std::string& name, const std::string& kernel,
                           const std::string& algorithm) {
  const HostTensor shape = bench_case.operand("out");
  // It adds the zero point before it rounds: of two integers as near it may take the other.
  const auto tolerance = bench_case.has("zero_point") ? std::optional(Tolerance{1, 0}) : std::nullopt;
  return {.name = name,
          .algorithm = algorithm,
          .detail = kernel,
          .call = [call](int set) { call->run(set); },
          .poison = [call, out] { call->poison(out); },
          .answer =
              [call, out, shape] {
                Result<std::vector<double>> values = call->read(out, shape);
                return values.is_ok() ? *std::move(values) : std::vector<double>();
              },
          .tolerance = tolerance,
          .flush = [call, out] { call->flush(out); }};
}

}  // namespace tuner
