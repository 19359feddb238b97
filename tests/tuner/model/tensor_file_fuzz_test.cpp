// Tensors of files, cut and changed anywhere: each is read or refused in one line.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/damaged_text.h"
#include "tests/support/temporary_folder.h"
#include "tuner/model/constant_file.h"
#include "tuner/model/onnx.pb.h"
#include "tuner/model/read_model.h"
#include "tuner/model/tensor_file.h"

namespace tuner {
namespace {

tuner_arg tensor(const char* dtype, int64_t rows, int64_t columns) {
  tuner_arg out{
      .name = "t", .role = "input", .dtype = dtype, .layout = "", .rank = 2, .shape = {}, .bytes = 0};
  out.shape[0] = rows;
  out.shape[1] = columns;
  out.bytes = rows * columns * dtype_bytes(*dtype_from_name(dtype));
  return out;
}

// As a new file: file systems may write one to the disk that replaces the content of another, which takes
// milliseconds.
void write_anew(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

// True if it was read; what is refused is told in one line.
bool read_or_refused(const std::string& path, const tuner_arg& described) {
  const auto read = read_tensor_file(path, described);
  if (read.is_ok()) return true;
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << read.message();
  EXPECT_TRUE(testing::one_line(read.message())) << read.message();
  EXPECT_LT(read.message().size(), 1000u);
  return false;
}

// The same for a file whose type nobody knows.
bool constant_or_refused(const std::string& path) {
  const std::string option = "t=" + path;
  const auto read = model_constants({&option, 1});
  if (read.is_ok()) {
    const graph::Value& value = read->at("t");
    EXPECT_TRUE(graph::check_size(value.type).is_ok()) << to_text(value.type);
    EXPECT_EQ(std::ssize(value.constant->bytes()), value.type.bytes());
    return true;
  }
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << read.message();
  EXPECT_TRUE(testing::one_line(read.message())) << read.message();
  EXPECT_LT(read.message().size(), 1000u);
  return false;
}

TEST(TensorFileFuzz, NpyIsReadOrRefusedInOneLine) {
  constexpr std::string_view kPieces[] = {
      "'descr': ", "'<f4'", "'fortran_order': ",     "True",      "'shape': ", "(3, 5)",
      "(",         ")",     "(9223372036854775807,", "\x93NUMPY", "\x01",      std::string_view("\0", 1),
      "'",         "-1, "};
  const TemporaryFolder folder;
  const std::string path = folder.file("t.npy");
  const tuner_arg floats = tensor("float32", 3, 5), bytes = tensor("uint8", 1, 7);
  const std::vector<std::string> good = {npy_bytes(floats, random_tensor(floats, 1).data()),
                                         npy_bytes(bytes, random_tensor(bytes, 1).data())};
  const int read = testing::check_damaged(good, kPieces, 31, [&](const std::string& text) {
    write_anew(path, text);
    const bool one = read_or_refused(path, floats), other = read_or_refused(path, bytes);
    EXPECT_FALSE(one && other) << "of two types at once";
    EXPECT_TRUE(constant_or_refused(path) || !(one || other)) << "a tensor, but no constant";
    return one || other;
  });
  EXPECT_GT(read, testing::kDamagedRounds / 10);
  EXPECT_LT(read, testing::kDamagedRounds * 9 / 10);
  for (const std::string& whole : good)
    for (size_t size = 0; size < whole.size(); ++size) {  // cut anywhere
      write_anew(path, whole.substr(0, size));
      EXPECT_FALSE(read_or_refused(path, floats) || read_or_refused(path, bytes)) << size;
      EXPECT_FALSE(constant_or_refused(path)) << size;
    }
}

std::vector<std::string> protos() {
  onnx::TensorProto raw, floats, integers, words, outside;
  for (onnx::TensorProto* t : {&raw, &floats, &integers, &words, &outside}) {
    t->set_name("t");
    t->set_data_type(onnx::TensorProto::FLOAT);
    t->add_dims(3);
    t->add_dims(5);
  }
  raw.set_raw_data(std::string(60, 'x'));
  integers.set_data_type(onnx::TensorProto::INT64);
  for (int i = 0; i < 15; ++i) {
    floats.add_float_data(static_cast<float>(i));
    integers.add_int64_data(i - 7);
    *words.mutable_unknown_fields() += "\x32\x04word";  // string_data
  }
  words.set_data_type(onnx::TensorProto::STRING);
  outside.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& where = *outside.add_external_data();
  where.set_key("location");
  where.set_value("/etc/passwd");
  std::vector<std::string> out;
  for (const onnx::TensorProto* t : {&raw, &floats, &integers, &words, &outside})
    out.push_back(t->SerializeAsString());
  return out;
}

TEST(TensorFileFuzz, TensorsOfOnnxAreReadOrRefusedInOneLine) {
  constexpr std::string_view kPieces[] = {std::string_view("\x08\x00", 2),
                                          "\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                                          "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                          "\x10\x01",
                                          "\x10\x07",
                                          "\x10\x0a",
                                          "\x4a\x04yyyy",
                                          "\x4a\x7f",
                                          "\x22\x04zzzz",
                                          "\x0a"};
  const TemporaryFolder folder;
  const std::string path = folder.file("t.pb");
  const tuner_arg described = tensor("float32", 3, 5);
  const std::vector<std::string> good = protos();
  const int read = testing::check_damaged(good, kPieces, 32, [&](const std::string& text) {
    const auto value = read_tensor(text);
    write_anew(path, text);
    read_or_refused(path, described);
    if (value.is_ok()) {
      EXPECT_EQ(std::ssize(value->constant->bytes()), value->type.bytes());
      return true;
    }
    EXPECT_EQ(value.status().code(), StatusCode::kInvalidArgument) << value.message();
    EXPECT_TRUE(testing::one_line(value.message())) << value.message();
    return false;
  });
  EXPECT_GT(read, testing::kDamagedRounds / 20);
  EXPECT_LT(read, testing::kDamagedRounds * 9 / 10);
}

}  // namespace
}  // namespace tuner
