#include "tests/models/onnx_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <bit>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

// Fields of one message, in the order they are written.
class Message {
 public:
  Message& number(uint32_t field, int64_t value) {
    return append([&](CodedOutputStream& out) {
      out.WriteTag(field << 3 | 0);
      out.WriteVarint64(static_cast<uint64_t>(value));
    });
  }
  Message& real(uint32_t field, double value) {
    return append([&](CodedOutputStream& out) {
      out.WriteTag(field << 3 | 5);
      out.WriteLittleEndian32(std::bit_cast<uint32_t>(static_cast<float>(value)));
    });
  }
  // A string, bytes or a message.
  Message& text(uint32_t field, const std::string& value) {
    return append([&](CodedOutputStream& out) {
      out.WriteTag(field << 3 | 2);
      out.WriteVarint64(value.size());
      out.WriteString(value);
    });
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class Write>
  Message& append(const Write& write) {
    StringOutputStream stream(&bytes_);
    CodedOutputStream out(&stream);
    write(out);
    return *this;
  }
  std::string bytes_;
};

// Field numbers of onnx.proto.
enum Model : uint32_t { kIrVersion = 1, kProducer = 2, kGraph = 7, kOpsetImport = 8 };
enum Opset : uint32_t { kVersion = 2 };
enum Graph : uint32_t { kNode = 1, kGraphName = 2, kInitializer = 5, kInput = 11, kOutput = 12 };
enum Node : uint32_t { kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kOpType = 4, kAttribute = 5 };
enum AttributeField : uint32_t {
  kAttributeName = 1,
  kFloat = 2,
  kInt = 3,
  kString = 4,
  kInts = 8,
  kAttributeType = 20
};
enum AttributeType : int64_t { kTypeFloat = 1, kTypeInt = 2, kTypeString = 3, kTypeInts = 7 };
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

Message attribute(const OnnxModel::Attribute& a) {
  Message made;
  made.text(kAttributeName, a.first);
  if (const auto* integer = std::get_if<int64_t>(&a.second)) {
    made.number(kInt, *integer).number(kAttributeType, kTypeInt);
  } else if (const auto* real = std::get_if<double>(&a.second)) {
    made.real(kFloat, *real).number(kAttributeType, kTypeFloat);
  } else if (const auto* word = std::get_if<std::string>(&a.second)) {
    made.text(kString, *word).number(kAttributeType, kTypeString);
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

void OnnxModel::input(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  graph_ += Message().message(kInput, value_info(name, dtype, shape)).bytes();
}

void OnnxModel::output(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  graph_ += Message().message(kOutput, value_info(name, dtype, shape)).bytes();
}

void OnnxModel::weights(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
                        const std::string& elements) {
  Message tensor;
  for (const int64_t extent : shape) tensor.number(kDims, extent);
  tensor.number(kDataType, onnx_type(dtype)).text(kTensorName, name).text(kRawData, elements);
  graph_ += Message().message(kInitializer, tensor).bytes();
}

void OnnxModel::node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const std::vector<Attribute>& attributes) {
  Message made;
  for (const std::string& input : inputs) made.text(kNodeInput, input);
  for (const std::string& output : outputs) made.text(kNodeOutput, output);
  made.text(kNodeName, str("node", nodes_++)).text(kOpType, op);
  for (const Attribute& a : attributes) made.message(kAttribute, attribute(a));
  graph_ += Message().message(kNode, made).bytes();
}

std::string OnnxModel::bytes() const {
  const std::string graph = graph_ + Message().text(kGraphName, "network").bytes();
  return Message()
      .number(kIrVersion, 8)
      .text(kProducer, "tuner tests")
      .message(kOpsetImport, Message().number(kVersion, 17))
      .text(kGraph, graph)
      .bytes();
}

}  // namespace tuner
