#include "compiler_core/graph/graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/integer_types.h"
#include "compiler_core/graph/empty.h"
#include "compiler_core/graph/operator.h"

namespace tuner::graph {
namespace {

double rounded(double x, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return x;
    case DType::kFloat32:
      return static_cast<float>(x);
    case DType::kFloat16:
      return std::isfinite(x) && std::fabs(x) < 65520 ? rounded_to_float16(static_cast<float>(x)) : x;
    case DType::kBFloat16:
      return std::isfinite(x) ? rounded_to_bfloat16(static_cast<float>(x)) : x;
    default:
      return number_of(dtype, nearest_of(dtype, x));
  }
}

Constant owning(std::vector<std::byte> bytes) {
  auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> view(*kept);
  return {view, std::move(kept)};
}

// Whether doubles do not hold all numbers of an integer type.
bool is_wide(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kUInt64; }
Constant owning_bits(std::span<const int64_t> numbers) {
  const auto bytes = std::as_bytes(numbers);
  return owning({bytes.begin(), bytes.end()});
}

template <class T>
std::vector<int64_t> read_integers(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

Status check_value(const Graph& graph, ValueId id) {
  const Value& v = graph[id];
  RETURN_IF_ERROR(check_size(v.type).with_context(str("value \"", v.name, "\": ")));
  if (v.constant && static_cast<int64_t>(v.constant->bytes().size()) != v.type.bytes())
    return invalid_argument("constant \"", v.name, "\" is ", to_text(v.type), ", ", v.type.bytes(),
                            " bytes; found ", v.constant->bytes().size());
  return Status::ok();
}

Status check_node(const Graph& graph, const Node& node, std::vector<bool>& known) {
  for (const ValueId in : node.inputs) {
    if (in == kNoValue) continue;
    if (in >= known.size() || !known[in])
      return invalid_argument("node ", node.name, " (", node.op,
                              ") reads a value that no node before it makes");
  }
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, infer(graph, node));
  if (touches_empty(graph, node, types))
    return invalid_argument("node ", node.name, " (", node.op, ") reads or makes a value without elements");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId out = node.outputs[i];
    if (out == kNoValue) continue;
    if (out >= known.size() || known[out])
      return invalid_argument("node ", node.name, " (", node.op, ") makes a value that is there already");
    known[out] = true;
    if (i >= types.size() || graph[out].type != types[i])
      return invalid_argument("node ", node.name, " (", node.op, "): result ", i, " is ",
                              to_text(graph[out].type), ", expected ",
                              i < types.size() ? to_text(types[i]) : "none");
  }
  return Status::ok();
}

std::string to_text(const Attribute& attribute) {
  const auto list = [](const auto& items) {
    std::string text = "[";
    for (const auto& item : items) text += (text.size() > 1 ? ", " : "") + str(item);
    return text + "]";
  };
  if (const auto* integer = std::get_if<int64_t>(&attribute)) return str(*integer);
  if (const auto* real = std::get_if<double>(&attribute)) return str(*real);
  if (const auto* word = std::get_if<std::string>(&attribute)) return *word;
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute)) return list(*integers);
  if (const auto* reals = std::get_if<std::vector<double>>(&attribute)) return list(*reals);
  return list(std::get<std::vector<std::string>>(attribute));
}

}  // namespace

int64_t TensorType::elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

std::string to_text(const TensorType& type) {
  std::string text = str(type.dtype, "[");
  for (size_t d = 0; d < type.shape.size(); ++d) text += (d == 0 ? "" : ", ") + str(type.shape[d]);
  return text + "]";
}

Status check_size(const TensorType& type) {
  constexpr int64_t kMostBytes = int64_t{1} << 40;
  int64_t bytes = dtype_bytes(type.dtype);
  for (const int64_t extent : type.shape) {
    if (extent < 0) return invalid_argument(to_text(type), " has a negative extent");
    if (extent > kMostBytes / bytes)
      return invalid_argument(to_text(type), " is too large: more than 2^40 bytes");
    bytes *= std::max<int64_t>(extent, 1);
  }
  return Status::ok();
}

Constant Constant::of(std::span<const double> numbers, DType dtype) {
  if (is_wide(dtype)) {
    std::vector<int64_t> integers;
    for (const double x : numbers) integers.push_back(nearest_of(dtype, x));
    return owning_bits(integers);
  }
  std::vector<double> exact;
  exact.reserve(numbers.size());
  for (const double x : numbers) exact.push_back(rounded(x, dtype));
  std::vector<std::byte> bytes(numbers.size() * static_cast<size_t>(dtype_bytes(dtype)));
  store_elements(exact.data(), static_cast<int64_t>(exact.size()), dtype, bytes.data());
  return owning(std::move(bytes));
}

