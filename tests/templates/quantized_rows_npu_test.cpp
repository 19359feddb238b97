// quantized_softmax_npu and quantized_norm_npu: random configs, whose programs run on the simulator, against
// the oracle.
#include <gtest/gtest.h>

#include "tests/templates/npu_template_check.h"

namespace tuner {
namespace {

struct RowsCase {
  int64_t rows, columns;
  const char* dtype;
  double scale;  // of x: softmax; epsilon: norm
  int zero;
};

Workload made(const std::string& text) {
  const Result<Workload> w = program_from_text(text);
  EXPECT_TRUE(w.is_ok()) << w.message() << "\n" << text;
  return *w;
}
Workload softmax_of(const RowsCase& c) {
  return made(str("in=", c.dtype, "[", c.rows, ",", c.columns, "] com.microsoft.QLinearSoftmax(0,float32[](",
                  c.scale, "),", c.dtype, "[](3),float32[](0.00390625),", c.dtype, "[](", c.zero, "))"));
}
Workload norm_of(const RowsCase& c) {
  return made(str("in=", c.dtype, "[", c.rows, ",", c.columns, "],float32[", c.columns, "],float32[",
                  c.columns, "] tuner.QLinearLayerNormalization(0,1,2,", c.dtype, "[](", c.zero,
                  ")){epsilon=", c.scale, "f}"));
}

const std::vector<RowsCase>& cases() {
  static const std::vector<RowsCase> all = {
      {64, 100, "uint8", 0.125, 0},  {7, 33, "int8", 0.25, -128},  {130, 16, "uint8", 0.5, 3},
      {2, 1000, "uint8", 0.0625, 0}, {300, 17, "int8", 0.125, 5},  {33, 250, "uint8", 0.25, 128},
      {12, 2, "int8", 0.5, 0},       {5, 3000, "uint8", 0.125, 0}, {1100, 8, "uint8", 0.25, 1},
      {19, 48, "int8", 0.0625, 0},   {1, 1000, "uint8", 0.125, 0}, {1, 33, "int8", 0.25, -128}};
  return all;
}

int run(const AnyTemplate& t, Workload (*workload)(const RowsCase&), uint32_t seed, double factor = 1) {
  int ran = 0;
  for (const RowsCase& c : cases()) {
    ran += expect_configs_equal(t, workload(c), npu_target(), 20, seed++, factor);
    if (::testing::Test::HasFailure()) return ran;
  }
  return ran;
}

// A matrix of one row has one config.
TEST(QuantizedSoftmaxNpu, TwoHundredConfigs) {
  EXPECT_GE(run(quantized_softmax_npu(), softmax_of, 1100), 200);
}
TEST(QuantizedNormNpu, TwoHundredConfigs) { EXPECT_GE(run(quantized_norm_npu(), norm_of, 1200, 40), 200); }

TEST(QuantizedRowsNpu, OtherMachines) {
  int ran = 0;
  for (const char* name : {"npu -bank_bytes=8 -scratchpad=32KiB", "npu -lanes=4 -banks=2 -queue=2",
                           "npu -bank_bytes=32 -array=32x32"})
    for (const AnyTemplate* t : {&quantized_softmax_npu(), &quantized_norm_npu()}) {
      const RowsCase c{41, 77, "uint8", 0.125, 9};
      ran += expect_configs_equal(*t, t == &quantized_norm_npu() ? norm_of(c) : softmax_of(c),
                                  npu_target(name), 6, 13);
    }
  EXPECT_EQ(ran, 36);
}

TEST(QuantizedRowsNpu, DeclineOtherPrograms) {
  const Support support = quantized_softmax_npu().supports(made("in=float32[8] Relu(0)"), npu_target());
  EXPECT_EQ(support.reason, "serves programs of one com.microsoft.QLinearSoftmax");
  EXPECT_FALSE(quantized_norm_npu().supports(softmax_of(cases()[0]), npu_target()).yes);
  const Workload given =
      made("in=uint8[4,8],float32[] com.microsoft.QLinearSoftmax(0,float32[](0.5),uint8[](3),1,uint8[](0))");
  EXPECT_EQ(quantized_softmax_npu().supports(given, npu_target()).reason,
            "needs scales and zero points written out");
}

}  // namespace
}  // namespace tuner
