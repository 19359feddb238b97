#include "tuner/compile/check_inputs.h"

#include <algorithm>
#include <random>
#include <set>

#include "compiler_core/base/did_you_mean.h"
#include "tuner/model/tensor_file.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

bool passes_on(const std::string& op) {
  static const std::set<std::string> kOps = {"Cast",    "CastLike",  "Identity", "Reshape",
                                             "Squeeze", "Unsqueeze", "Flatten",  "Expand",
                                             "Tile",    "Transpose", "Slice",    "Concat"};
  return kOps.contains(op);
}

// The places that the node takes from its input `i`; 0: that input holds none.
int64_t places_of(const Graph& model, const Node& node, size_t i) {
  const auto extent = [&](size_t of, int64_t otherwise) {
    const std::vector<int64_t>& shape = model[node.inputs[of]].type.shape;
    const auto found = node.attributes.find("axis");
    int64_t axis = otherwise;
    if (found != node.attributes.end() && std::holds_alternative<int64_t>(found->second))
      axis = std::get<int64_t>(found->second);
    if (axis < 0) axis += std::ssize(shape);
    return axis >= 0 && axis < std::ssize(shape) ? shape[static_cast<size_t>(axis)] : 1;
  };
  if (i != 1) return 0;
  if (node.op == "Gather" || node.op == "GatherElements" || node.op == "Scatter" ||
      node.op == "ScatterElements")
    return extent(0, 0);
  if (node.op == "GatherND" || node.op == "ScatterND") {
    const std::vector<int64_t>& shape = model[node.inputs[0]].type.shape;
    return shape.empty() ? 1 : *std::ranges::min_element(shape);
  }
  return 0;
}

// How many values an integer input may take: the fewest places of all tensors that it indexes, else 2.
int64_t values_of(const Graph& model, ValueId input) {
  std::set<ValueId> same{input};
  int64_t least = 0;
  for (const Node& node : model.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || !same.contains(node.inputs[i])) continue;
      if (const int64_t places = places_of(model, node, i); places > 0)
        least = least == 0 ? places : std::min(least, places);
      if (passes_on(node.op) && node.outputs[0] != kNoValue && !is_float(model[node.outputs[0]].type.dtype))
        same.insert(node.outputs[0]);
    }
  return least > 0 ? least : 2;
}

AlignedBuffer drawn(const Graph& model, size_t k) {
  const graph::TensorType& type = model[model.inputs[k]].type;
  std::mt19937 random(static_cast<uint32_t>(k) + 1);
  std::vector<double> numbers(static_cast<size_t>(type.elements()));
  std::uniform_real_distribution<float> real(-1, 1);
  const bool is_byte = type.dtype == DType::kInt8 || type.dtype == DType::kUInt8;
  const int64_t least = type.dtype == DType::kInt8 ? -128 : 0;
  const int64_t count = is_byte ? 256 : type.dtype == DType::kBool ? 2 : values_of(model, model.inputs[k]);
  std::uniform_int_distribution<int64_t> integer(least, least + count - 1);
  for (double& x : numbers)
    x = is_float(type.dtype) ? static_cast<double>(real(random)) : static_cast<double>(integer(random));
  const graph::Constant elements = graph::Constant::of(numbers, type.dtype);
  AlignedBuffer out(type.bytes());
  std::ranges::copy(elements.bytes(), out.as<std::byte>());
  return out;
}

}  // namespace

Result<std::vector<AlignedBuffer>> check_inputs(const Graph& model,
                                                const std::map<std::string, std::string>& files) {
  std::vector<AlignedBuffer> inputs;
  std::vector<std::string> names;
  for (size_t k = 0; k < model.inputs.size(); ++k) {
    const graph::Value& input = model[model.inputs[k]];
    names.push_back(input.name);
    const auto file = files.find(input.name);
    if (file == files.end()) {
      inputs.push_back(drawn(model, k));
      continue;
    }
    tuner_arg wanted{};
    wanted.name = input.name.c_str();
    wanted.dtype = dtype_name(input.type.dtype).data();
    wanted.rank = static_cast<int32_t>(input.type.shape.size());
    wanted.bytes = input.type.bytes();
    if (input.type.shape.size() > TUNER_MAX_RANK)
      return invalid_argument("--check-input ", input.name, ": has ", input.type.shape.size(),
                              " dimensions, expected at most ", TUNER_MAX_RANK);
    std::ranges::copy(input.type.shape, wanted.shape);
    auto read = read_tensor_file(file->second, wanted);
    if (!read) return read.status().with_context(str("--check-input ", input.name, ": "));
    inputs.push_back(*std::move(read));
  }
  for (const auto& [name, file] : files)
    if (std::ranges::find(names, name) == names.end())
      return invalid_argument("--check-input ", name, ": the model has no input of that name",
                              did_you_mean(name, names));
  return inputs;
}

}  // namespace tuner
