#include "deploy/onnxruntime/node_graph.h"

#include <map>

#include "compiler_core/base/printable.h"
#include "deploy/onnxruntime/ort_api.h"

namespace tuner::ort {
namespace {

class GraphReader {
 public:
  GraphReader(const Api& api, const OrtGraph* graph) : api_(api), graph_(graph) {}

  Result<NodeGraph> read() {
    ASSIGN_OR_RETURN(out_.operator_set, operator_set());
    ASSIGN_OR_RETURN(const std::vector<const OrtNode*> nodes,
                     all<const OrtNode*>(api_.count_nodes, api_.nodes, graph_));
    for (const OrtNode* node : nodes) {
      ASSIGN_OR_RETURN(GraphNode read, node_of(node));
      out_.nodes.push_back(std::move(read));
    }
    ASSIGN_OR_RETURN(out_.outputs, values(api_.count_outputs, api_.outputs, graph_));
    return std::move(out_);
  }

 private:
  // What a pair of functions tells: how many, and which.
  template <class T, class Count, class Get, class Of>
  Result<std::vector<T>> all(Count count, Get get, const Of* of) const {
    size_t number = 0;
    RETURN_IF_ERROR(api_.ok(count(of, &number), "count parts of a graph"));
    std::vector<T> found(number);
    if (number > 0) RETURN_IF_ERROR(api_.ok(get(of, found.data(), number), "read parts of a graph"));
    return found;
  }
  template <class Count, class Get, class Of>
  Result<std::vector<size_t>> values(Count count, Get get, const Of* of) {
    ASSIGN_OR_RETURN(const auto infos, (all<const OrtValueInfo*>(count, get, of)));
    std::vector<size_t> found;
    for (const OrtValueInfo* info : infos) {
      ASSIGN_OR_RETURN(const size_t value, value_of(info));
      found.push_back(value);
    }
    return found;
  }
  template <class Of>
  Result<std::string> text(OrtStatus* (*get)(const Of*, const char**), const Of* of) const {
    const char* found = nullptr;
    RETURN_IF_ERROR(api_.ok(get(of, &found), "read a name"));
    return std::string(found == nullptr ? "" : found);
  }

  Result<int64_t> operator_set() const {
    size_t count = 0;
    RETURN_IF_ERROR(api_.ok(api_.count_operator_sets(graph_, &count), "count operator sets"));
    std::vector<const char*> domains(count);
    std::vector<int64_t> versions(count);
    RETURN_IF_ERROR(
        api_.ok(api_.operator_sets(graph_, domains.data(), versions.data(), count), "read operator sets"));
    for (size_t k = 0; k < count; ++k)
      if (const std::string domain = domains[k]; domain.empty() || domain == "ai.onnx") return versions[k];
    return int64_t{0};
  }

  Result<size_t> value_of(const OrtValueInfo* info) {
    if (info == nullptr) return kNoValue;
    ASSIGN_OR_RETURN(const std::string name, text(api_.value_name, info));
    if (name.empty()) return kNoValue;
    const auto [place, is_new] = known_.emplace(name, out_.values.size());
    if (!is_new) return place->second;
    out_.values.push_back({.name = name});
    RETURN_IF_ERROR(read_type(info, out_.values.back()));
    RETURN_IF_ERROR(read_constant(info, out_.values.back()));
    return place->second;
  }

