// What of a kernel's code is refused before it runs, and what is not.
#include "tuner/judge/code_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tuner/judge/allowed_calls.h"

namespace tuner {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& assembly, bool cxx = false) {
  return why_code_is_refused(assembly, {.cxx = cxx});
}
// As compilers mark what a user wrote.
std::string by_hand(const std::string& text) {
  return "\t.text\nf:\n#APP\n# 3 \"k.c\" 1\n\t" + text + "\n# 0 \"\" 2\n#NO_APP\n\tret\n";
}

// As GCC 12 writes it.
constexpr char kPlain[] = R"(	.file	"tuner_entry.c"
	.text
	.p2align 4
	.type	tile, @function
tile:
.LFB0:
	.cfi_startproc
	movl	in(%rip), %eax	# in
	rep stosq
	jmp	.L3
	.cfi_endproc
	.section	.rodata.str1.1,"aMS",@progbits,1
.LC0:
	.string	"syscall; rdtsc # \" .byte"
	.section	.note.GNU-stack,"",@progbits
)";

TEST(CodeCheck, WhatCompilersWriteIsRead) {
  EXPECT_EQ(refusal(kPlain), "");
  EXPECT_EQ(refusal("\t.data\n\t.byte 15, 5\n\t.quad main\n"), "");
}

#if defined(__x86_64__)
TEST(CodeCheck, InstructionsThatAskTheSystemAreFoundHoweverTheyAreWritten) {
  for (const char* text :
       {"syscall", "nop; syscall", "1: syscall", "rep syscall", "rex.W syscall", "nop\n\tsyscall",
        "int $0x80", "rdtsc", "clflush (%rdi)", "ldmxcsr (%rsp)", "fldcw (%rsp)"})
    EXPECT_THAT(refusal(by_hand(text)), HasSubstr("it has the instruction")) << text;
  // The compiler itself changes how the old unit rounds, to make integers.
  EXPECT_EQ(refusal("\t.text\nf:\n\tfldcw\t-4(%rsp)\n"), "");
  EXPECT_THAT(refusal("\t.text\nf:\n\trdtsc\n"), HasSubstr("rdtsc"));
}

TEST(CodeCheck, NamesLikeInstructionsAreNone) {
  EXPECT_EQ(refusal("\t.text\nin:\n\tmovl in(%rip), %eax\n\tcall int\n\tjmp syscall\n"), "");
  EXPECT_EQ(refusal(by_hand("add $4, %rdi  # syscall = none")), "");
}

TEST(CodeCheck, HandWrittenAssemblyIsInstructionsOnly) {
  for (const char* text :
       {".byte 0x0f, 0x05", ".irp a, sys", ".incbin \"/etc/passwd\"", ".section .x", ".globl x", "x = 5",
        "x:", "mov $'#, %al; syscall", "/**/syscall", ".macro m", ".include \"x\"", "\\a\\()call"})
    EXPECT_NE(refusal(by_hand(text)), "") << text;
  for (const char* text :
       {"1:\n\tvfmadd231ps (%rdi), %ymm1, %ymm0\n\tjnz 1b", ".p2align 4", ".Lhere: dec %rax"})
    EXPECT_EQ(refusal(by_hand(text)), "") << text;
}

TEST(CodeCheck, TheLoaderAndTheThreadAreNotLookedAt) {
  for (const char* text : {"leaq _DYNAMIC(%rip), %rax", "movq _GLOBAL_OFFSET_TABLE_+8(%rip), %rax",
                           "movq %fs:0, %rax", "movq %gs:(%rcx), %rax"})
    EXPECT_THAT(refusal(str("\t.text\nf:\n\t", text, "\n")), HasSubstr("belongs to its loader or its thread"))
        << text;
  EXPECT_EQ(refusal("\t.text\nf:\n\tsubq %fs:40, %rdx\n\tmovq x@gottpoff(%rip), %rax\n"), "");
}

TEST(CodeCheck, MarksOfTheCompilerProtectNobody) {
  EXPECT_NE(refusal(by_hand("#NO_APP\n\t.byte 0x0f, 0x05\n#APP")), "");
  EXPECT_NE(refusal(by_hand("#NO_APP\n\t.macro x\n#APP")), "");
  EXPECT_NE(refusal(by_hand("#NO_APP")), "");
  EXPECT_NE(refusal("\t.text\n#APP\n\tnop\n"), "");
}
#endif

