// What the reader takes from the bytes of a model. Bytes are written by numbers that stand here, not by the
// reader's own messages: fields are found where ONNX puts them, and bytes that attack a parser end in one
// line.
#include <gmock/gmock.h>

#include <cstring>
#include <map>

#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/damaged_text.h"
#include "tests/models/wire_message.h"
#include "tuner/model/read_model.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::varint;
using testing::WireMessage;
using Numbers = std::vector<double>;

template <class T>
std::string packed(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
std::string packed_varints(const std::vector<int64_t>& values) {
  std::string bytes;
  for (const int64_t v : values) bytes += varint(static_cast<uint64_t>(v));
  return bytes;
}

// A tensor of three elements of this type of ONNX, without them.
WireMessage tensor(int64_t data_type, const std::string& name = "t") {
  return WireMessage().number(1, 3).number(2, data_type).text(8, name);
}
WireMessage extents(const std::vector<WireMessage>& dims) {
  WireMessage shape;
  for (const WireMessage& dim : dims) shape.message(1, dim);
  return shape;
}
// A value named so, of float32.
WireMessage value(const std::string& name, const std::vector<WireMessage>& dims) {
  const WireMessage type = WireMessage().number(1, 1).message(2, extents(dims));
  return WireMessage().text(1, name).message(2, WireMessage().message(1, type));
}
WireMessage node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const WireMessage& more = {}) {
  WireMessage made;
  for (const std::string& input : inputs) made.text(1, input);
  return made.text(2, output).text(3, "node_" + output).text(4, op).raw(more.bytes());
}
WireMessage attribute(const std::string& name, int64_t type, const WireMessage& more) {
  return WireMessage().message(5, WireMessage().text(1, name).raw(more.bytes()).number(20, type));
}
const WireMessage kThree = WireMessage().number(1, 3);

// y = x + what `graph` adds as "a", of three elements.
std::string model_of(const WireMessage& graph, const WireMessage& more = {}) {
  const WireMessage whole = WireMessage()
                                .text(2, "net")
                                .message(11, value("x", {kThree}))
                                .raw(graph.bytes())
                                .message(1, node("Add", {"x", "a"}, "y"))
                                .message(12, value("y", {kThree}));
  return WireMessage()
      .number(1, 8)
      .message(8, WireMessage().text(1, "com.example").number(2, 1))
      .message(8, WireMessage().text(1, "ai.onnx").number(2, 17))
      .message(7, whole)
      .raw(more.bytes())
      .bytes();
}
Result<graph::Graph> read(const std::string& bytes) { return read_model(bytes, nullptr, {}, interpret); }
// y of x = 10, 20, 30; or why there is none.
Numbers computed(const std::string& bytes) {
  const auto graph = read(bytes);
  EXPECT_TRUE(graph.is_ok()) << graph.message();
  if (!graph) return {};
  const auto answers = graph::run_reference(*graph, {{10, 20, 30}}, interpret);
  EXPECT_TRUE(answers.is_ok()) << answers.message();
  return answers ? answers->at(0) : Numbers();
}
WireMessage initializer(const WireMessage& t) { return WireMessage().message(5, t); }
WireMessage constant(const WireMessage& attribute) {
  return WireMessage().message(1, node("Constant", {}, "a", attribute));
}