  Status read_type(const OrtValueInfo* info, GraphValue& value) const {
    const OrtTypeInfo* type = nullptr;
    const OrtTensorInfo* tensor = nullptr;
    RETURN_IF_ERROR(api_.ok(api_.value_type(info, &type), "read a type"));
    if (type != nullptr) RETURN_IF_ERROR(api_.ok(api_.tensor_info(type, &tensor), "read a type"));
    if (tensor == nullptr) {
      value.open = "is no tensor";
      return Status::ok();
    }
    RETURN_IF_ERROR(read_tensor(tensor, value.type, value.shape));
    if (!api_.has_shape(tensor)) value.open = "has no shape";
    for (size_t d = 0; d < value.shape.size(); ++d)
      if (value.shape[d] < 0) value.open = str("extent ", d, " is not fixed");
    return Status::ok();
  }
  Status read_tensor(const OrtTensorInfo* tensor, int& type, std::vector<int64_t>& shape) const {
    RETURN_IF_ERROR(api_.ok(api_.element_type(tensor, &type), "read a type"));
    size_t rank = 0;
    RETURN_IF_ERROR(api_.ok(api_.rank(tensor, &rank), "read a shape"));
    shape.resize(rank);
    return rank == 0 ? Status::ok() : api_.ok(api_.extents(tensor, shape.data(), rank), "read a shape");
  }

  Status read_constant(const OrtValueInfo* info, GraphValue& value) const {
    RETURN_IF_ERROR(api_.ok(api_.is_constant(info, &value.constant), "read a value"));
    if (!value.constant) return Status::ok();
    const OrtValue* tensor = nullptr;
    RETURN_IF_ERROR(api_.ok(api_.initializer(info, &tensor), "read a constant"));
    if (tensor == nullptr || !value.open.empty()) {
      value.constant = false;
      if (value.open.empty()) value.open = "is a constant without elements";
      return Status::ok();
    }
    const void* data = nullptr;
    size_t bytes = 0;
    RETURN_IF_ERROR(api_.ok(api_.value_bytes(tensor, &bytes), "read a constant"));
    RETURN_IF_ERROR(api_.ok(api_.data(tensor, &data), "read a constant"));
    value.elements = {static_cast<const std::byte*>(data), bytes};
    return Status::ok();
  }

  Result<GraphNode> node_of(const OrtNode* handle) {
    GraphNode node{.handle = handle};
    ASSIGN_OR_RETURN(node.name, text(api_.node_name, handle));
    ASSIGN_OR_RETURN(node.op, text(api_.node_operator, handle));
    ASSIGN_OR_RETURN(node.domain, text(api_.node_domain, handle));
    if (node.domain == "ai.onnx") node.domain.clear();
    ASSIGN_OR_RETURN(node.inputs, values(api_.count_node_inputs, api_.node_inputs, handle));
    ASSIGN_OR_RETURN(node.outputs, values(api_.count_node_outputs, api_.node_outputs, handle));
    ASSIGN_OR_RETURN(node.read_inside, values(api_.count_implicit_inputs, api_.implicit_inputs, handle));
    ASSIGN_OR_RETURN(const std::string provider, text(api_.node_provider, handle));
    size_t graphs = 0;
    RETURN_IF_ERROR(api_.ok(api_.count_subgraphs(handle, &graphs), "count graphs of a node"));
    if (!provider.empty()) node.foreign = "it runs on " + provider;
    if (!node.domain.empty()) node.foreign = str("operators of ", node.domain, " are not served");
    if (graphs > 0) node.foreign = "it holds graphs";
    if (!node.foreign.empty()) return node;
    ASSIGN_OR_RETURN(const auto found,
                     (all<const OrtOpAttr*>(api_.count_attributes, api_.attributes, handle)));
    for (const OrtOpAttr* attribute : found) {
      auto read = attribute_of(attribute);
      if (read)
        node.attributes.push_back(*std::move(read));
      else
        node.foreign = read.message();
    }
    return node;
  }

