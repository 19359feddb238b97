#include "deploy/onnxruntime/part_model.h"

#include <fstream>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/dtype.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/oracle/oracle.h"
#include "tuner/model/onnx.pb.h"
#include "tuner/model/read_model.h"
#include "tuner/model/tensor_data.h"

namespace tuner::ort {
namespace {

constexpr size_t kMostInline = 1024;  // bytes: shapes, axes and the like decide what a node is
constexpr int64_t kWeightsAlignment = 64;

void set_value(const NodeAttribute& from, onnx::AttributeProto& to) {
  using Proto = onnx::AttributeProto;
  to.set_name(from.name);
  if (const auto* integer = std::get_if<int64_t>(&from.value)) {
    to.set_type(Proto::INT);
    to.set_i(*integer);
  } else if (const auto* real = std::get_if<float>(&from.value)) {
    to.set_type(Proto::FLOAT);
    to.set_f(*real);
  } else if (const auto* text = std::get_if<std::string>(&from.value)) {
    to.set_type(Proto::STRING);
    to.set_s(*text);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&from.value)) {
    to.set_type(Proto::INTS);
    for (const int64_t i : *integers) to.add_ints(i);
  } else if (const auto* reals = std::get_if<std::vector<float>>(&from.value)) {
    to.set_type(Proto::FLOATS);
    for (const float f : *reals) to.add_floats(f);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&from.value)) {
    to.set_type(Proto::STRINGS);
    for (const std::string& s : *texts) to.add_strings(s);
  } else {
    const auto& tensor = std::get<TensorAttribute>(from.value);
    to.set_type(Proto::TENSOR);
    for (const int64_t extent : tensor.shape) to.mutable_t()->add_dims(extent);
    to.mutable_t()->set_data_type(tensor.type);
    to.mutable_t()->set_raw_data(tensor.elements);
  }
}

void set_type(const GraphValue& from, onnx::ValueInfoProto& to) {
  to.set_name(from.name);
  auto* const tensor = to.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(from.type);
  tensor->mutable_shape();  // there is one, also without extents
  for (const int64_t extent : from.shape) tensor->mutable_shape()->add_dim()->set_dim_value(extent);
}

void set_entry(onnx::TensorProto& tensor, const char* key, const std::string& value) {
  auto* const entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

// Its elements in the message, or `next` in the file of weights.
void set_constant(const GraphValue& from, int64_t& next, onnx::TensorProto& to, PartModel& model) {
  to.set_name(from.name);
  to.set_data_type(from.type);
  for (const int64_t extent : from.shape) to.add_dims(extent);
  if (from.elements.size() <= kMostInline) {
    to.set_raw_data(from.elements.data(), from.elements.size());
    return;
  }
  to.set_data_location(onnx::TensorProto::EXTERNAL);
  set_entry(to, "location", kWeightsFile);
  set_entry(to, "offset", str(next));
  set_entry(to, "length", str(from.elements.size()));
  model.weights.push_back({next, from.elements});
  next += (static_cast<int64_t>(from.elements.size()) + kWeightsAlignment - 1) / kWeightsAlignment *
          kWeightsAlignment;
}

void set_node(const NodeGraph& graph, const GraphNode& from, onnx::NodeProto& to) {
  const auto name = [&](size_t v) { return v == kNoValue ? std::string() : graph.values[v].name; };
  for (const size_t v : from.inputs) to.add_input(name(v));
  for (const size_t v : from.outputs) to.add_output(name(v));
  to.set_name(from.name);
  to.set_op_type(from.op);
  for (const NodeAttribute& attribute : from.attributes) set_value(attribute, *to.add_attribute());
}

}  // namespace

int64_t bytes_of(const GraphValue& value) {
  const Result<DType> dtype = dtype_of(value.type);
  if (!dtype) return 0;
  int64_t bytes = dtype_bytes(*dtype);
  for (const int64_t extent : value.shape) bytes *= extent;
  return bytes;
}

PartModel model_of(const NodeGraph& graph, const Part& part) {
  PartModel out;
  onnx::ModelProto model;
  auto* const set = model.add_opset_import();
  set->set_domain("");
  set->set_version(graph.operator_set);
  onnx::GraphProto& to = *model.mutable_graph();
  to.set_name("part");
  int64_t next = 0;
  for (const size_t v : part.inputs) set_type(graph.values[v], *to.add_input());
  for (const size_t v : part.constants) set_constant(graph.values[v], next, *to.add_initializer(), out);
  for (const size_t n : part.nodes) set_node(graph, graph.nodes[n], *to.add_node());
  for (const size_t v : part.outputs) set_type(graph.values[v], *to.add_output());
  out.bytes = model.SerializeAsString();
  return out;
}

std::string digest_of(const PartModel& model) {
  std::string digests = sha256_hex(model.bytes);
  for (const PartModel::Weights& weights : model.weights)
    digests += sha256_hex({reinterpret_cast<const char*>(weights.bytes.data()), weights.bytes.size()});
  return sha256_hex(digests);
}

Status write_model(const PartModel& model, const std::string& folder, const std::string& file) {
  RETURN_IF_ERROR(write_file(str(folder, "/", file), model.bytes));
  std::ofstream out(str(folder, "/", kWeightsFile), std::ios::binary);
  int64_t at = 0;
  for (const PartModel::Weights& weights : model.weights) {
    out << std::string(static_cast<size_t>(weights.offset - at), '\0');
    out.write(reinterpret_cast<const char*>(weights.bytes.data()), std::ssize(weights.bytes));
    at = weights.offset + std::ssize(weights.bytes);
  }
  return out.flush() ? Status::ok()
                     : failed(folder, "/", kWeightsFile, ": cannot be written; is the disk full?");
}

Status check_served(const NodeGraph& graph, size_t node) {
  const GraphNode& asked = graph.nodes[node];
  if (!asked.foreign.empty()) return invalid_argument(asked.foreign);
  for (const auto* values : {&asked.inputs, &asked.outputs})
    for (const size_t v : *values)
      if (v != kNoValue && !graph.values[v].open.empty())
        return invalid_argument("\"", printable(graph.values[v].name), "\" ", graph.values[v].open);
  Part alone = part_of(graph, {node});
  alone.outputs.clear();  // all, also those that nobody reads
  for (const size_t v : asked.outputs)
    if (v != kNoValue) alone.outputs.push_back(v);
  const PartModel model = model_of(graph, alone);
  ModelOptions options;
  options.weights_may_miss = true;  // zeros stand for them
  options.folder = "/dev/null";     // nothing is below it
  return read_model(model.bytes, nullptr, options, interpret).status();
}

}  // namespace tuner::ort
