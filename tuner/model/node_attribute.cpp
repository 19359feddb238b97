#include "tuner/model/node_attribute.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/signature.h"
#include "tuner/model/onnx.pb.h"

namespace tuner {
namespace {

using graph::AttributeKind;
using Stored = onnx::AttributeProto;

struct StoredType {
  Stored::AttributeType type;
  std::string_view name;
  bool (*holds)(const Stored&);  // the field of this type has a value
};
constexpr StoredType kStoredTypes[] = {
    {Stored::FLOAT, "a float", [](const Stored& a) { return a.has_f(); }},
    {Stored::INT, "an integer", [](const Stored& a) { return a.has_i(); }},
    {Stored::STRING, "a string", [](const Stored& a) { return a.has_s(); }},
    {Stored::TENSOR, "a tensor", [](const Stored& a) { return a.has_t(); }},
    {Stored::GRAPH, "a graph", [](const Stored& a) { return a.has_g(); }},
    {Stored::FLOATS, "a list of floats", [](const Stored& a) { return a.floats_size() > 0; }},
    {Stored::INTS, "a list of integers", [](const Stored& a) { return a.ints_size() > 0; }},
    {Stored::STRINGS, "a list of strings", [](const Stored& a) { return a.strings_size() > 0; }},
};
std::string_view stored_name(Stored::AttributeType type) {
  const auto* found = std::ranges::find(kStoredTypes, type, &StoredType::type);
  return found == std::end(kStoredTypes) ? "of a type that is not known, or of none" : found->name;
}

// How a file stores what the operator wants.
Stored::AttributeType stored_type(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kFloat:
      return Stored::FLOAT;
    case AttributeKind::kString:
      return Stored::STRING;
    case AttributeKind::kIntegers:
      return Stored::INTS;
    case AttributeKind::kFloats:
      return Stored::FLOATS;
    case AttributeKind::kStrings:
      return Stored::STRINGS;
    case AttributeKind::kTensor:
      return Stored::TENSOR;
    case AttributeKind::kInteger:
    case AttributeKind::kType:  // numbered
      break;
  }
  return Stored::INT;
}

Status check_stored(const Stored& a, Stored::AttributeType wanted) {
  if (a.type() != wanted)
    return invalid_argument("attribute ", plain(a.name()), " is ", stored_name(a.type()), ", expected ",
                            stored_name(wanted));
  for (const StoredType& type : kStoredTypes)
    if (type.type != a.type() && type.holds(a))
      return invalid_argument("attribute ", plain(a.name()), " is called ", stored_name(a.type()),
                              " and holds ", type.name);
  return Status::ok();
}

Result<graph::Attribute> read_value(const Stored& a, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInteger:
      return graph::Attribute(int64_t{a.i()});
    case AttributeKind::kType: {  // ONNX numbers types; the table names them
      if (a.i() < 0 || a.i() > INT32_MAX)
        return invalid_argument("attribute ", plain(a.name()), " is ", a.i(), ", which is no type");
      ASSIGN_OR_RETURN(const DType dtype, dtype_of(static_cast<int>(a.i())));
      return graph::Attribute(std::string(dtype_name(dtype)));
    }
    case AttributeKind::kFloat:
      return graph::Attribute(static_cast<double>(a.f()));
    case AttributeKind::kString:
      return graph::Attribute(a.s());
    case AttributeKind::kIntegers:
      return graph::Attribute(std::vector<int64_t>(a.ints().begin(), a.ints().end()));
    case AttributeKind::kFloats:
      return graph::Attribute(std::vector<double>(a.floats().begin(), a.floats().end()));
    default:
      return graph::Attribute(std::vector<std::string>(a.strings().begin(), a.strings().end()));
  }
}

}  // namespace

Status read_attribute(const onnx::AttributeProto& a, TensorData& data,
                      const std::shared_ptr<const void>& owner, graph::Node& node) {
  const std::string name = plain(a.name());
  if (name.starts_with("__") || graph::find_operator(node.op) == nullptr) return Status::ok();
  if (node.attributes.contains(name)) return invalid_argument("attribute ", name, " stands twice");
  ASSIGN_OR_RETURN(const AttributeKind kind, graph::attribute_kind(node.op, name));
  RETURN_IF_ERROR(check_stored(a, stored_type(kind)));
  if (kind == AttributeKind::kType && a.i() == 0) return Status::ok();  // UNDEFINED, as if it were not there
  if (kind != AttributeKind::kTensor) {
    ASSIGN_OR_RETURN(node.attributes[name], read_value(a, kind));
    return Status::ok();
  }
  ASSIGN_OR_RETURN(const graph::Value value, data.read(a.t(), owner));
  if (value.type.elements() != 1)
    return invalid_argument("attribute ", name, " is a tensor of several elements");
  node.attributes[name] = value.constant->numbers(value.type.dtype)[0];
  node.attributes[name + "_type"] = std::string(dtype_name(value.type.dtype));
  return Status::ok();
}

Status check_constant_attribute(const onnx::AttributeProto& a) {
  constexpr std::pair<std::string_view, Stored::AttributeType> kTypes[] = {
      {"value", Stored::TENSOR},         {"value_float", Stored::FLOAT}, {"value_floats", Stored::FLOATS},
      {"value_int", Stored::INT},        {"value_ints", Stored::INTS},   {"value_string", Stored::STRING},
      {"value_strings", Stored::STRINGS}};
  for (const auto& [name, type] : kTypes)
    if (name == a.name()) return check_stored(a, type);
  return Status::ok();  // refused by who reads it
}

}  // namespace tuner
