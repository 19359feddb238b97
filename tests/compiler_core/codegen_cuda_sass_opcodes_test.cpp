// The table of opcodes says what it must: of snippets whose content is known, on sm_80 and sm_90a.
#include "compiler_core/codegen_cuda/sass/opcodes.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler_core/codegen_cuda/cuda.h"
#include "tests/compiler_core/sass_snippets.h"

namespace tuner::testing {
namespace {

constexpr const char* kArchs[] = {"sm_80", "sm_90a"};
constexpr int kFew = 4, kMany = 8;

class CodegenCudaSassOpcodes : public ::testing::Test {
  void SetUp() override {
    if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message();
  }
};

// ptxas may make one instruction of two copies (a store of 64 bits of two of 32), so that half as many are enough.
TEST_F(CodegenCudaSassOpcodes, EachConstructGrowsWithItsCopiesAndEachOpcodeIsOfOne) {
  std::set<int> seen;
  for (const char* arch : kArchs)
    for (const SassSnippet& snippet : sass_snippets()) {
      SCOPED_TRACE(snippet.name + " on " + arch);
      const Result<sass::KernelCode> few = compile_snippet(snippet, kFew, arch);
      const Result<sass::KernelCode> many = compile_snippet(snippet, kMany, arch);
      ASSERT_TRUE(few.is_ok() && many.is_ok()) << few.message() << many.message();
      EXPECT_GE(many->mix[snippet.op] - few->mix[snippet.op], (kMany - kFew) / 2);
      for (const int opcode : many->unknown) ADD_FAILURE() << std::hex << opcode << " is unknown";
      for (const sass::Instruction& i : many->instructions) seen.insert(i.opcode() & 0x1ff);
    }
  // Seen in kernels of the templates only, where nothing says that they must be there.
  const std::set<std::string_view> not_proved = {"R2UR", "ULOP3", "UPRMT"};
  for (const sass::Opcode& opcode : sass::opcodes())
    EXPECT_TRUE(opcode.op == sass::Op::kNop || not_proved.contains(opcode.name) || seen.contains(opcode.base))
        << opcode.name;
}

TEST(CodegenCudaSassTable, IsSortedAndNamesEachOnce) {
  std::set<std::string_view> names;
  int before = -1;
  for (const sass::Opcode& opcode : sass::opcodes()) {
    EXPECT_GT(opcode.base, before) << opcode.name;
    EXPECT_TRUE(names.insert(opcode.name).second) << opcode.name;
    before = opcode.base;
  }
  EXPECT_EQ(sass::find_opcode(0xa23)->name, "FFMA");  // a constant as second operand
  EXPECT_EQ(sass::find_opcode(0x7fe), nullptr);
}

}  // namespace
}  // namespace tuner::testing
