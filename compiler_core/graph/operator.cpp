#include "compiler_core/graph/operator.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler_core/base/did_you_mean.h"
#include "compiler_core/graph/empty.h"
#include "compiler_core/graph/families.h"
#include "compiler_core/graph/signature.h"

namespace tuner::graph {
namespace {

const std::map<std::string_view, const Operator*>& table() {
  static const auto rows = [] {
    std::map<std::string_view, const Operator*> all;
    for (const std::span<const Operator> family :
         {unary_operators(),         binary_operators(),       shape_operators(),
          movement_operators(),      gather_operators(),       reduction_operators(),
          normalization_operators(), product_operators(),      convolution_operators(),
          pooling_operators(),       quantization_operators(), resize_operators(),
          attention_operators(),     box_operators(),          loss_operators(),
          low_bits_operators(),      matrix_operators(),       ngram_operators(),
          region_operators(),        sampling_operators(),     selection_operators(),
          signal_operators(),        recurrent_operators(),    integer_product_operators(),
          on_bytes_operators()})
      for (const Operator& row : family)
        CHECK(all.emplace(row.name, &row).second) << row.name << " stands twice";
    return all;
  }();
  return rows;
}

// A name for a buffer: what of `text` an identifier may hold.
std::string identifier(std::string_view text) {
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "v" + name : name;
}

// For a shell: most names need no quotes.
std::string quoted(const std::string& word) {
  const bool is_plain = std::ranges::all_of(word, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_./:-=").find(c) != std::string_view::npos;
  });
  if (is_plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The inputs of the model that the value is computed from.
std::vector<ValueId> inputs_behind(const Graph& graph, ValueId id) {
  std::set<ValueId> needed{id};
  for (size_t n = graph.nodes.size(); n-- > 0;)
    if (std::ranges::any_of(graph.nodes[n].outputs, [&](ValueId v) { return needed.contains(v); }))
      needed.insert(graph.nodes[n].inputs.begin(), graph.nodes[n].inputs.end());
  std::vector<ValueId> inputs;
  std::ranges::copy_if(graph.inputs, std::back_inserter(inputs),
                       [&](ValueId v) { return needed.contains(v); });
  return inputs;
}

}  // namespace

std::string_view operator_kind_name(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kElementwise:
      return "elementwise";
    case OperatorKind::kMovement:
      return "movement";
    case OperatorKind::kReduction:
      return "reduction";
    case OperatorKind::kProduct:
      return "product";
    case OperatorKind::kShape:
      return "shape";
  }
  return "";
}

std::string constant_options(const Graph& graph, ValueId id) {
  std::string options;
  for (const ValueId v : inputs_behind(graph, id))
    options += str(options.empty() ? "" : " ", "--constant ", quoted(graph[v].name + "=FILE"));
  return options;
}

Status not_constant(const Graph& graph, std::string_view what, ValueId id) {
  std::string names;
  for (const ValueId v : inputs_behind(graph, id)) names += str(names.empty() ? "" : ", ", graph[v].name);
  const bool is_input = std::ranges::find(graph.inputs, id) != graph.inputs.end();
  const std::string options = constant_options(graph, id);
  return invalid_argument(what, " (", graph[id].name, ") is ",
                          is_input        ? "an input of the model"
                          : names.empty() ? "computed from constants that are too large"
                                          : str("computed from data, the input ", names),
                          "; expected a constant",
                          options.empty() ? "" : str(". If it is the same in every run: ", options));
}

const Operator* find_operator(std::string_view name) {
  const auto row = table().find(name);
  return row == table().end() ? nullptr : row->second;
}

std::vector<const Operator*> all_operators() {
  std::vector<const Operator*> rows;
  for (const auto& [name, row] : table()) rows.push_back(row);
  return rows;
}

const TensorType& Use::type(size_t i) const {
  CHECK(has(i)) << node_.op << " has no input " << i;
  return graph_[node_.inputs[i]].type;
}

bool Use::is_constant(size_t i) const {
  return has(i) && (is_empty(type(i)) || graph_[node_.inputs[i]].constant.has_value());
}

Result<std::vector<int64_t>> Use::integers(size_t i) const {
  if (!has(i)) return invalid_argument("input ", i, " is missing");
  const Value& v = graph_[node_.inputs[i]];
  if (!is_constant(i)) return not_constant(graph_, str("input ", i), node_.inputs[i]);
  if (is_float(v.type.dtype))
    return invalid_argument("input ", i, " is ", v.type.dtype, ", expected integers");
  if (is_empty(v.type)) return std::vector<int64_t>();
  return v.constant->integers(v.type.dtype);
}

Result<std::vector<double>> Use::numbers(size_t i) const {
  if (!has(i)) return invalid_argument("input ", i, " is missing");
  const Value& v = graph_[node_.inputs[i]];
  if (!is_constant(i)) return not_constant(graph_, str("input ", i), node_.inputs[i]);
  if (is_empty(v.type)) return std::vector<double>();
  return v.constant->numbers(v.type.dtype);
}

int64_t Use::integer(std::string_view attribute, int64_t otherwise) const {
  const auto found = node_.attributes.find(attribute);
  const auto* value = found == node_.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value == nullptr ? otherwise : *value;
}

double Use::number(std::string_view attribute, double otherwise) const {
  const auto found = node_.attributes.find(attribute);
  const auto* value = found == node_.attributes.end() ? nullptr : std::get_if<double>(&found->second);
  return value == nullptr ? otherwise : *value;
}

std::string Use::word(std::string_view attribute, std::string_view otherwise) const {
  const auto found = node_.attributes.find(attribute);
  const auto* value = found == node_.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return std::string(value == nullptr ? otherwise : *value);
}

std::vector<int64_t> Use::integers(std::string_view attribute, const std::vector<int64_t>& otherwise) const {
  const auto found = node_.attributes.find(attribute);
  const auto* value =
      found == node_.attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
  return value == nullptr ? otherwise : *value;
}

std::vector<double> Use::numbers(std::string_view attribute) const {
  const auto found = node_.attributes.find(attribute);
  const auto* value =
      found == node_.attributes.end() ? nullptr : std::get_if<std::vector<double>>(&found->second);
  return value == nullptr ? std::vector<double>() : *value;
}

std::vector<std::string> Use::words(std::string_view attribute) const {
  const auto found = node_.attributes.find(attribute);
  const auto* value =
      found == node_.attributes.end() ? nullptr : std::get_if<std::vector<std::string>>(&found->second);
  return value == nullptr ? std::vector<std::string>() : *value;
}

Result<std::optional<std::vector<int64_t>>> Use::integers(std::string_view attribute, size_t i) const {
  if (has(i)) {
    ASSIGN_OR_RETURN(std::vector<int64_t> values, integers(i));
    return std::optional(std::move(values));
  }
  if (!has_attribute(attribute)) return std::optional<std::vector<int64_t>>();
  return std::optional(integers(attribute));
}

Result<std::optional<std::vector<int64_t>>> Use::axes(std::string_view attribute, size_t i,
                                                      int64_t rank) const {
  ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> found, integers(attribute, i));
  if (!found) return found;
  for (int64_t& axis : *found) {
    if (axis < -rank || axis >= rank)
      return invalid_argument("axis ", axis, " of a tensor of ", rank, " dimensions");
    if (axis < 0) axis += rank;
  }
  std::sort(found->begin(), found->end());
  if (std::adjacent_find(found->begin(), found->end()) != found->end())
    return invalid_argument("an axis stands twice");
  return found;
}

