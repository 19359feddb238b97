// ONNX models, by Debian's libonnx: the only user of its headers.
//
// Its shape inference (1.12, operator set 17) takes newer models where their operators kept their meaning.
// Those that did not are put into the old form first (older_form); operators it does not know leave shapes
// open behind them, which the extraction then reports.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <cstring>
#include <set>
#include <unordered_map>

#include "tuner/extract/model_graph.h"

namespace tuner {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 31;
constexpr int kMostIntegers = 64;  // of a constant that is kept: axes and shapes are shorter

std::string type_name(int type) {
  switch (type) {
    case onnx::TensorProto::FLOAT:
      return "float32";
    case onnx::TensorProto::FLOAT16:
      return "float16";
    case onnx::TensorProto::BFLOAT16:
      return "bfloat16";
    case onnx::TensorProto::DOUBLE:
      return "float64";
    case onnx::TensorProto::INT64:
      return "int64";
    case onnx::TensorProto::INT32:
      return "int32";
    case onnx::TensorProto::INT8:
      return "int8";
    case onnx::TensorProto::UINT8:
      return "uint8";
    case onnx::TensorProto::BOOL:
      return "bool";
    case onnx::TensorProto::UNDEFINED:
      return "";
    default:
      return str("type ", type);
  }
}

// One line, and not a long one: names in a file may hold anything.
std::string plain(const std::string& text) {
  constexpr size_t kLongest = 200;
  std::string out;
  for (const char c : text.substr(0, kLongest)) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return out;
}

std::optional<std::vector<int64_t>> shape_of(const onnx::TypeProto& type) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return std::nullopt;
  std::vector<int64_t> shape;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0 || dim.dim_value() > kMostExtent) return std::nullopt;
    shape.push_back(dim.dim_value());
  }
  return shape;
}

template <class T>
void keep_values(const std::string& raw, std::vector<T>& values) {
  values.resize(raw.size() / sizeof(T));
  std::memcpy(values.data(), raw.data(), values.size() * sizeof(T));
}

// The values of a short constant; what lies in another file is not looked at.
void read_values(const onnx::TensorProto& t, GraphTensor& out) {
  if (t.data_location() == onnx::TensorProto::EXTERNAL || !out.shape || out.elements() > kMostIntegers)
    return;
  const auto count = static_cast<size_t>(out.elements());
  if (t.data_type() == onnx::TensorProto::INT64 || t.data_type() == onnx::TensorProto::INT32) {
    std::vector<int64_t> values(t.int64_data().begin(), t.int64_data().end());
    if (t.data_type() == onnx::TensorProto::INT32) {
      values.assign(t.int32_data().begin(), t.int32_data().end());
      std::vector<int32_t> narrow;
      if (t.has_raw_data()) keep_values(t.raw_data(), narrow), values.assign(narrow.begin(), narrow.end());
    } else if (t.has_raw_data()) {
      keep_values(t.raw_data(), values);
    }
    if (values.size() != count) return;
    if (count == 1) out.scalar = static_cast<double>(values[0]);
    out.integers = std::move(values);
  } else if (count == 1 && t.data_type() == onnx::TensorProto::FLOAT) {
    std::vector<float> values(t.float_data().begin(), t.float_data().end());
    if (t.has_raw_data()) keep_values(t.raw_data(), values);
    if (values.size() == 1) out.scalar = values[0];
  }
}

GraphTensor constant_of(const onnx::TensorProto& t) {
  GraphTensor out{.type = type_name(t.data_type()), .constant = true};
  std::vector<int64_t> shape(t.dims().begin(), t.dims().end());
  bool sane = true;
  for (const int64_t extent : shape) sane = sane && extent >= 0 && extent <= kMostExtent;
  if (sane) out.shape = std::move(shape);
  read_values(t, out);
  return out;
}