TEST(ModelWire, ElementsOfTensorsAreInTheFieldsOfTheirType) {
  const std::string floats = packed<float>({1, 2, 3}), integers = packed_varints({1, 2, 3});
  struct Case {
    int64_t data_type;
    DType dtype;
    WireMessage elements;
  };
  const std::vector<Case> cases = {
      {1, DType::kFloat32, WireMessage().text(4, floats)},
      {1, DType::kFloat32, WireMessage().real(4, 1).real(4, 2).real(4, 3)},  // not packed
      {1, DType::kFloat32, WireMessage().text(9, floats)},
      {11, DType::kFloat64, WireMessage().text(10, packed<double>({1, 2, 3}))},
      {10, DType::kFloat16, WireMessage().text(5, packed_varints({0x3c00, 0x4000, 0x4200}))},
      {16, DType::kBFloat16, WireMessage().text(5, packed_varints({0x3f80, 0x4000, 0x4040}))},
      {2, DType::kUInt8, WireMessage().text(5, integers)},
      {3, DType::kInt8, WireMessage().text(5, integers)},
      {6, DType::kInt32, WireMessage().text(5, integers)},
      {4, DType::kUInt16, WireMessage().text(5, integers)},
      {5, DType::kInt16, WireMessage().text(5, integers)},
      {12, DType::kUInt32, WireMessage().text(11, integers)},
      {13, DType::kUInt64, WireMessage().text(11, integers)},
      {13, DType::kUInt64, WireMessage().text(9, packed<uint64_t>({1, 2, 3}))},
      {7, DType::kInt64, WireMessage().text(7, integers)},
      {7, DType::kInt64, WireMessage().number(7, 1).number(7, 2).number(7, 3)},
  };
  for (const Case& c : cases) {
    const auto read = read_tensor(tensor(c.data_type).raw(c.elements.bytes()).bytes());
    ASSERT_TRUE(read.is_ok()) << c.data_type << ": " << read.message();
    EXPECT_EQ(read->type.dtype, c.dtype);
    EXPECT_EQ(read->name, "t");
    EXPECT_THAT(read->constant->numbers(c.dtype), ElementsAre(1, 2, 3)) << dtype_name(c.dtype);
  }
  const auto yes = read_tensor(tensor(9).text(5, packed_varints({1, 0, 1})).bytes());
  ASSERT_TRUE(yes.is_ok()) << yes.message();
  EXPECT_THAT(yes->constant->numbers(DType::kBool), ElementsAre(1, 0, 1));
}

TEST(ModelWire, TypesThatAreNotServedAreNamedAsInOnnx) {
  const std::map<int64_t, std::string> names = {
      {0, "UNDEFINED"},     {8, "STRING"},          {14, "COMPLEX64"}, {15, "COMPLEX128"},
      {17, "FLOAT8E4M3FN"}, {20, "FLOAT8E5M2FNUZ"}, {21, "UINT4"},     {22, "INT4"},
      {23, "FLOAT4E2M1"},   {1000, "1000"},         {-1, "-1"}};
  for (const auto& [number, name] : names)
    EXPECT_EQ(read_tensor(tensor(number).text(9, "elements").bytes()).message(),
              "elements of type " + name + " are not served");
}

TEST(ModelWire, ConstantsAndAttributesAreInTheFieldsOfTheirKind) {
  const std::string floats = packed<float>({1, 2, 3});
  EXPECT_THAT(computed(model_of(initializer(tensor(1, "a").text(9, floats)))), ElementsAre(11, 22, 33));
  EXPECT_THAT(computed(model_of(
                  constant(attribute("value", 4, WireMessage().message(5, tensor(1).text(4, floats)))))),
              ElementsAre(11, 22, 33));
  EXPECT_THAT(computed(model_of(constant(attribute("value_float", 1, WireMessage().real(2, 0.5))))),
              ElementsAre(10.5, 20.5, 30.5));
  EXPECT_THAT(computed(model_of(
                  constant(attribute("value_floats", 6, WireMessage().real(7, 1).real(7, 2).real(7, 3))))),
              ElementsAre(11, 22, 33));
  // Casts: an operator of an attribute that is an integer, and a list of integers before it.
  const auto cast = [](const WireMessage& integers) {
    return WireMessage()
        .message(1, node("Constant", {}, "i", integers))
        .message(1, node("Cast", {"i"}, "a", attribute("to", 2, WireMessage().number(3, 1))));
  };
  EXPECT_THAT(computed(model_of(cast(attribute("value_int", 2, WireMessage().number(3, 7))))),
              ElementsAre(17, 27, 37));
  EXPECT_THAT(computed(model_of(
                  cast(attribute("value_ints", 7, WireMessage().number(8, 4).number(8, 5).number(8, 6))))),
              ElementsAre(14, 25, 36));
  // A word, and a list of integers: a border before the elements, of which the last goes.
  const WireMessage pads = attribute("pads", 7, WireMessage().number(8, 1).number(8, -1)),
                    edge = attribute("mode", 3, WireMessage().text(4, "edge"));
  const auto pad = [](const WireMessage& attributes) {
    return model_of(WireMessage().message(1, node("Pad", {"x"}, "a", attributes)));
  };
  EXPECT_THAT(computed(pad(pads)), ElementsAre(10, 30, 50));
  EXPECT_THAT(computed(pad(WireMessage(pads).raw(edge.bytes()))), ElementsAre(20, 30, 50));
}