Result<int64_t> Use::axis(std::string_view attribute, int64_t otherwise, int64_t rank, int64_t most) const {
  const int64_t found = integer(attribute, otherwise);
  if (found < -rank || found > most)
    return invalid_argument(attribute, " is ", found, " of a tensor of ", rank, " dimensions");
  return found < 0 ? found + rank : found;
}

Result<std::vector<TensorType>> infer(const Graph& graph, const Node& node) {
  const auto context = [&] { return str("node ", node.name, " (", node.op, "): "); };
  const Operator* row = find_operator(node.op);
  if (row == nullptr) return invalid_argument(context(), "this operator is not served");
  const Use use(graph, node);
  const size_t needed =
      row->most_inputs == kAnyNumber ? std::max(node.inputs.size(), row->least_inputs) : row->least_inputs;
  for (size_t i = 0; i < needed; ++i)
    if (!use.has(i)) return invalid_argument(context(), "input ", i, " is missing");
  if (node.inputs.size() > row->most_inputs)
    return invalid_argument(context(), node.inputs.size(), " inputs, expected at most ", row->most_inputs);
  if (node.outputs.empty()) return invalid_argument(context(), "has no outputs, expected one or more");
  if (node.outputs.size() > row->most_outputs)
    return invalid_argument(context(), node.outputs.size(), " outputs, expected at most ", row->most_outputs);
  RETURN_IF_ERROR(check_signature(use).with_context(context()));
  for (size_t i = 0; i < node.inputs.size() && !serves_empty(*row); ++i)
    if (use.has(i) && is_empty(use.type(i)))
      return invalid_argument(context(), "input ", i, ", ", to_text(use.type(i)),
                              ", has no elements: not served by this operator");
  auto types = row->types(use);
  if (!types) return types.status().with_context(context());
  for (const TensorType& type : *types) {
    RETURN_IF_ERROR(check_size(type).with_context(context() + "its result "));
    if (is_empty(type) && !serves_empty(*row))
      return invalid_argument(context(), "its result ", to_text(type), " has no elements");
  }
  return types;
}

NodeProgram program_of(const Graph& graph, const Node& node) {
  const Operator* row = find_operator(node.op);
  CHECK(row != nullptr) << node.op << " is not served";
  NodeProgram made;
  te::Builder builder(identifier(node.op));
  std::vector<Buffer> in;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == kNoValue || row->kind == OperatorKind::kShape) {
      in.push_back(nullptr);
      continue;
    }
    const Value& v = graph[id];
    const std::string name = str("in", i);
    in.push_back(v.constant ? builder.constant(name, v.type.shape, v.type.dtype)
                            : builder.input(name, v.type.shape, v.type.dtype));
    made.reads.push_back(id);
  }
  std::vector<std::string> names;
  std::vector<TensorType> types;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    names.push_back(id == kNoValue ? "" : str("out", i));
    types.push_back(id == kNoValue ? TensorType() : graph[id].type);
    if (id != kNoValue) made.writes.push_back(id);
  }
  MathWriter writer(builder, std::move(in), std::move(names), std::move(types), BufferRole::kOutput);
  row->math(Use(graph, node), writer);
  made.tables = writer.tables();
  made.program = builder.finish();
  // Outputs stand in the order in which they were written; callers know them by number.
  const size_t results = made.writes.size(), before = made.program.args.size() - results;
  size_t place = before;
  for (const Buffer& result : writer.results())
    if (result != nullptr) made.program.args[place++] = result;
  CHECK(place == made.program.args.size())
      << node.op << " did not write " << made.program.args.size() - place << " of its results";
  return made;
}

}  // namespace tuner::graph
