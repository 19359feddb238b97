// Models that say two things: an attribute stored as another type, a value declared with another type,
// numbers of external files that no file can have. Each is one line with the place; the same model without
// the contradiction is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/tuner/model/onnx_models.h"
#include "tuner/model/read_model.h"

namespace tuner::testing {
namespace {

using ::testing::HasSubstr;
using Stored = onnx::AttributeProto;

// y = a convolution of x, float32[1, 2, 6, 6].
ModelBuilder convolution() {
  ModelBuilder b;
  b.output(b.conv(b.input("x", {1, 2, 6, 6}), 2, 3, 3, 2));
  return b;
}
std::string refusal(const onnx::ModelProto& model, const std::string& folder = "") {
  const std::string bytes = model.SerializeAsString();
  const auto graph =
      read_model(bytes, nullptr, {.folder = folder, .weights_may_miss = folder.empty()}, interpret);
  EXPECT_TRUE(graph.is_ok() || graph.status().code() == StatusCode::kInvalidArgument);
  return graph.message();
}
std::string with_attribute(const std::function<void(Stored&)>& change) {
  ModelBuilder b = convolution();
  auto& node = *b.model().mutable_graph()->mutable_node(0);
  for (auto& a : *node.mutable_attribute())
    if (a.name() == "strides") change(a);
  return refusal(b.model());
}
onnx::ValueInfoProto value(const std::string& name, int type, const Dims& dims) {
  onnx::ValueInfoProto info;
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  for (const int64_t d : dims)
    info.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(d);
  return info;
}

TEST(ModelAgreement, AttributesAreStoredAsTheOperatorReadsThem) {
  EXPECT_EQ(refusal(convolution().model()), "");
  const auto as = [](Stored::AttributeType type, const std::function<void(Stored&)>& fill) {
    return with_attribute([&](Stored& a) {
      a.clear_ints();
      a.set_type(type);
      fill(a);
    });
  };
  const std::string place = "node Conv_1 (Conv): attribute strides is ";
  EXPECT_EQ(as(Stored::FLOAT, [](Stored& a) { a.set_f(2); }), place + "a float, expected a list of integers");
  EXPECT_EQ(as(Stored::INT, [](Stored& a) { a.set_i(2); }),
            place + "an integer, expected a list of integers");
  EXPECT_EQ(as(Stored::STRING, [](Stored& a) { a.set_s("2"); }),
            place + "a string, expected a list of integers");
  EXPECT_EQ(as(Stored::FLOATS, [](Stored& a) { a.add_floats(2), a.add_floats(2); }),
            place + "a list of floats, expected a list of integers");
  EXPECT_EQ(as(Stored::STRINGS, [](Stored& a) { a.add_strings("2"); }),
            place + "a list of strings, expected a list of integers");
  EXPECT_THAT(as(Stored::UNDEFINED, [](Stored& a) { a.add_ints(2); }),
              HasSubstr(place + "of a type that is not known"));
  EXPECT_EQ(with_attribute([](Stored& a) { a.clear_ints(), a.add_floats(2); }),
            place.substr(0, place.size() - 3) + "is called a list of integers and holds a list of floats");
}

TEST(ModelAgreement, AnAttributeIsKnownAndStandsOnce) {
  ModelBuilder b = convolution();
  auto& node = *b.model().mutable_graph()->mutable_node(0);
  auto& more = *node.add_attribute();
  more.set_name("__note");
  more.set_type(Stored::STRING);
  more.set_s("of who made it");
  EXPECT_EQ(refusal(b.model()), "") << "names with two underscores are notes";
  more.set_name("stride");
  EXPECT_THAT(refusal(b.model()),
              HasSubstr("node Conv_1 (Conv): has no attribute stride; did you mean strides"));
  more = node.attribute(0);
  EXPECT_EQ(refusal(b.model()), "node Conv_1 (Conv): attribute kernel_shape stands twice");
}

TEST(ModelAgreement, TypesThatAreNumbersAreIntegers) {
  ModelBuilder b;
  b.output(b.add("Cast", {b.input("x", {2})}, {.integer = {{"to", onnx::TensorProto::INT64}}}));
  EXPECT_EQ(refusal(b.model()), "");
  auto& to = *b.model().mutable_graph()->mutable_node(0)->mutable_attribute(0);
  to.clear_i();
  to.set_type(Stored::STRING);
  to.set_s("int64");
  EXPECT_EQ(refusal(b.model()), "node Cast_0 (Cast): attribute to is a string, expected an integer");
  to.clear_s();
  to.set_type(Stored::INT);
  to.set_i((int64_t{1} << 32) + onnx::TensorProto::INT64);
  EXPECT_THAT(refusal(b.model()), HasSubstr("attribute to is 4294967303, which is no type"));
}

// Inputs, values between and outputs; with every type that ONNX has, and whatever the batch.
TEST(ModelAgreement, DeclaredTypesAreThoseThatOperatorsGive) {
  const std::string names[] = {"x", "between", "y"};
  for (const std::string& name : names)
    for (int type = onnx::TensorProto::FLOAT; type <= onnx::TensorProto::INT2; ++type) {
      if (name == "x" && type != onnx::TensorProto::FLOAT) continue;  // an input is of the type it says
      ModelBuilder b;
      b.input("x", {1, 4});
      b.add("Relu", {"x"});
      b.add("Neg", {"t0"});
      auto& graph = *b.model().mutable_graph();
      graph.mutable_node(0)->set_output(0, "between");
      graph.mutable_node(1)->set_input(0, "between");
      graph.mutable_node(1)->set_output(0, "y");
      b.output("y");
      (name == "y" ? *graph.mutable_output(0) : *graph.add_value_info()) = value(name, type, {1, 4});
      const std::string said = refusal(b.model());
      if (type == onnx::TensorProto::FLOAT) {
        EXPECT_EQ(said, "") << name;
        continue;
      }
      EXPECT_THAT(said, HasSubstr(str("\"", name, "\": found elements of type "))) << type;
      EXPECT_THAT(said, HasSubstr("in the model, expected float32, which follows from its inputs")) << type;
      const std::string bytes = b.bytes();
      EXPECT_THAT(read_model(bytes, nullptr, {.extents = {.batch = 3}}, interpret).message(),
                  HasSubstr("found elements of type"))
          << "with another batch extents say nothing, types do";
    }
}

TEST(ModelAgreement, InputsAreNoLargerThanAnythingCanBe) {
  ModelBuilder b;
  const int64_t most = int64_t{1} << 31;
  b.output(b.add("ReduceMax", {b.input("x", {most, most, most})}));
  EXPECT_THAT(refusal(b.model()),
              HasSubstr("input \"x\": float32[2147483648, 2147483648, 2147483648] is too large"));
}

TEST(ModelAgreement, NumbersOfExternalFilesAreBytesOfTheFile) {
  const std::unique_ptr<ScratchFolder> folder = *ScratchFolder::make("agreement");
  std::ofstream(folder->path() + "/w.bin") << std::string(216, 'x');
  const auto with = [&](const std::string& key, const std::string& number) {
    ModelBuilder b = convolution();  // 3 * 2 * 3 * 3 weights of 4 bytes
    auto& weights = *b.model().mutable_graph()->mutable_initializer(0);
    weights.mutable_external_data(0)->set_value("w.bin");
    auto& entry = *weights.add_external_data();
    entry.set_key(key);
    entry.set_value(number);
    return refusal(b.model(), folder->path());
  };
  EXPECT_EQ(with("offset", "0"), "");
  EXPECT_EQ(with("length", "216"), "");
  for (const char* key : {"offset", "length"})
    for (const char* number : {"9223372036854775808", "18446744073709551615", "99999999999999999999999", "-1",
                               "-0x1", "0x10", "1e3", " 1", "1 ", "", "+1"})
      EXPECT_EQ(with(key, number), str("initializer \"w0\": external ", key, ": found \"", number,
                                       "\", expected a number of bytes, 0 to 2^63 - 1"));
  for (const char* offset : {"1", "216", "9223372036854775807", "9223372036854775600"})
    EXPECT_THAT(with("offset", offset), HasSubstr("of w.bin, which has 216"));
  for (const char* length : {"0", "215", "217", "9223372036854775807"})
    EXPECT_THAT(with("length", length), HasSubstr("bytes outside, its shape 216"));
}

}  // namespace
}  // namespace tuner::testing