const onnx::AttributeProto* attribute(const onnx::NodeProto& node, const char* name) {
  for (const auto& a : node.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

class Reader {
 public:
  Reader(onnx::ModelProto& model, const ModelExtents& extents) : model_(model), extents_(extents) {}

  Result<ModelGraph> read() {
    if (!model_.has_graph() || model_.graph().node_size() == 0)
      return invalid_argument("the model has no graph with operators");
    for (const auto& set : model_.opset_import())
      if (set.domain().empty() || set.domain() == "ai.onnx") graph_.opset = set.version();
    if (graph_.opset < 1 || graph_.opset > 1000)
      return invalid_argument("found operator set ", graph_.opset, " of ONNX, expected 1 or later");
    RETURN_IF_ERROR(check_order());
    read_constants();
    RETURN_IF_ERROR(close_inputs());
    older_form();
    RETURN_IF_ERROR(infer());
    read_tensors();
    read_nodes();
    return std::move(graph_);
  }

 private:
  // Names are defined before they are used, and once: what the format promises and damage breaks.
  Status check_order() const {
    std::set<std::string> known{""};
    for (const auto& t : model_.graph().initializer()) known.insert(t.name());
    for (const auto& t : model_.graph().sparse_initializer()) known.insert(t.values().name());
    for (const auto& i : model_.graph().input()) known.insert(i.name());
    for (int n = 0; n < model_.graph().node_size(); ++n) {
      const auto& node = model_.graph().node(n);
      for (const auto& in : node.input())
        if (!known.contains(in))
          return invalid_argument("operator ", n, " (", plain(node.op_type()), "): reads \"", plain(in),
                                  "\", which nothing before it computes");
      for (const auto& out : node.output())
        if (!out.empty() && !known.insert(out).second)
          return invalid_argument("operator ", n, " (", plain(node.op_type()), "): computes \"", plain(out),
                                  "\", which is there already");
    }
    return Status::ok();
  }

  void read_constants() {
    for (const auto& t : model_.graph().initializer()) graph_.tensors[t.name()] = constant_of(t);
    for (const auto& node : model_.graph().node()) {
      if (node.op_type() != "Constant" || node.output_size() != 1) continue;
      const auto* value = attribute(node, "value");
      const auto* ints = attribute(node, "value_ints");
      const auto* one = attribute(node, "value_int");
      const auto* real = attribute(node, "value_float");
      GraphTensor& t = graph_.tensors[node.output(0)];
      t.constant = true;
      if (value != nullptr) t = constant_of(value->t());
      if (ints != nullptr && ints->ints_size() <= kMostIntegers)
        t.integers.emplace(ints->ints().begin(), ints->ints().end());
      if (one != nullptr) t.integers = {one->i()}, t.scalar = static_cast<double>(one->i());
      if (real != nullptr) t.scalar = real->f();
    }
  }

  // Every extent of every input gets a number, or the first that has none is the error.
  Status close_inputs() {
    std::set<std::string> used;
    bool batch_used = false;
    for (auto& input : *model_.mutable_graph()->mutable_input()) {
      if (graph_.tensors.contains(input.name())) continue;  // an initializer; old models list them, too
      if (!input.type().has_tensor_type()) continue;
      if (!input.type().tensor_type().has_shape())
        return invalid_argument("input \"", plain(input.name()),
                                "\" has no shape; expected one in the model");
      auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
      for (int d = 0; d < shape.dim_size(); ++d) {
        auto& dim = *shape.mutable_dim(d);
        const std::string symbol = dim.has_dim_param() ? dim.dim_param() : "";
        const auto named = extents_.named.find(symbol);
        if (!symbol.empty() && named != extents_.named.end()) {
          used.insert(symbol);
          dim.set_dim_value(named->second);
        } else if (d == 0 && extents_.batch) {
          dim.set_dim_value(*extents_.batch);
          batch_used = true;
        }
        if (dim.has_dim_value() && dim.dim_value() >= 1 && dim.dim_value() <= kMostExtent) continue;
        if (dim.has_dim_value() && dim.dim_value() > kMostExtent)
          return invalid_argument("input \"", plain(input.name()), "\": extent ", d, " is ", dim.dim_value(),
                                  ", expected at most ", kMostExtent);
        const std::string what =
            symbol.empty() ? str("extent ", d) : str("extent ", d, " (", plain(symbol), ")");
        return invalid_argument("input \"", plain(input.name()), "\": ", what,
                                " is open. Give it: ", d == 0 ? "--batch N" : "",
                                symbol.empty() ? (d == 0 ? "" : "export the model with a fixed extent")
                                               : str(d == 0 ? ", or " : "", "--dim ", plain(symbol), "=N"));
      }
    }
    for (const auto& [name, value] : extents_.named)
      if (!used.contains(name))
        return invalid_argument("--dim ", name, ": no input of the model has an extent of that name");
    if (extents_.batch && !batch_used)
      return invalid_argument("--batch: no input of the model has an extent to set");
    // What the file says of values in between was true for its own extents.
    model_.mutable_graph()->clear_value_info();
    for (auto& output : *model_.mutable_graph()->mutable_output())
      if (output.type().has_tensor_type()) output.mutable_type()->mutable_tensor_type()->clear_shape();
    return Status::ok();
  }

  // Since operator set 18 reductions take their axes as an input, since 13 ReduceSum; 1.12's inference reads
  // the attribute (of ReduceSum the input).
  void older_form() {
    constexpr int64_t kAxesAreInputs = 18;
    if (graph_.opset < kAxesAreInputs) return;
    for (auto& node : *model_.mutable_graph()->mutable_node()) {
      if (!node.op_type().starts_with("Reduce") || node.op_type() == "ReduceSum" || node.input_size() != 2)
        continue;
      const auto at = graph_.tensors.find(node.input(1));
      if (at == graph_.tensors.end() || !at->second.integers) continue;
      auto* axes = node.add_attribute();
      axes->set_name("axes");
      axes->set_type(onnx::AttributeProto::INTS);
      for (const int64_t axis : *at->second.integers) axes->add_ints(axis);
      node.mutable_input()->RemoveLast();
    }
  }

  // Reshape and its like are inferred from constants only. Where the shape they are given was computed from
  // other shapes and is known by now, it becomes a constant, and what lies behind can be inferred.
  Status infer() {
    constexpr int kMostRounds = 64;  // a round a layer, in the worst case
    for (int round = 0; round < kMostRounds; ++round) {
      std::unordered_map<std::string, onnx::TensorShapeProto> values;
      try {
        const onnx::ShapeInferenceOptions options(/*check_type=*/false, /*strict_mode=*/0,
                                                  /*data_prop=*/true);
        onnx::shape_inference::InferShapes(model_, onnx::OpSchemaRegistry::Instance(), options, &values);
      } catch (const std::exception& error) {
        return invalid_argument("shapes do not fit together: ", plain(error.what()));
      }
      bool changed = false;
      for (auto& node : *model_.mutable_graph()->mutable_node()) {
        const int at = node.op_type() == "Reshape" || node.op_type() == "Expand" ? 1
                       : node.op_type() == "ConstantOfShape"                     ? 0
                                                                                 : -1;
        if (at >= 0 && node.input_size() > at)
          changed = make_constant(*node.mutable_input(at), values) || changed;
      }
      if (!changed) break;
    }
    return Status::ok();
  }
  bool make_constant(std::string& input,
                     const std::unordered_map<std::string, onnx::TensorShapeProto>& values) {
    const auto value = values.find(input);
    if (value == values.end() || graph_.tensor(input).constant || value->second.dim_size() > kMostIntegers)
      return false;
    onnx::TensorProto shape;
    for (const auto& dim : value->second.dim()) {
      if (!dim.has_dim_value()) return false;
      shape.add_int64_data(dim.dim_value());
    }
    const std::string name = input + "/known";
    if (!graph_.tensors.contains(name)) {
      shape.set_name(name);
      shape.set_data_type(onnx::TensorProto::INT64);
      shape.add_dims(value->second.dim_size());
      *model_.mutable_graph()->add_initializer() = shape;
      graph_.tensors[name] = constant_of(shape);
    }
    input = name;
    return true;
  }

  void read_tensors() {
    const auto add = [&](const onnx::ValueInfoProto& info) {
      GraphTensor& t = graph_.tensors[info.name()];
      if (t.type.empty() && info.type().has_tensor_type())
        t.type = type_name(info.type().tensor_type().elem_type());
      if (!t.shape) t.shape = shape_of(info.type());
    };
    for (const auto& info : model_.graph().input()) add(info);
    for (const auto& info : model_.graph().value_info()) add(info);
    for (const auto& info : model_.graph().output()) {
      add(info);
      graph_.tensors[info.name()].is_output = true;
    }
  }

  void read_nodes() {
    for (const auto& node : model_.graph().node()) {
      GraphNode n{.name = plain(node.name()),
                  .op = plain(node.domain().empty() || node.domain() == "ai.onnx"
                                  ? node.op_type()
                                  : node.domain() + "." + node.op_type()),
                  .inputs = {node.input().begin(), node.input().end()},
                  .outputs = {node.output().begin(), node.output().end()}};
      if (n.name.empty() && node.output_size() > 0) n.name = plain(node.output(0));
      for (const auto& a : node.attribute()) {
        if (a.type() == onnx::AttributeProto::INT) n.attributes[a.name()] = a.i();
        if (a.type() == onnx::AttributeProto::FLOAT) n.attributes[a.name()] = static_cast<double>(a.f());
        if (a.type() == onnx::AttributeProto::STRING) n.attributes[a.name()] = a.s();
        if (a.type() == onnx::AttributeProto::INTS)
          n.attributes[a.name()] = std::vector<int64_t>(a.ints().begin(), a.ints().end());
      }
      // What is computed from constants alone is computed once, ahead. Random numbers have no inputs.
      bool constant = !n.inputs.empty();
      for (const std::string& in : n.inputs)
        constant = constant && (in.empty() || graph_.tensor(in).constant);
      if (constant)
        for (const std::string& out : n.outputs) graph_.tensors[out].constant = true;
      graph_.nodes.push_back(std::move(n));
    }
  }

  onnx::ModelProto& model_;
  const ModelExtents& extents_;
  ModelGraph graph_;
};

}  // namespace

bool onnx_is_built_in() { return true; }

Result<ModelGraph> read_onnx(std::string_view bytes, const ModelExtents& extents) {
  constexpr size_t kMostBytes = size_t{1} << 31;
  if (bytes.size() >= kMostBytes)
    return invalid_argument("the file has ", bytes.size(),
                            " bytes, a protobuf message at most 2^31 - 1; keep the "
                            "weights in external files (onnx.save_model(..., save_as_external_data=True))");
  const google::protobuf::LogSilencer quiet;  // damaged bytes are reported below, in one line
  onnx::ModelProto model;
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT32_MAX);
  if (!model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    return invalid_argument("this is no ONNX model, or a damaged one: ", bytes.size(),
                            " bytes that do not read as onnx.ModelProto");
  try {
    return Reader(model, extents).read();
  } catch (const std::exception& error) {
    return invalid_argument("the model cannot be read: ", plain(error.what()));
  }
}

}  // namespace tuner
