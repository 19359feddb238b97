// The table of opcodes says what it must: of snippets whose content is known, on sm_80 and sm_90a.
#include "compiler_core/codegen_cuda/sass/opcodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

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

// ptxas may make one instruction of two copies (a store of 64 bits of two of 32), so that half as many are
// enough.
TEST_F(CodegenCudaSassOpcodes, EachConstructGrowsWithItsCopiesAndEachOpcodeIsOfOne) {
  std::set<int> seen;
  for (const char* arch : kArchs)
    for (const SassSnippet& snippet : sass_snippets(arch)) {
      SCOPED_TRACE(snippet.name + " on " + arch);
      const Result<sass::KernelCode> few = compile_snippet(snippet, kFew, arch);
      const Result<sass::KernelCode> many = compile_snippet(snippet, kMany, arch);
      ASSERT_TRUE(few.is_ok() && many.is_ok()) << few.message() << many.message();
      EXPECT_GE(many->mix[snippet.op] - few->mix[snippet.op], (kMany - kFew) / 2);
      for (const int opcode : many->unknown) ADD_FAILURE() << std::hex << opcode << " is unknown";
      for (const sass::Instruction& i : many->instructions) seen.insert(i.opcode() & 0x1ff);
    }
  for (const SassCrowd& crowd : sass_crowds()) seen.insert(crowd.opcode);  // the test below
  // Seen in kernels of the templates only, where nothing says that they must be there.
  const std::set<std::string_view> not_proved = {"ELECT", "R2UR", "ULOP3", "UPLOP3", "UPRMT"};
  for (const sass::Opcode& opcode : sass::opcodes())
    EXPECT_TRUE(opcode.op == sass::Op::kNop || not_proved.contains(opcode.name) || seen.contains(opcode.base))
        << opcode.name;
}

TEST_F(CodegenCudaSassOpcodes, SomeComeOnlyOfManyValuesAtOnceOneForEach) {
  for (const SassCrowd& crowd : sass_crowds()) {
    SCOPED_TRACE(crowd.name);
    const auto count = [&](int values) {
      const SassSnippet snippet{crowd.name, sass::Op::kOther,
                                replaced(crowd.text, "$count", std::to_string(values))};
      const Result<sass::KernelCode> code = compile_snippet(snippet, 1, crowd.arch);
      EXPECT_TRUE(code.is_ok()) << code.message();
      if (!code.is_ok()) return std::ptrdiff_t{0};
      EXPECT_TRUE(code->unknown.empty());
      return std::ranges::count_if(code->instructions, [&](const sass::Instruction& i) {
        return (i.opcode() & 0x1ff) == crowd.opcode;
      });
    };
    EXPECT_EQ(count(crowd.many) - count(crowd.few), crowd.many - crowd.few);
  }
}

// The mnemonics of a listing by their addresses: "/*0010*/ @!P0 BRA `(.L_1) ;" gives 0x10, "BRA". Without
// what follows the first dot.
std::map<int, std::string> mnemonics(const std::string& listing) {
  static const std::regex kLine(R"(/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*))");
  std::map<int, std::string> found;
  for (std::sregex_iterator at(listing.begin(), listing.end(), kLine), end; at != end; ++at)
    found[std::stoi((*at)[1], nullptr, 16)] = (*at)[2];
  return found;
}

TEST(CodegenCudaSassTable, ListingsAreReadByAddress) {
  const auto found = mnemonics(
      "        /*0000*/                   MOV R1, c[0x0][0x28] ;          /* 0x00000a00ff017624 */\n"
      "        /*0010*/              @!P0 BRA `(.L_x_1) ;\n        /*0020*/ @UP0 UIADD3.X UR4, UR4, 0x1, URZ "
      ";\n");
  EXPECT_EQ(found, (std::map<int, std::string>{{0, "MOV"}, {16, "BRA"}, {32, "UIADD3"}}));
}

// Where the vendor's disassembler is, it calls every instruction as the table does.
TEST_F(CodegenCudaSassOpcodes, AgreesWithNvdisasmWhereThatIs) {
  if (std::system("nvdisasm --version > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no nvdisasm in PATH: the table rests on the snippets alone";
  for (const char* arch : kArchs)
    for (const SassSnippet& snippet : sass_snippets(arch)) {
      SCOPED_TRACE(snippet.name + " on " + arch);
      const auto compiled = cuda::compile_source(sass_snippet_source(snippet, kFew), "snippet.cu",
                                                 {std::string("--gpu-architecture=") + arch, "--std=c++17"});
      ASSERT_TRUE(compiled.is_ok()) << compiled.message();
      const std::string file = ::testing::TempDir() + "snippet.cubin", list = file + ".txt";
      std::ofstream(file, std::ios::binary) << compiled->cubin;
      ASSERT_EQ(std::system(str("nvdisasm -c ", file, " > ", list).c_str()), 0);
      std::stringstream listing;
      listing << std::ifstream(list).rdbuf();
      const auto codes = sass::read_kernel_code(compiled->cubin);
      ASSERT_TRUE(codes.is_ok()) << codes.message();
      ASSERT_EQ(codes->size(), 1u);
      for (const auto& [address, mnemonic] : mnemonics(listing.str())) {
        const auto at = static_cast<size_t>(address / 16);
        if (at >= codes->front().instructions.size()) continue;  // filler
        const sass::Opcode* opcode = sass::find_opcode(codes->front().instructions[at].opcode());
        ASSERT_NE(opcode, nullptr) << mnemonic;
        EXPECT_EQ(opcode->name.substr(0, opcode->name.find('.')), mnemonic) << std::hex << address;
      }
    }
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

// Kinds of what a verdict rests on, by the vendor's names; the last three bits of an opcode say where
// operands come from.
TEST(CodegenCudaSassTable, KindsAreThoseOfTheNames) {
  using sass::Op;
  const std::map<std::string_view, Op> kinds = {
      {"FFMA", Op::kFfma},      {"HMMA", Op::kMma},      {"IMMA", Op::kMma},        {"HGMMA", Op::kMma},
      {"IDP", Op::kDot},        {"LDSM", Op::kLdsm},     {"LDS", Op::kLds32},       {"STS", Op::kSts32},
      {"LDG", Op::kLdg32},      {"STG", Op::kStg},       {"LDGSTS", Op::kLdgsts},   {"LDL", Op::kLocalLoad},
      {"STL", Op::kLocalStore}, {"BAR", Op::kBarrier},   {"SHFL", Op::kShuffle},    {"BRA", Op::kBranch},
      {"NOP", Op::kNop},        {"IADD3", Op::kInteger}, {"ISETP", Op::kPredicate}, {"MOV", Op::kMove}};
  size_t found = 0;
  for (const sass::Opcode& opcode : sass::opcodes()) {
    const auto kind = kinds.find(opcode.name);
    if (kind == kinds.end()) continue;
    EXPECT_EQ(opcode.op, kind->second) << opcode.name;
    ++found;
  }
  EXPECT_EQ(found, kinds.size());
}

}  // namespace
}  // namespace tuner::testing