TEST(ModelWire, WhatAModelSaysBesidesIsInItsFields) {
  const WireMessage a = initializer(tensor(1, "a").text(9, packed<float>({1, 2, 3})));
  EXPECT_EQ(read(model_of(a)).message(), "");
  // Of another domain; a sparse initializer; what a value is said to be; elements in a file.
  EXPECT_THAT(
      read(model_of(WireMessage().message(1, node("Abs", {"x"}, "a", WireMessage().text(7, "com.example")))))
          .message(),
      HasSubstr("(com.example.Abs): this operator is not served"));
  EXPECT_EQ(read(model_of(WireMessage(a).message(15, WireMessage().message(1, tensor(1))))).message(),
            "sparse initializers are not served");
  EXPECT_THAT(read(model_of(WireMessage(a).message(13, value("a", {WireMessage().number(1, 4)})))).message(),
              HasSubstr("value \"a\": found shape [4] in the model, expected that of float32[3]"));
  EXPECT_THAT(
      read(model_of(WireMessage(a).message(11, value("z", {WireMessage().text(2, "rows")})))).message(),
      HasSubstr("extent 0 (rows) is open"));
  const WireMessage outside = WireMessage().text(1, "location").text(2, "w.bin");
  EXPECT_EQ(read(model_of(initializer(tensor(1, "a").message(13, outside).number(14, 1)))).message(),
            "initializer \"a\": its data lie in an external file, and no folder was given");
  const WireMessage sequence = WireMessage().text(1, "s").message(2, WireMessage().text(4, ""));
  EXPECT_THAT(read(model_of(WireMessage(a).message(11, sequence))).message(),
              HasSubstr("input \"s\" is no tensor"));
}

// An enumerator that is not known counts as absent: elements are in the file, and an attribute without a type
// is refused.
TEST(ModelWire, UnknownFieldsAndEnumeratorsAreSkipped) {
  const std::string floats = packed<float>({1, 2, 3});
  const WireMessage unknown =
      WireMessage().number(99, -1).real(98, 1).text(97, "any").raw(varint(96 << 3 | 1) + "eight by");
  for (const int64_t location : {int64_t{0}, int64_t{2}, int64_t{77}, int64_t{-1}})
    EXPECT_THAT(computed(model_of(
                    initializer(tensor(1, "a").raw(unknown.bytes()).text(9, floats).number(14, location)))),
                ElementsAre(11, 22, 33));
  // What lies below 25 is 0.
  const auto cut_off = [&](int64_t type) {
    return model_of(WireMessage(unknown).message(
        1, node("ThresholdedRelu", {"x"}, "a", attribute("alpha", type, WireMessage().real(2, 25)))));
  };
  EXPECT_THAT(computed(cut_off(1)), ElementsAre(10, 20, 60));
  for (const int64_t type : {int64_t{0}, int64_t{10}, int64_t{13}, int64_t{100}, int64_t{-1}})
    EXPECT_THAT(read(cut_off(type)).message(), HasSubstr("attribute alpha is of a type that is not known"))
        << type;
  EXPECT_THAT(read(cut_off(5)).message(), HasSubstr("attribute alpha is a graph, expected a float"));
}