Constant Constant::of(std::span<const int64_t> numbers, DType dtype) {
  if (!is_wide(dtype)) return of(std::vector<double>(numbers.begin(), numbers.end()), dtype);
  if (dtype == DType::kInt64) return owning_bits(numbers);
  std::vector<int64_t> in_range(numbers.begin(), numbers.end());
  for (int64_t& x : in_range) x = std::max<int64_t>(x, 0);
  return owning_bits(in_range);
}

std::vector<double> Constant::numbers(DType dtype) const {
  return load_elements(bytes_.data(), static_cast<int64_t>(bytes_.size()) / dtype_bytes(dtype), dtype);
}

std::vector<int64_t> Constant::integers(DType dtype) const {
  CHECK(!is_float(dtype)) << dtype << " is no integer type";
  switch (dtype) {
    case DType::kInt8:
      return read_integers<int8_t>(bytes_);
    case DType::kInt16:
      return read_integers<int16_t>(bytes_);
    case DType::kUInt16:
      return read_integers<uint16_t>(bytes_);
    case DType::kInt32:
      return read_integers<int32_t>(bytes_);
    case DType::kUInt32:
      return read_integers<uint32_t>(bytes_);
    case DType::kInt64:
      return read_integers<int64_t>(bytes_);
    case DType::kUInt64: {
      std::vector<int64_t> numbers = read_integers<int64_t>(bytes_);
      for (int64_t& x : numbers) x = x < 0 ? INT64_MAX : x;
      return numbers;
    }
    default:
      return read_integers<uint8_t>(bytes_);
  }
}

Status check(const Graph& graph) {
  std::vector<bool> known(graph.values.size(), false);
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    RETURN_IF_ERROR(check_value(graph, id));
    known[id] = graph[id].constant.has_value();
  }
  for (const ValueId in : graph.inputs) {
    if (in >= known.size() || known[in])
      return invalid_argument("input ", in, " is no value, or one that is known");
    known[in] = true;
  }
  for (const Node& node : graph.nodes) RETURN_IF_ERROR(check_node(graph, node, known));
  if (graph.output_names.size() != graph.outputs.size())
    return invalid_argument(graph.output_names.size(), " names for ", graph.outputs.size(), " outputs");
  for (const ValueId out : graph.outputs)
    if (out >= known.size() || !known[out])
      return invalid_argument("output ", out, " is a value that nothing makes");
  return Status::ok();
}

void number_values(Graph& graph) {
  for (ValueId v = 0; v < graph.values.size(); ++v) graph.values[v].origin = v;
}

std::string to_text(const Graph& graph) {
  std::string text = str("graph ", graph.name, "\n");
  const auto name = [&](ValueId id) { return id == kNoValue ? std::string("-") : str("%", id); };
  for (const ValueId in : graph.inputs)
    text += str("  input   ", name(in), " = ", graph[in].name, ": ", to_text(graph[in].type), "\n");
  std::set<ValueId> read;
  for (const Node& node : graph.nodes) read.insert(node.inputs.begin(), node.inputs.end());
  read.insert(graph.outputs.begin(), graph.outputs.end());
  for (const ValueId id : read)
    if (id != kNoValue && graph[id].constant)
      text += str("  const   ", name(id), " = ", graph[id].name, ": ", to_text(graph[id].type), "\n");
  for (const Node& node : graph.nodes) {
    std::string results, operands, attributes;
    for (const ValueId out : node.outputs) results += (results.empty() ? "" : ", ") + name(out);
    for (const ValueId in : node.inputs) operands += (operands.empty() ? "" : ", ") + name(in);
    for (const auto& [key, value] : node.attributes)
      attributes += str(attributes.empty() ? " {" : ", ", key, "=", to_text(value));
    if (!attributes.empty()) attributes += "}";
    std::string types;
    for (const ValueId out : node.outputs)
      if (out != kNoValue) types += (types.empty() ? "" : ", ") + to_text(graph[out].type);
    text += str("  ", results, " = ", node.op, "(", operands, ")", attributes, ": ", types, "   # ",
                node.name, "\n");
  }
  for (size_t k = 0; k < graph.outputs.size(); ++k)
    text += str("  output  ", graph.output_names[k], " = ", name(graph.outputs[k]), "\n");
  return text;
}

}  // namespace tuner::graph