  Result<NodeAttribute> attribute_of(const OrtOpAttr* attribute) const {
    NodeAttribute out;
    ASSIGN_OR_RETURN(out.name, text(api_.attribute_name, attribute));
    int type = 0;
    RETURN_IF_ERROR(api_.ok(api_.attribute_type(attribute, &type), "read an attribute"));
    switch (static_cast<AttributeType>(type)) {
      case AttributeType::kInt:
        return one<int64_t>(std::move(out), attribute, type);
      case AttributeType::kFloat:
        return one<float>(std::move(out), attribute, type);
      case AttributeType::kInts:
        return many<int64_t>(std::move(out), attribute, type);
      case AttributeType::kFloats:
        return many<float>(std::move(out), attribute, type);
      case AttributeType::kString:
      case AttributeType::kStrings: {
        ASSIGN_OR_RETURN(const std::string bytes, characters(attribute, type));
        std::vector<std::string> words;  // each ends with a zero
        for (size_t from = 0; from < bytes.size(); from += words.back().size() + 1)
          words.emplace_back(bytes.c_str() + from);
        if (static_cast<AttributeType>(type) == AttributeType::kStrings)
          out.value = std::move(words);
        else
          out.value = words.empty() ? std::string() : words[0];
        return out;
      }
      case AttributeType::kTensor:
        return tensor(std::move(out), attribute);
      default:
        return invalid_argument("attribute ", printable(out.name), " is of a kind that is not served");
    }
  }
  template <class T>
  Result<NodeAttribute> one(NodeAttribute out, const OrtOpAttr* attribute, int type) const {
    T value{};
    size_t needed = 0;
    RETURN_IF_ERROR(
        api_.ok(api_.read_attribute(attribute, type, &value, sizeof value, &needed), "read an attribute"));
    out.value = value;
    return out;
  }
  template <class T>
  Result<NodeAttribute> many(NodeAttribute out, const OrtOpAttr* attribute, int type) const {
    std::vector<T> values(bytes_of(attribute, type) / sizeof(T));
    size_t needed = 0;
    RETURN_IF_ERROR(
        api_.ok(api_.read_attribute(attribute, type, values.data(), values.size() * sizeof(T), &needed),
                "read an attribute"));
    out.value = std::move(values);
    return out;
  }
  Result<std::string> characters(const OrtOpAttr* attribute, int type) const {
    std::string bytes(bytes_of(attribute, type), '\0');
    size_t needed = 0;
    RETURN_IF_ERROR(api_.ok(api_.read_attribute(attribute, type, bytes.data(), bytes.size(), &needed),
                            "read an attribute"));
    return bytes;
  }
  // Too little room is an error that tells how much there must be.
  size_t bytes_of(const OrtOpAttr* attribute, int type) const {
    size_t needed = 0;
    if (OrtStatus* status = api_.read_attribute(attribute, type, nullptr, 0, &needed))
      api_.release_status(status);
    return needed;
  }
  Result<NodeAttribute> tensor(NodeAttribute out, const OrtOpAttr* attribute) const {
    OrtValue* value = nullptr;
    RETURN_IF_ERROR(api_.ok(api_.tensor_attribute(attribute, &value), "read an attribute"));
    if (value == nullptr) return invalid_argument("attribute ", printable(out.name), " has no tensor");
    TensorAttribute made;
    const Status read = copy_tensor(value, made);
    api_.release_value(value);
    if (!read) return read;
    out.value = std::move(made);
    return out;
  }
  Status copy_tensor(const OrtValue* value, TensorAttribute& to) const {
    OrtTensorInfo* info = nullptr;
    RETURN_IF_ERROR(api_.ok(api_.tensor_info_of_value(value, &info), "read an attribute"));
    const Status typed = read_tensor(info, to.type, to.shape);
    api_.release_tensor_info(info);
    RETURN_IF_ERROR(typed);
    const void* data = nullptr;
    size_t bytes = 0;
    RETURN_IF_ERROR(api_.ok(api_.value_bytes(value, &bytes), "read an attribute"));
    RETURN_IF_ERROR(api_.ok(api_.data(value, &data), "read an attribute"));
    to.elements.assign(static_cast<const char*>(data), bytes);
    return Status::ok();
  }

  const Api& api_;
  const OrtGraph* graph_;
  NodeGraph out_;
  std::map<std::string, size_t> known_;
};

}  // namespace

Result<NodeGraph> read_graph(const Api& api, const OrtGraph* graph) { return GraphReader(api, graph).read(); }

std::string label_of(const GraphNode& node) {
  return str("node ", printable(node.name.empty() ? "without a name" : node.name), " (", printable(node.op),
             ")");
}

}  // namespace tuner::ort