std::string refusal(const std::string& bytes) {
  const auto graph = read(bytes);
  EXPECT_FALSE(graph.is_ok());
  EXPECT_EQ(graph.status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(testing::one_line(graph.message())) << graph.message();
  EXPECT_LT(graph.message().size(), 1000u);
  return graph.message();
}

TEST(ModelWire, AFileThatIsNoModelIsToldByItsBeginning) {
  const auto told = [](const std::string& bytes) {
    return str("this is no ONNX model, or a damaged one: ", bytes.size(),
               " bytes that do not read as onnx.ModelProto");
  };
  const std::string again = ". Export or download it again", page = "<!DOCTYPE html>\n<html>",
                    pointer = "version https://git-lfs.github.com/spec/v1\n", archive("PK\x03\x04", 4),
                    escape = "text\x1b[2J\n";
  EXPECT_EQ(refusal(page), told(page) + ", beginning with \"<!DOCTYPE html>\"" + again);
  EXPECT_EQ(refusal(pointer), told(pointer) + ", beginning with \"version https://git-lfs.\"" + again);
  EXPECT_EQ(refusal(archive), told(archive) + again);
  EXPECT_EQ(refusal(escape), told(escape) + again);
  // Another message of ONNX: a tensor.
  EXPECT_EQ(refusal(WireMessage().number(1, 2).number(2, 1).text(9, "elements").bytes()),
            "found no graph with outputs, expected an ONNX model. Export or download it again");
}

// Names are bytes of somebody else's: they need not be UTF-8, end a line, or be short.
TEST(ModelWire, NamesMayBeAnyBytes) {
  const std::string floats = packed<float>({1, 2, 3});
  EXPECT_THAT(computed(model_of(WireMessage()
                                    .message(5, tensor(1, "\xff\xfe").text(9, floats))
                                    .message(1, node("Identity", {"\xff\xfe"}, "a")))),
              ElementsAre(11, 22, 33));
  for (const std::string& name : {std::string("\xff\xfe\x80"), std::string("a\nb\x1b[2J"),
                                  std::string("\0x", 2), std::string(1 << 20, 'n')})
    EXPECT_THAT(refusal(model_of(WireMessage().message(1, node(name, {"x"}, "a")))), HasSubstr("not served"));
}

// Each level of a model, and what stands in it: the message with `inner` in it.
std::string at_level(int level, const std::string& inner) {
  const WireMessage in = WireMessage().raw(inner);
  switch (level) {
    case 0:
      return model_of({}, in);
    case 1:
      return model_of(in);
    case 2:
      return model_of(WireMessage().message(1, node("Abs", {"x"}, "a", in)));
    case 3:
      return model_of(WireMessage().message(1, node("Abs", {"x"}, "a", attribute("to", 2, in))));
    default:
      return model_of(initializer(tensor(1, "a").raw(inner)));
  }
}
constexpr int kLevels = 5;

TEST(ModelWire, SizesBeyondTheFileAreRefusedAtEachLevel) {
  const std::string no_model = "this is no ONNX model, or a damaged one";
  for (const uint64_t size : {uint64_t{1} << 20, (uint64_t{1} << 31) - 1, uint64_t{1} << 31,
                              uint64_t{1} << 32, (uint64_t{1} << 63) - 1, UINT64_MAX})
    for (int level = 0; level < kLevels; ++level)
      for (const uint64_t field : {1, 2, 4, 5, 7, 9, 97})
        EXPECT_THAT(refusal(at_level(level, varint(field << 3 | 2) + varint(size))), HasSubstr(no_model))
            << "level " << level << ", field " << field << ", size " << size;
}

TEST(ModelWire, WhatIsNoFieldIsRefusedAtEachLevel) {
  const std::string eleven =
      std::string(10, '\x80') + '\x01';  // bytes of a varint, of which ten are the most
  for (const std::string& bytes :
       {std::string(1, '\0'), varint(0 << 3 | 2) + varint(0), varint(1 << 3 | 6), varint(1 << 3 | 7), eleven,
        varint(97 << 3) + eleven, varint(97 << 3 | 4), varint(97 << 3 | 3), varint(97 << 3 | 1) + "four"})
    for (int level = 0; level < kLevels; ++level)
      EXPECT_THAT(refusal(at_level(level, bytes)), HasSubstr("no ONNX model")) << "level " << level;
}

// Groups inside of groups take a parser's stack, and messages in messages would if they were read.
TEST(ModelWire, DeepNestingEndsInOneLine) {
  std::string groups, ends;
  for (int depth = 0; depth < 100'000; ++depth) groups += varint(97 << 3 | 3), ends += varint(97 << 3 | 4);
  for (int level = 0; level < kLevels; ++level)
    EXPECT_THAT(refusal(at_level(level, groups + ends)), HasSubstr("no ONNX model")) << "level " << level;
  // The branches of an If: a graph with a node with an attribute with a graph...
  const auto branches = [](int depth) {
    WireMessage graph;
    for (int d = 1; d < depth; ++d)
      graph = WireMessage().message(1, WireMessage().text(4, "If").message(
                                           5, WireMessage().text(1, "b").message(6, graph).number(20, 5)));
    return refusal(model_of(WireMessage().message(
        1, node("If", {"x"}, "a", attribute("b", 5, WireMessage().message(6, graph))))));
  };
  EXPECT_THAT(branches(16), HasSubstr("node node_a (If): "));
  EXPECT_THAT(branches(17), HasSubstr("graph 17 of graphs within each other, expected at most 16"));
  EXPECT_THAT(branches(2'000), HasSubstr("no ONNX model"));
}

}  // namespace
}  // namespace tuner
