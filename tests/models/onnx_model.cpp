#include "tests/models/onnx_model.h"

#include "compiler_core/base/status.h"
#include "tests/models/wire_message.h"

namespace tuner {
namespace {

using Message = testing::WireMessage;

constexpr std::string_view kMicrosoft = "com.microsoft";  // the domain of ONNX Runtime's own operators

// Field numbers of ONNX's format.
enum Model : uint32_t { kIrVersion = 1, kProducer = 2, kGraph = 7, kOpsetImport = 8 };
enum Opset : uint32_t { kDomain = 1, kVersion = 2 };
enum Graph : uint32_t { kNode = 1, kGraphName = 2, kInitializer = 5, kInput = 11, kOutput = 12 };
enum Node : uint32_t {
  kNodeInput = 1,
  kNodeOutput = 2,
  kNodeName = 3,
  kOpType = 4,
  kAttribute = 5,
  kNodeDomain = 7
};
enum AttributeField : uint32_t {
  kAttributeName = 1,
  kFloat = 2,
  kInt = 3,
  kString = 4,
  kSubgraph = 6,
  kFloats = 7,
  kInts = 8,
  kStrings = 9,
  kAttributeType = 20
};
enum AttributeType : int64_t {
  kTypeFloat = 1,
  kTypeInt = 2,
  kTypeString = 3,
  kTypeGraph = 5,
  kTypeFloats = 6,
  kTypeInts = 7,
  kTypeStrings = 8
};
enum Tensor : uint32_t { kDims = 1, kDataType = 2, kTensorName = 8, kRawData = 9 };
enum ValueInfo : uint32_t { kValueName = 1, kValueType = 2 };
enum Type : uint32_t { kTensorType = 1 };
enum TensorType : uint32_t { kElementType = 1, kShape = 2 };
enum Shape : uint32_t { kDim = 1 };
enum Dimension : uint32_t { kDimValue = 1 };

Message value_info(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  Message dimensions;
  for (const int64_t extent : shape) dimensions.message(kDim, Message().number(kDimValue, extent));
  const Message tensor = Message().number(kElementType, onnx_type(dtype)).message(kShape, dimensions);
  return Message().text(kValueName, name).message(kValueType, Message().message(kTensorType, tensor));
}

Message attribute(const OnnxGraph::Attribute& a) {
  Message made;
  made.text(kAttributeName, a.first);
  if (const auto* integer = std::get_if<int64_t>(&a.second)) {
    made.number(kInt, *integer).number(kAttributeType, kTypeInt);
  } else if (const auto* real = std::get_if<double>(&a.second)) {
    made.real(kFloat, *real).number(kAttributeType, kTypeFloat);
  } else if (const auto* word = std::get_if<std::string>(&a.second)) {
    made.text(kString, *word).number(kAttributeType, kTypeString);
  } else if (const auto* reals = std::get_if<std::vector<double>>(&a.second)) {
    for (const double x : *reals) made.real(kFloats, x);
    made.number(kAttributeType, kTypeFloats);
  } else if (const auto* words = std::get_if<std::vector<std::string>>(&a.second)) {
    for (const std::string& x : *words) made.text(kStrings, x);
    made.number(kAttributeType, kTypeStrings);
  } else if (const auto* graph = std::get_if<OnnxGraph::Subgraph>(&a.second)) {
    made.text(kSubgraph, graph->bytes).number(kAttributeType, kTypeGraph);
  } else {
    for (const int64_t x : std::get<std::vector<int64_t>>(a.second)) made.number(kInts, x);
    made.number(kAttributeType, kTypeInts);
  }
  return made;
}

}  // namespace

int onnx_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 1;
    case DType::kUInt8:
      return 2;
    case DType::kInt8:
      return 3;
    case DType::kInt32:
      return 6;
    case DType::kInt64:
      return 7;
    case DType::kBool:
      return 9;
    case DType::kFloat16:
      return 10;
    case DType::kBFloat16:
      return 16;
    default:
      break;
  }
  CHECK(false) << "no operand is of type " << dtype;
  return 0;
}

void OnnxGraph::input(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  fields_ += Message().message(kInput, value_info(name, dtype, shape)).bytes();
}

void OnnxGraph::output(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  fields_ += Message().message(kOutput, value_info(name, dtype, shape)).bytes();
}

void OnnxGraph::weights(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
                        const std::string& elements) {
  Message tensor;
  for (const int64_t extent : shape) tensor.number(kDims, extent);
  tensor.number(kDataType, onnx_type(dtype)).text(kTensorName, name).text(kRawData, elements);
  fields_ += Message().message(kInitializer, tensor).bytes();
}

void OnnxGraph::node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const std::vector<Attribute>& attributes) {
  Message made;
  for (const std::string& input : inputs) made.text(kNodeInput, input);
  for (const std::string& output : outputs) made.text(kNodeOutput, output);
  const bool of_microsoft = op.starts_with(kMicrosoft) && op.size() > kMicrosoft.size();
  made.text(kNodeName, str(nodes_, next_++))
      .text(kOpType, of_microsoft ? op.substr(kMicrosoft.size() + 1) : op);
  if (of_microsoft) made.text(kNodeDomain, std::string(kMicrosoft));
  has_microsofts_ |= of_microsoft;
  for (const Attribute& a : attributes) made.message(kAttribute, attribute(a));
  fields_ += Message().message(kNode, made).bytes();
}

std::string OnnxGraph::message() const { return fields_ + Message().text(kGraphName, name_).bytes(); }

std::string OnnxModel::bytes() const {
  Message model;
  model.number(kIrVersion, 8)
      .text(kProducer, "tuner tests")
      .message(kOpsetImport, Message().number(kVersion, 17));
  if (has_microsofts())
    model.message(kOpsetImport, Message().text(kDomain, std::string(kMicrosoft)).number(kVersion, 1));
  return model.text(kGraph, message()).bytes();
}

}  // namespace tuner