TEST(CodeCheck, DataIsNoCodeAndCodeNoData) {
  EXPECT_THAT(refusal("\t.text\nf:\n\t.byte 15, 5\n"), HasSubstr("data among its instructions"));
  EXPECT_THAT(refusal("\t.section\t.text.x,\"ax\",@progbits\n\t.quad 15\n"),
              HasSubstr("data among its instructions"));
  EXPECT_NE(refusal("\t.section\t.mine,\"ax\",@progbits\n\tnop\n"), "");
  EXPECT_NE(refusal("\t.section\t.mine,\"awx\",@progbits\n"), "");
  EXPECT_NE(refusal("\t.section\t\"mine\",\"awx\",@progbits\n"), "");
  EXPECT_NE(refusal("\t.section\t.note.GNU-stack,\"x\",@progbits\n"), "");
  EXPECT_NE(refusal("\t.data\n\tnop\n"), "");
}

TEST(CodeCheck, NothingRunsBeforeOrAfterTheFunction) {
  EXPECT_THAT(refusal("\t.section\t.init_array,\"aw\"\n\t.quad\tearly\n"),
              HasSubstr("early runs when it is loaded"));
  EXPECT_NE(refusal("\t.section\t.init_array,\"aw\"\n\t.quad\t_ZL5earlyv\n", /*cxx=*/true), "");
  EXPECT_EQ(refusal("\t.section\t.init_array,\"aw\"\n\t.quad\t_GLOBAL__sub_I_k.cpp\n", /*cxx=*/true), "");
  for (const char* section : {".init_array.00101", ".fini_array", ".ctors", ".dtors", ".preinit_array"})
    EXPECT_NE(refusal(str("\t.section\t", section, ",\"aw\"\n\t.quad\t_GLOBAL__sub_I_k.cpp\n"), true), "")
        << section;
}

TEST(CodeCheck, NamesOfTheSystemAreNotDefinedAnew) {
  EXPECT_THAT(refusal("\t.globl\tclock_gettime\n"), HasSubstr("it defines clock_gettime"));
  EXPECT_EQ(refusal("\t.globl\tadd_row\n"), "");
}

TEST(CodeCheck, KernelsCallMathematicsAndMemoryAndNothingThatAsks) {
  for (const char* name :
       {"expf", "sqrtl", "__expf_finite", "_ZGVbN4v_expf", "memcpy", "__memcpy_chk", "malloc", "_Znwm",
        "_ZdlPvm", "__cxa_throw", "_ZSt17__throw_bad_allocv", "_ZNSt6vectorIfSaIfEE", "GOMP_parallel",
        "omp_get_thread_num", "qsort", "__assert_fail", "__tls_get_addr", "_Unwind_Resume"})
    EXPECT_TRUE(may_call(name, 1)) << name;
  for (const char* name : {"clock_gettime",
                           "fopen",
                           "printf",
                           "getenv",
                           "mprotect",
                           "mmap",
                           "dlsym",
                           "syscall",
                           "fork",
                           "exit",
                           "_exit",
                           "raise",
                           "signal",
                           "longjmp",
                           "socket",
                           "sched_setaffinity",
                           "fesetround",
                           "omp_get_wtime",
                           "stdout",
                           "environ",
                           "_ZSt4cout",
                           "_ZNSt6chrono3_V212steady_clock3nowEv",
                           "_ZNSt6threadC1Ev",
                           "_ZNSt13random_device7_M_fini",
                           "f",
                           "l",
                           ""})
    EXPECT_FALSE(may_call(name, 1)) << name;
  EXPECT_FALSE(may_call("pthread_create", 1));
  EXPECT_TRUE(may_call("pthread_create", 2));
  EXPECT_THAT(why_symbols_are_refused({.imported = {"expf", "getenv"}}, {}), HasSubstr("it uses getenv"));
  EXPECT_THAT(why_symbols_are_refused({.exported = {"memcmp"}}, {}), HasSubstr("it offers memcmp"));
  EXPECT_EQ(why_symbols_are_refused({.imported = {"expf"}, .exported = {"tuner_kernel"}}, {}), "");
  // In C nobody but atexit() asks for it.
  EXPECT_NE(why_symbols_are_refused({.imported = {"__cxa_atexit"}}, {.cxx = false}), "");
  EXPECT_EQ(why_symbols_are_refused({.imported = {"__cxa_atexit"}}, {.cxx = true}), "");
}

}  // namespace
}  // namespace tuner
