// What of a CUDA kernel's PTX is refused before it runs, and what is not. Texts are as NVRTC 13 writes them.
#include "tuner/judge/ptx_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/base/status.h"
#include "tuner/judge/ptx_text.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

// k(const float* x, float* y, long n): a body, and what stands in front of the kernel.
std::string module_with(const std::string& body, const std::string& front = "") {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + front +
         R"(
.visible .entry k(
	.param .u64 k_param_0,
	.param .u64 k_param_1,
	.param .u64 k_param_2
)
.maxntid 128, 1, 1
{
	.reg .pred 	%p<4>;
	.reg .f32 	%f<9>;
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<9>;
	// demoted variable
	.shared .align 4 .b8 tile[4224];

	ld.param.u64 	%rd1, [k_param_0];
	ld.param.u64 	%rd2, [k_param_1];
	cvta.to.global.u64 	%rd3, %rd1;
	mov.u32 	%r1, %tid.x;
	setp.lt.s32 	%p1, %r1, 32;
	@!%p1 bra 	$L__BB0_2;
$L__BB0_1:
	.pragma "nounroll";
)" + body +
         R"(
$L__BB0_2:
	ret;
}
)";
}
std::string refusal(const std::string& body, const std::string& front = "") {
  return why_ptx_is_refused(module_with(body, front), {.kernel = "k", .is_buffer = {true, true, false}});
}

TEST(PtxCheck, WhatComputesIsRead) {
  EXPECT_EQ(refusal(R"(	mul.wide.s32 %rd4, %r1, 4;
	add.s64 %rd5, %rd3, %rd4;
	ld.global.nc.v2.f32 {%f1, %f2}, [%rd5+16];
	fma.rn.f32 %f3, %f1, 0f40400000, %f2;
	mov.u64 %rd6, tile;
	st.shared.f32 [%rd6], %f3;
	bar.sync 0;
	st.global.f32 [%rd2], %f3;)"),
            "");
}

TEST(PtxCheck, InstructionsThatAreNotListedAreNamed) {
  for (const char* body :
       {"trap;", "brkpt;", "nanosleep.u32 20;", "discard.global.L2 [%rd3], 128;", "exit; pmevent 1;",
        "{ .reg .b32 t; /* ; */ nanosleep.u32 t; }", "@%p1 griddepcontrol.launch_dependents;",
        "applypriority.global.L2::evict_normal [%rd3], 128;",
        "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5}];"})
    EXPECT_THAT(refusal(body), HasSubstr("it has the instruction")) << body;
}

TEST(PtxCheck, ClocksAndTheNumberOfALaunchAreNotRead) {
  for (const char* name : {"%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo", "%gridid",
                           "%smid", "%nsmid", "%pm0_64", "%envreg3"})
    EXPECT_THAT(refusal(str("mov.u64 %rd4, ", name, ";")), HasSubstr("when, where or in which launch"))
        << name;
  EXPECT_EQ(refusal("mov.u32 %r2, %laneid; mov.u32 %r3, %nctaid.z; mov.u32 %r4, %lanemask_lt;"), "");
}

TEST(PtxCheck, AVariableOfTheModuleMayBeReadAndNotWritten) {
  const std::string table = ".global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};";
  const std::string address = "mov.u64 %rd4, table; cvta.global.u64 %rd5, %rd4; add.s64 %rd6, %rd5, 4;";
  EXPECT_EQ(refusal(address + "ld.f32 %f1, [%rd6]; ld.global.f32 %f2, [table+4];", table), "");
  for (const char* write :
       {"st.f32 [%rd6], %f1;", "st.global.f32 [table], %f1;", "atom.add.u32 %r2, [%rd6], 1;",
        "red.global.add.u32 [%rd5], 1;", "cp.async.bulk.global.shared::cta.bulk_group [%rd6], [tile], 16;"})
    EXPECT_THAT(refusal(address + write, table), HasSubstr("writes to a variable of its module")) << write;
}

TEST(PtxCheck, AnAddressOfAVariableGoesNowhere) {
  const std::string variable = ".visible .global .align 4 .u32 calls;";
  EXPECT_THAT(refusal("mov.u64 %rd4, calls; st.shared.u64 [tile], %rd4;", variable),
              HasSubstr("keeps the address"));
  // Through halves, a selection, an exclusive or.
  EXPECT_THAT(refusal("mov.u64 %rd4, calls; mov.b64 {%r2, %r3}, %rd4; mov.b64 %rd5, {%r2, %r3};"
                      "selp.b64 %rd6, %rd5, %rd2, %p1; xor.b64 %rd7, %rd6, 0; st.global.u32 [%rd7], %r1;",
                      variable),
              HasSubstr("writes to a variable of its module"));
  // What becomes known late in the text counts above, too: there are loops.
  EXPECT_THAT(refusal("st.global.u32 [%rd5], %r1; mov.u64 %rd5, %rd4; mov.u64 %rd4, calls;", variable),
              HasSubstr("until the next launch: calls"));
  EXPECT_THAT(refusal("ret;", ".global .align 8 .u64 p = generic(calls);"),
              HasSubstr("begins as an address"));
  EXPECT_THAT(refusal("ret;", ".extern .global .align 4 .u32 other;"), HasSubstr("a variable of other code"));
  EXPECT_THAT(refusal("ret;", ".global .attribute(.managed) .align 4 .u32 other;"), HasSubstr(".attribute"));
}

