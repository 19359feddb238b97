// Inputs of the check: drawn by what the model does with them, or taken from files; and NAME=FILE where names
// and files hold a `=`.
#include "tuner/compile/check_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "compiler_core/base/elements.h"
#include "tests/compiler_core/graph_writer.h"
#include "tests/support/temporary_folder.h"
#include "tuner/model/named_file.h"

namespace tuner {
namespace {

using graph::GraphBuilder;
using graph::ValueId;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

// tokens and mask are int64[1, 500]; the table has 30 rows.
graph::Graph model() {
  GraphBuilder b("test", interpret);
  const ValueId table = b.constant("table", {DType::kFloat32, {30, 2}},
                                   graph::Constant::of(std::vector<double>(60, 1), DType::kFloat32));
  const ValueId tokens = b.input("tokens", {DType::kInt64, {1, 500}});
  const ValueId mask = b.input("mask", {DType::kInt64, {1, 500}});
  b.input("image", {DType::kUInt8, {500}});
  const auto row =
      b.add({.name = "r",
             .op = "Reshape",
             .inputs = {tokens, b.constant("s", {DType::kInt64, {1}},
                                           graph::Constant::of(std::vector<int64_t>{500}, DType::kInt64))}},
            {"row"});
  const auto found = b.add({.name = "g", .op = "Gather", .inputs = {table, row->front()}}, {"found"});
  const auto cast =
      b.add({.name = "c", .op = "Cast", .attributes = {{"to", std::string("float32")}}, .inputs = {mask}},
            {"cast"});
  return b.finish({found->front(), cast->front()});
}
std::vector<double> numbers(const graph::Graph& graph, const std::vector<AlignedBuffer>& inputs, size_t k) {
  const graph::TensorType& type = graph[graph.inputs[k]].type;
  return load_elements(inputs[k].data(), type.elements(), type.dtype);
}

TEST(CheckInputs, IntegersAreDrawnByWhatUsesThem) {
  const graph::Graph graph = model();
  const auto inputs = check_inputs(graph, {});
  ASSERT_TRUE(inputs.is_ok()) << inputs.message();
  const std::vector<double> tokens = numbers(graph, *inputs, 0), mask = numbers(graph, *inputs, 1),
                            image = numbers(graph, *inputs, 2);
  EXPECT_THAT(tokens, Each(AllOf(Ge(0), Le(29))));
  EXPECT_EQ(*std::ranges::max_element(tokens), 29) << "all places are drawn";
  EXPECT_THAT(mask, Each(AllOf(Ge(0), Le(1))));
  EXPECT_NE(*std::ranges::max_element(mask), *std::ranges::min_element(mask));
  EXPECT_GT(*std::ranges::max_element(image), 200);
}

TEST(CheckInputs, AFileIsTakenAsItIs) {
  const TemporaryFolder folder;
  const std::string path = folder.file("image.raw");
  std::ofstream(path, std::ios::binary) << std::string(500, '\x07');
  const graph::Graph graph = model();
  const auto inputs = check_inputs(graph, {{"image", path}});
  ASSERT_TRUE(inputs.is_ok()) << inputs.message();
  EXPECT_THAT(numbers(graph, *inputs, 2), Each(7));
  EXPECT_THAT(check_inputs(graph, {{"mask", path}}).message(), HasSubstr("--check-input mask: "));
  EXPECT_THAT(check_inputs(graph, {{"imag", path}}).message(),
              HasSubstr("--check-input imag: the model has no input of that name"));
}

TEST(NamedFile, IsCutBehindTheNameOfATensor) {
  const auto cut = [](const std::string& word, const std::vector<std::string>& names) {
    const auto found = named_file(word, "--input", names);
    return found ? found->name + " | " + found->file : found.message();
  };
  EXPECT_EQ(cut("x=y.npy", {"x"}), "x | y.npy");
  EXPECT_EQ(cut("a=b=y.npy", {"a=b"}), "a=b | y.npy");
  EXPECT_EQ(cut("a=b=y.npy", {"a"}), "a | b=y.npy");
  EXPECT_EQ(cut("a=b=y.npy", {"a", "a=b"}), "a=b | y.npy");
  EXPECT_EQ(cut("c=d=y.npy", {}), "c=d | y.npy");
  for (const char* word : {"x", "=y", "x="})
    EXPECT_EQ(cut(word, {"x"}), str("--input: expected NAME=FILE, found \"", word, "\""));
}

TEST(NamedFile, IsCutWhereAFileStandsIfNoNameIsKnown) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a=b.pb");
  std::ofstream(path) << "x";
  const auto found = named_existing_file("n=m=" + path, "--constant");
  ASSERT_TRUE(found.is_ok()) << found.message();
  EXPECT_EQ(found->name, "n=m");
  EXPECT_EQ(found->file, path);
}

}  // namespace
}  // namespace tuner
