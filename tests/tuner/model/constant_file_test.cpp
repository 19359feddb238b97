// Values of inputs that are the same in every run, from files as NumPy and ONNX write them. Headers of .npy
// stand here as NumPy prints them.
#include "tuner/model/constant_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/damaged_text.h"
#include "tests/support/temporary_folder.h"
#include "tuner/model/onnx.pb.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What numpy.save() writes: a header of 128 bytes, then the elements.
std::string npy(const std::string& type, const std::string& shape, const std::string& elements,
                const std::string& fortran = "False") {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + elements;
}
template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

class ConstantFile : public ::testing::Test {
 protected:
  Result<graph::Value> read(const std::string& file, const std::string& bytes) const {
    std::ofstream(folder_.file(file), std::ios::binary) << bytes;
    const std::string option = "x=" + folder_.file(file);
    ASSIGN_OR_RETURN(const auto values, model_constants({&option, 1}));
    return values.at("x");
  }
  std::string refusal(const std::string& bytes) const {
    const std::string message = read("x.npy", bytes).message();
    EXPECT_TRUE(testing::one_line(message)) << message;
    return message;
  }
  const TemporaryFolder folder_;
};

TEST_F(ConstantFile, NumpysTypesAreOurs) {
  const auto floats = read("x.npy", npy("<f4", "(2, 2)", bytes_of<float>({1, -2, 0.5F, 4})));
  ASSERT_TRUE(floats.is_ok()) << floats.message();
  EXPECT_EQ(to_text(floats->type), "float32[2, 2]");
  EXPECT_THAT(floats->constant->numbers(DType::kFloat32), ElementsAre(1, -2, 0.5, 4));
  const auto words = read("x.npy", npy("<i8", "(3,)", bytes_of<int64_t>({-1, 1LL << 40, 7})));
  ASSERT_TRUE(words.is_ok()) << words.message();
  EXPECT_EQ(to_text(words->type), "int64[3]");
  EXPECT_THAT(words->constant->integers(DType::kInt64), ElementsAre(-1, 1LL << 40, 7));
  const auto scalar = read("x.npy", npy("|b1", "()", std::string(1, '\x01')));
  ASSERT_TRUE(scalar.is_ok()) << scalar.message();
  EXPECT_EQ(to_text(scalar->type), "bool[]");
  const std::pair<const char*, DType> others[] = {
      {"|i1", DType::kInt8},   {"|u1", DType::kUInt8},   {"<i2", DType::kInt16},
      {"<u2", DType::kUInt16}, {"<i4", DType::kInt32},   {"<u4", DType::kUInt32},
      {"<u8", DType::kUInt64}, {"<f2", DType::kFloat16}, {"<f8", DType::kFloat64}};
  for (const auto& [type, dtype] : others) {
    const auto one =
        read("x.npy", npy(type, "(1,)", std::string(static_cast<size_t>(dtype_bytes(dtype)), '\x01')));
    ASSERT_TRUE(one.is_ok()) << one.message();
    EXPECT_EQ(one->type.dtype, dtype) << type;
  }
}

// A file that is written again while the model is tuned changes nothing.
TEST_F(ConstantFile, TheValueHasMemoryOfItsOwn) {
  const auto value = read("x.npy", npy("<f4", "(1,)", bytes_of<float>({3})));
  ASSERT_TRUE(value.is_ok()) << value.message();
  std::ofstream(folder_.file("x.npy"), std::ios::binary | std::ios::trunc) << "gone";
  EXPECT_THAT(value->constant->numbers(DType::kFloat32), ElementsAre(3));
}

TEST_F(ConstantFile, TensorsOfOnnxAreTakenToo) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(2);
  tensor.add_int64_data(5);
  tensor.add_int64_data(-6);
  const auto value = read("x.pb", tensor.SerializeAsString());
  ASSERT_TRUE(value.is_ok()) << value.message();
  EXPECT_THAT(value->constant->integers(DType::kInt64), ElementsAre(5, -6));
}

TEST_F(ConstantFile, ATensorMayHaveNoElements) {
  const auto value = read("x.npy", npy("<f4", "(2, 0)", ""));
  ASSERT_TRUE(value.is_ok()) << value.message();
  EXPECT_THAT(value->type.shape, ElementsAre(2, 0));
  EXPECT_TRUE(value->constant->bytes().empty());
  EXPECT_THAT(refusal(npy("<f4", "(2, 0)", "1234")), HasSubstr("has 4 bytes of elements, expected 0"));
}

TEST_F(ConstantFile, WhatIsNoTensorIsRefusedInOneLine) {
  const std::string four = bytes_of<float>({1, 2, 3, 4});
  EXPECT_THAT(refusal("a line of text\n"), HasSubstr("x.npy: is no .npy file, or a damaged one"));
  EXPECT_THAT(refusal(npy("<f4", "(4,)", four.substr(1))),
              HasSubstr("x.npy: has 15 bytes of elements, expected 16 for float32[4]"));
  EXPECT_THAT(refusal(npy("<f4", "(3,)", four)), HasSubstr("has 16 bytes of elements, expected 12"));
  EXPECT_THAT(refusal(npy(">f4", "(4,)", four)), HasSubstr("has big-endian elements (>f4), expected <f4"));
  EXPECT_THAT(refusal(npy("<f4", "(2, 2)", four, "True")), HasSubstr("is in Fortran order"));
  EXPECT_THAT(refusal(npy("<c8", "(2,)", four)),
              HasSubstr("has elements of type <c8, expected one of |b1, |i1, |u1, <i2, <u2, <i4"));
  EXPECT_THAT(refusal(npy("<f4", "(3037000500, 3037000500)", four)), HasSubstr("more than 2^40 bytes"));
  EXPECT_THAT(read("x.pb", "a line of text\n").message(), HasSubstr("x.pb: this is no tensor of ONNX"));
}

TEST_F(ConstantFile, EachIsGivenOnceAsNameAndFile) {
  std::ofstream(folder_.file("x.npy"), std::ios::binary) << npy("|i1", "(1,)", "a");
  const std::string option = "x=" + folder_.file("x.npy");
  const std::string twice[] = {option, option};
  EXPECT_EQ(model_constants(twice).message(), "--constant x: found twice, expected once");
  const std::string nothing = "x";
  EXPECT_EQ(model_constants({&nothing, 1}).message(),
            "--constant: expected NAME=FILE, as mask=mask.npy, found \"x\"");
}

}  // namespace
}  // namespace tuner