TEST(PtxCheck, AddressesComeFromBuffers) {
  EXPECT_THAT(refusal("mov.u64 %rd4, 139637976727552; ld.global.f32 %f1, [%rd4];"),
              HasSubstr("it reads memory at an address"));
  EXPECT_THAT(refusal("ld.f32 %f1, [139637976727552];"), HasSubstr("it reads memory"));
  EXPECT_THAT(refusal("ld.param.u64 %rd4, [k_param_2]; st.global.u32 [%rd4], %r1;"),
              HasSubstr("it writes memory"))
      << "a number is no buffer";
  EXPECT_THAT(refusal("ld.global.u64 %rd4, [%rd3]; ld.global.f32 %f1, [%rd4];"), HasSubstr("it reads memory"))
      << "nor is what lies in one";
  EXPECT_EQ(refusal("ld.param.u64 %rd4, [k_param_2]; add.s64 %rd5, %rd3, %rd4; st.global.u32 [%rd5], %r1;"),
            "");
  EXPECT_EQ(refusal("st.local.u64 [tile], %rd3; ld.local.u64 %rd4, [tile]; ld.global.f32 %f1, [%rd4];"), "");
}

TEST(PtxCheck, OnlyFunctionsOfItsOwnAreCalled) {
  const std::string own =
      ".func (.param .b32 func_retval0) f(.param .b64 f_param_0)\n{\n.reg .b64 %rd<3>; .reg .f32 %f<2>;\n"
      "ld.param.u64 %rd1, [f_param_0]; ld.f32 %f1, [%rd1]; st.param.f32 [func_retval0+0], %f1; ret;\n}\n";
  const std::string call =
      "{ .param .b64 param0; st.param.b64 [param0+0], %rd1; .param .b32 retval0;"
      "call.uni (retval0), f, (param0); ld.param.f32 %f1, [retval0+0]; }";
  EXPECT_EQ(refusal(call, own), "");
  EXPECT_THAT(refusal(call, ".extern .func (.param .b32 r) f(.param .b64 p);"),
              HasSubstr("it calls f, which is not"));
  EXPECT_THAT(refusal("{ .param .b64 param0; st.param.b64 [param0+0], %rd1; .param .b32 retval0;"
                      "call.uni (retval0), vprintf, (param0); }"),
              HasSubstr("it calls vprintf"));
  EXPECT_THAT(refusal("call (%r1), %rd4, (%r2), table;", own), HasSubstr("it calls "));
}

TEST(PtxCheck, WhatCannotBeReadIsRefused) {
  for (const char* body :
       {"/* ret;", "\n#define ld st\n", ".pragma \"used_bytes_mask 1\";", ".loc 1 2 3", ".alias a, b;", "}",
        "{", ".version 8.0", "ld.global.f32 %f1, [%rd3]; \"", ".section .debug_info { }"})
    EXPECT_NE(refusal(body), "") << body;
  EXPECT_EQ(refusal("// nanosleep.u32 20;\n/* trap; */ ret;"), "");
}

TEST(PtxCheck, ATextWithoutTheKernelIsNotRead) {
  for (const char* text : {"", ".version 9.0\n", ".version 9.0\n.visible .entry other()\n{\nret;\n}\n"})
    EXPECT_THAT(why_ptx_is_refused(text, {.kernel = "k", .is_buffer = {}}),
                HasSubstr("does not have the kernel k"));
}

TEST(PtxText, StatementsAreWordsWithoutComments) {
  const PtxStatements read = read_ptx(
      ".version 9.0\n.target sm_90a\nL: { .reg .b32 t; /* ; */ mov.b64 {%r1, %r2}, %rd1; } "
      "cp.async.bulk.shared::cluster.global [%r1], [%rd1+-4], 16; // x\n");
  ASSERT_EQ(read.problem, "");
  ASSERT_EQ(read.list.size(), 5u);
  EXPECT_EQ(read.list[1].first(), ".target");
  EXPECT_EQ(read.list[3].words.size(), 8u);
  EXPECT_EQ(read.list[4].first(), "cp.async.bulk.shared::cluster.global");
}

}  // namespace
}  // namespace tuner
