// quantized_add_npu: random configs, whose programs run on the simulator, against the oracle.
#include <gtest/gtest.h>

#include "tests/templates/npu_template_check.h"

namespace tuner {
namespace {

struct AddCase {
  int64_t elements;
  const char* dtype;
  double scale_a, scale_b, scale;
  int zero_a, zero_b, zero;
};

Workload sum_of(const AddCase& c) {
  const auto scalar = [](double x) { return str("float32[](", x, ")"); };
  const auto zero = [&](int x) { return str(c.dtype, "[](", x, ")"); };
  const std::string in = str(c.dtype, "[", c.elements, "]");
  const std::string text =
      str("in=", in, ",", in, " com.microsoft.QLinearAdd(0,", scalar(c.scale_a), ",", zero(c.zero_a), ",1,",
          scalar(c.scale_b), ",", zero(c.zero_b), ",", scalar(c.scale), ",", zero(c.zero), ")");
  const Result<Workload> made = program_from_text(text);
  EXPECT_TRUE(made.is_ok()) << made.message() << "\n" << text;
  return *made;
}

TEST(QuantizedAddNpu, TwoHundredConfigsOfOddSizes) {
  const AddCase cases[] = {
      {1000, "uint8", 0.02, 0.03, 0.05, 0, 0, 0},    {17, "uint8", 0.5, 0.25, 0.5, 3, 200, 17},
      {12345, "int8", 0.011, 0.07, 0.05, -3, 5, 9},  {2, "uint8", 1, 1, 2, 0, 0, 0},
      {70001, "uint8", 0.3, 0.1, 0.7, 128, 127, 0},  {4096, "int8", 0.5, 0.5, 0.5, 0, 0, 0},
      {8193, "int8", 0.25, 0.125, 0.5, 0, -128, 3},  {30000, "uint8", 0.004, 2, 1.5, 255, 0, 255},
      {33, "int8", 0.01, 0.02, 0.001, 127, -128, 0}, {65552, "uint8", 0.1, 0.1, 0.1, 0, 64, 32}};
  int ran = 0;
  uint32_t n = 0;
  for (const AddCase& c : cases) {
    ran += expect_configs_equal(quantized_add_npu(), sum_of(c), npu_target(), 20, 900 + n++);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(ran, 200);
}

TEST(QuantizedAddNpu, OtherMachines) {
  int ran = 0;
  for (const char* name : {"npu -bank_bytes=8 -scratchpad=32KiB", "npu -lanes=4 -banks=2 -queue=2",
                           "npu -bank_bytes=32 -array=32x32"})
    ran += expect_configs_equal(quantized_add_npu(), sum_of({5003, "uint8", 0.2, 0.3, 0.4, 1, 2, 3}),
                                npu_target(name), 6, 11);
  EXPECT_EQ(ran, 18);
}

TEST(QuantizedAddNpu, DeclinesOtherPrograms) {
  const Target t = npu_target();
  const auto why = [&](const std::string& text) {
    const Result<Workload> w = program_from_text(text);
    EXPECT_TRUE(w.is_ok()) << w.message();
    const Support support = quantized_add_npu().supports(*w, t);
    EXPECT_FALSE(support.yes);
    return support.reason;
  };
  EXPECT_EQ(why("in=float32[8] Relu(0)"), "serves programs of one com.microsoft.QLinearAdd");
  EXPECT_EQ(why("in=uint8[2,3],uint8[2,3] com.microsoft.QLinearAdd(0,float32[](0.5),uint8[](0),1,"
                "float32[](0.5),uint8[](0),float32[](0.5),uint8[](0))"),
            "needs two inputs of one dimension and equal extents, and all else written out");
}

}  // namespace
}  // namespace tuner
