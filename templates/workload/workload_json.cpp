// A workload as a job file has it, both ways.
#include "templates/workload/workload_json.h"

#include <algorithm>
#include <span>

namespace tuner {

namespace {

using json_input::found;
using json_input::ObjectReader;
using nlohmann::json;
using nlohmann::ordered_json;

// --- reading ---

// The one key of an object has one number, or a list of them.
std::optional<Activation> activation_of(const json& value) {
  if (value.is_string()) {
    const auto kind = activation_kind_from_name(value.get<std::string>());
    return kind && activation_numbers(*kind) == 0 ? std::optional(Activation{*kind}) : std::nullopt;
  }
  if (!value.is_object() || value.size() != 1) return std::nullopt;
  const auto kind = activation_kind_from_name(value.begin().key());
  const json& given = value.begin().value();
  const json list = given.is_array() ? given : json::array({given});
  if (!kind || static_cast<size_t>(activation_numbers(*kind)) != list.size()) return std::nullopt;
  // Through the text, which rounds to float32 and knows which numbers are good.
  std::string text(activation_kind_name(*kind));
  for (const json& number : list) {
    if (!number.is_number()) return std::nullopt;
    text += ":" + number.dump();
  }
  return activation_from_text(text);
}

void read_activation(ObjectReader& in, Activation& activation) {
  const json* value = in.get("activation");
  if (value == nullptr || value->is_null()) return;
  if (const auto read = activation_of(*value)) return void(activation = *read);
  std::string known;
  for (int i = 1; i < kActivationKinds; ++i) {
    const auto kind = static_cast<ActivationKind>(i);
    if (activation_numbers(kind) == 0) known += str("\"", activation_kind_name(kind), "\", ");
  }
  in.refuse("activation", "expected ", known, R"({"clip": [low, high]}, {"leaky": alpha} or null, found )",
            found(*value), ".");
}

// True for "last": one behind all other parts.
template <class W>
bool read_residual(ObjectReader& in, W& w) {
  const json* value = in.get("residual");
  if (value == nullptr) return false;
  const bool last = *value == "last";
  if (!last && !value->is_boolean())
    in.refuse("residual", "expected true, false or \"last\", found ", found(*value), ".");
  else
    w.residual = last || value->template get<bool>();
  return last;
}

// The order of the parts, where it is not the usual one.
template <class W>
void read_post(ObjectReader& in, W& w) {
  const json* value = in.get("post");
  if (value == nullptr) return;
  const auto refuse = [&] {
    in.refuse("post",
              R"(expected a list of "bias", "scale", "residual" and "activation" in their order, found )",
              found(*value), ".");
  };
  if (!value->is_array()) return refuse();
  for (const json& word : *value) {
    const auto* part = std::ranges::find_if(
        kEpilogueParts, [&](EpiloguePart p) { return word == std::string(epilogue_part_name(p)); });
    if (part == std::end(kEpilogueParts)) return refuse();
    w.post.push_back(*part);
  }
}

constexpr DType kRowTypes[] = {DType::kFloat32};
constexpr DType kProductTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt8};

void read_dtype(ObjectReader& in, DType& dtype, std::span<const DType> served = kRowTypes,
                const std::string& key = "dtype") {
  std::string name(dtype_name(dtype)), known;
  in.read(key, name);
  for (const DType each : served) {
    if (name == dtype_name(each)) return void(dtype = each);
    known += str(known.empty() ? "\"" : each == served.back() ? " or \"" : ", \"", each, "\"");
  }
  in.refuse(key, "expected ", known, ", found ", found(json(name)), ".");
}

// Types of matmul and conv2d.
template <class W>
void read_types(ObjectReader& in, W& w) {
  read_dtype(in, w.dtype, kProductTypes);
  in.read("allow_tf32", w.allow_tf32);
  if (w.allow_tf32 && w.dtype != DType::kFloat32)
    in.refuse("allow_tf32", "expected only with float32, whose products it is about, found ", w.dtype, ".");
  DType out = sum_dtype(w.dtype);
  read_dtype(in, out, out_dtypes(w.dtype), "out_dtype");
  if (out != sum_dtype(w.dtype)) w.narrow_out = out;
}

// Keys that matmul and conv2d share.
template <class W>
void read_epilogue(ObjectReader& in, W& w) {
  in.read("bias", w.bias);
  in.read("scale", w.scale);
  const bool last = read_residual(in, w);
  in.read("accumulate", w.accumulate);
  if (w.residual && w.accumulate)
    in.refuse(
        "accumulate",
        "expected one of residual and accumulate, found both: with accumulate the residual lies on out.");
  read_activation(in, w.activation);
  read_post(in, w);
  if (!last) return;
  if (w.activation == Activation::kNone)
    in.refuse("residual", R"(expected "last" only with an activation, which it follows.)");
  else if (!w.post.empty())
    in.refuse("post", R"(expected none with "residual": "last", which says the order.)");
  for (const EpiloguePart part : epilogue_parts(W(w)))
    if (part != EpiloguePart::kResidual) w.post.push_back(part);
  w.post.push_back(EpiloguePart::kResidual);
}

template <class W>
void read_constant(ObjectReader& in, W& w, std::vector<std::string> operands) {
  const json* constant = in.get("constant");
  if (constant == nullptr) return;
  if (w.bias) operands.emplace_back("bias");
  std::string known;
  for (const std::string& o : operands) known += (known.empty() ? "\"" : ", \"") + o + "\"";
  const auto refuse = [&] {
    in.refuse("constant", "expected a list of different operands out of ", known, ", found ",
              found(*constant), ".");
  };
  if (!constant->is_array()) return refuse();
  for (const json& name : *constant) {
    if (!name.is_string() || std::ranges::find(operands, name.get<std::string>()) == operands.end())
      return refuse();
    w.constant.push_back(name.get<std::string>());
  }
  std::ranges::sort(w.constant);
  if (std::ranges::adjacent_find(w.constant) != w.constant.end()) refuse();
}

Workload read_matmul(ObjectReader& in) {
  MatmulWorkload w;
  in.read("batch", w.batch, 1, kMaxExtent);
  in.read("transpose_a", w.transpose_a);
  in.read("transpose_b", w.transpose_b);
  std::vector<int64_t> a = in.shape("a", 2, w.transpose_a ? "[K, M], as stored" : "[M, K], as stored");
  std::vector<int64_t> b = in.shape("b", 2, w.transpose_b ? "[N, K], as stored" : "[K, N], as stored");
  const json* shape_of_b = in.get("b");  // null once something is wrong
  if (w.transpose_a) std::swap(a[0], a[1]);
  if (w.transpose_b) std::swap(b[0], b[1]);
  if (shape_of_b != nullptr && a[1] != b[0])
    in.refuse("b", "expected K = ", a[1], " as in a, found K = ", b[0], " in ", found(*shape_of_b),
              ". Order is ", w.transpose_b ? "[N, K]" : "[K, N]", ", as stored.");
  w.m = a[0];
  w.k = a[1];
  w.n = b[1];
  read_epilogue(in, w);
  read_types(in, w);
  read_constant(in, w, {"a", "b"});
  return w;
}

constexpr std::string_view kBoth = "[vertical, horizontal]";

// How a window moves over an image.
void read_window(ObjectReader& in, std::array<int64_t, 2>& stride, std::array<int64_t, 4>& padding) {
  if (const auto v = in.integers("stride", 1, {2}, "two", kBoth)) stride = {v->front(), v->back()};
  if (const auto v = in.integers("padding", 0, {2, 4}, "two or four",
                                 "[vertical, horizontal] or [top, left, bottom, right]")) {
    const auto& p = *v;
    padding = p.size() == 4 ? std::array{p[0], p[1], p[2], p[3]}
                            : std::array{p.front(), p.back(), p.front(), p.back()};
  }
}

Workload read_conv2d(ObjectReader& in) {
  Conv2dWorkload w;
  const std::vector<int64_t> data = in.shape("data", 4, "[batch, channels, height, width]");
  const std::vector<int64_t> weight =
      in.shape("weight", 4, "[output channels, channels of a group, kernel height, kernel width]");
  w.batch = data[0], w.in_channels = data[1], w.in_height = data[2], w.in_width = data[3];
  w.out_channels = weight[0], w.kernel_height = weight[2], w.kernel_width = weight[3];
  in.read("groups", w.groups, 1, kMaxExtent);
  if (w.in_channels % w.groups != 0)
    in.refuse("groups", "expected a divisor of the ", w.in_channels, " channels of data, found ", w.groups,
              ".");
  else if (w.out_channels % w.groups != 0)
    in.refuse("groups", "expected a divisor of the ", w.out_channels, " output channels of weight, found ",
              w.groups, ".");
  else if (weight[1] != w.in_channels / w.groups)
    in.refuse("weight", "expected ", w.in_channels / w.groups, " channels (those of data over ", w.groups,
              w.groups == 1 ? " group" : " groups", "), found ", weight[1],
              ". Order is [output channels, channels of a group, kernel height, kernel width].");
  if (const auto v = in.integers("dilation", 1, {2}, "two", kBoth)) w.dilation = {v->front(), v->back()};
  read_window(in, w.stride, w.padding);
  in.read("layout", w.layout);
  w.out_layout = w.layout;
  in.read("out_layout", w.out_layout);
  read_epilogue(in, w);
  read_types(in, w);
  read_constant(in, w, {"data", "weight"});
  return w;
}

Workload read_pool2d(ObjectReader& in) {
  Pool2dWorkload w;
  const std::vector<int64_t> data = in.shape("data", 4, "[batch, channels, height, width]");
  w.batch = data[0], w.channels = data[1], w.in_height = data[2], w.in_width = data[3];
  w.kernel_height = w.in_height, w.kernel_width = w.in_width;  // unless said: global pooling
  if (in.get("kernel") != nullptr) {
    const std::vector<int64_t> kernel = in.shape("kernel", 2, "[height, width]");
    w.kernel_height = kernel[0], w.kernel_width = kernel[1];
  }
  read_window(in, w.stride, w.padding);
  std::string name;
  in.read("pooling", name, /*required=*/true);
  if (name == pooling_name(Pooling::kAverage))
    w.pooling = Pooling::kAverage;
  else if (name != pooling_name(Pooling::kMax))
    in.refuse("pooling", R"(expected "max" or "average", found )", found(json(name)), ".");
  in.read("count_include_pad", w.count_include_pad);
  in.read("layout", w.layout);
  read_dtype(in, w.dtype);
  return w;
}

// "rows", "columns", "dtype": what the operators on rows share.
template <class W>
W read_matrix(ObjectReader& in) {
  W w;
  in.read("rows", w.rows, 1, kMaxExtent, /*required=*/true);
  in.read("columns", w.columns, 1, kMaxExtent, /*required=*/true);
  read_dtype(in, w.dtype);
  return w;
}

Workload read_layer_norm(ObjectReader& in) {
  auto w = read_matrix<LayerNormWorkload>(in);
  in.read("epsilon", w.epsilon);  // its range: check_workload()
  return w;
}

Workload read_reduce(ObjectReader& in) {
  auto w = read_matrix<ReduceWorkload>(in);
  std::string name;
  in.read("reduction", name, /*required=*/true);
  constexpr RowReduction kAll[] = {RowReduction::kSum, RowReduction::kMax, RowReduction::kMin,
                                   RowReduction::kMean};
  const auto* known = std::ranges::find(kAll, name, row_reduction_name);
  if (known != std::end(kAll))
    w.reduction = *known;
  else
    in.refuse("reduction", R"(expected "sum", "max", "min" or "mean", found )", found(json(name)), ".");
  return w;
}

Workload read_elementwise(ObjectReader& in) {
  auto w = read_matrix<ElementwiseWorkload>(in);
  in.read("scale", w.scale);
  in.read("bias", w.bias);
  in.read("residual", w.residual);
  read_activation(in, w.activation);
  return w;
}

template <class W>
Workload read_only_matrix(ObjectReader& in) {
  return read_matrix<W>(in);
}

Workload read_program(ObjectReader& in) {
  std::string text;
  in.read("text", text, /*required=*/true);
  if (in.failed()) return {};
  Result<Workload> workload = program_from_text(text);
  if (workload) return *std::move(workload);
  in.refuse("text", workload.message(), ".");
  return {};
}

struct OperatorReader {
  std::string_view op;
  Workload (*read)(ObjectReader& in);
};
constexpr OperatorReader kOperators[] = {
    {MatmulWorkload::kOp, read_matmul},
    {Conv2dWorkload::kOp, read_conv2d},
    {Pool2dWorkload::kOp, read_pool2d},
    {SoftmaxWorkload::kOp, read_only_matrix<SoftmaxWorkload>},
    {LayerNormWorkload::kOp, read_layer_norm},
    {ReduceWorkload::kOp, read_reduce},
    {TransposeWorkload::kOp, read_only_matrix<TransposeWorkload>},
    {ElementwiseWorkload::kOp, read_elementwise},
    {ProgramWorkload::kOp, read_program},
};
static_assert(std::size(kOperators) == std::variant_size_v<Workload::Op>, "an operator has no reader");

// --- writing: what is as usual is left out ---

// As the shortest text of the float32 says it, which nlohmann's doubles would not.
json number_json(float number) { return json::parse(shortest_text(number)); }
json activation_json(const Activation& a) {
  const int numbers = activation_numbers(a.kind);
  if (numbers == 0) return activation_kind_name(a.kind);
  json value = number_json(a.first);
  if (numbers == 2) value = json::array({value, number_json(a.second)});
  return json{{activation_kind_name(a.kind), value}};
}

template <class W>
void write_epilogue(ordered_json& out, const W& w) {
  if (w.bias) out["bias"] = true;
  if constexpr (requires { w.post; })
    if (w.scale) out["scale"] = true;
  if (w.residual) out["residual"] = true;
  if constexpr (requires { w.accumulate; }) {
    if (adds_residual_last(w)) out["residual"] = "last";
    if (w.accumulate) out["accumulate"] = true;
  }
  if (w.activation != Activation::kNone) out["activation"] = activation_json(w.activation);
  if constexpr (requires { w.post; })
    if (!adds_residual_last(w))
      for (const EpiloguePart part : w.post) out["post"].push_back(epilogue_part_name(part));
}
template <class W>
void write_dtype(ordered_json& out, const W& w) {
  if (w.dtype != DType::kFloat32) out["dtype"] = dtype_name(w.dtype);
  if constexpr (requires { w.allow_tf32; })
    if (w.allow_tf32) out["allow_tf32"] = true;
  if constexpr (requires { w.narrow_out; })
    if (w.narrow_out) out["out_dtype"] = dtype_name(*w.narrow_out);
}
void write_window(ordered_json& out, const std::array<int64_t, 2>& stride,
                  const std::array<int64_t, 4>& padding) {
  if (stride != std::array<int64_t, 2>{1, 1}) out["stride"] = stride;
  const auto [top, left, bottom, right] = padding;
  if (top == bottom && left == right) {
    if (top != 0 || left != 0) out["padding"] = {top, left};
  } else {
    out["padding"] = padding;
  }
}

void write(ordered_json& out, const MatmulWorkload& w) {
  if (w.batch != 1) out["batch"] = w.batch;
  out["a"] = w.transpose_a ? std::array{w.k, w.m} : std::array{w.m, w.k};
  out["b"] = w.transpose_b ? std::array{w.n, w.k} : std::array{w.k, w.n};
  if (w.transpose_a) out["transpose_a"] = true;
  if (w.transpose_b) out["transpose_b"] = true;
  write_epilogue(out, w);
  write_dtype(out, w);
  if (!w.constant.empty()) out["constant"] = w.constant;
}
void write(ordered_json& out, const Conv2dWorkload& w) {
  out["data"] = {w.batch, w.in_channels, w.in_height, w.in_width};
  out["weight"] = {w.out_channels, w.in_channels / w.groups, w.kernel_height, w.kernel_width};
  write_window(out, w.stride, w.padding);
  if (w.dilation != std::array<int64_t, 2>{1, 1}) out["dilation"] = w.dilation;
  if (w.groups != 1) out["groups"] = w.groups;
  write_epilogue(out, w);
  write_dtype(out, w);
  if (w.layout != "NCHW") out["layout"] = w.layout;
  if (w.out_layout != w.layout) out["out_layout"] = w.out_layout;
  if (!w.constant.empty()) out["constant"] = w.constant;
}
void write(ordered_json& out, const Pool2dWorkload& w) {
  out["data"] = {w.batch, w.channels, w.in_height, w.in_width};
  out["kernel"] = {w.kernel_height, w.kernel_width};
  write_window(out, w.stride, w.padding);
  out["pooling"] = pooling_name(w.pooling);
  if (w.count_include_pad) out["count_include_pad"] = true;
  if (w.layout != "NCHW") out["layout"] = w.layout;
  write_dtype(out, w);
}
template <class W>
void write_matrix(ordered_json& out, const W& w) {
  out["rows"] = w.rows;
  out["columns"] = w.columns;
  write_dtype(out, w);
}
void write(ordered_json& out, const SoftmaxWorkload& w) { write_matrix(out, w); }
void write(ordered_json& out, const TransposeWorkload& w) { write_matrix(out, w); }
void write(ordered_json& out, const LayerNormWorkload& w) {
  write_matrix(out, w);
  out["epsilon"] = w.epsilon;
}
void write(ordered_json& out, const ReduceWorkload& w) {
  write_matrix(out, w);
  out["reduction"] = row_reduction_name(w.reduction);
}
void write(ordered_json& out, const ElementwiseWorkload& w) {
  write_matrix(out, w);
  if (w.scale) out["scale"] = true;
  write_epilogue(out, w);
}
void write(ordered_json& out, const ProgramWorkload& w) { out["text"] = w.text; }

}  // namespace

Workload read_workload(ObjectReader& in) {
  std::string op;
  in.read("op", op, /*required=*/true);
  if (in.failed()) return in.know_no_keys(), Workload();
  const auto* reader = std::ranges::find(kOperators, op, &OperatorReader::op);
  if (reader != std::end(kOperators)) return reader->read(in);
  in.refuse("op", "expected one of ", operator_names(), ", found ", found(json(op)), ".");
  return {};
}

Result<Workload> workload_from_json(std::string_view text, const std::function<void(ObjectReader&)>& more) {
  const auto refuse = [](const Status& why) {
    return Status(StatusCode::kInvalidArgument, json_input::one_line(why.message()));
  };
  const Result<json> document = json_input::parse(text);
  if (!document) return refuse(document.status());
  ObjectReader in(*document, "");
  Workload workload = read_workload(in);
  if (more) more(in);
  if (const Status all_read = in.finish(); !all_read.is_ok()) return refuse(all_read);
  RETURN_IF_ERROR(validate(workload));
  return workload;
}

ordered_json workload_json(const Workload& workload) {
  ordered_json out;
  out["op"] = workload.op_name();
  std::visit([&out](const auto& w) { write(out, w); }, workload.op());
  return out;
}

}  // namespace tuner
