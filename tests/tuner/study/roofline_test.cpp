// What `tuner show --as roofline` counts in assembly, and when it blames the template.
#include "tuner/study/roofline.h"

#include <gtest/gtest.h>

#include "tests/db/store_fixture.h"
#include "tuner/study/inner_loop.h"

namespace tuner::cli {
namespace {

// Two accumulators, one folded broadcast, one reload; the outer loop has more instructions and is not
// innermost.
constexpr char kX86[] = R"(
tuner_kernel:
	.cfi_startproc
	pushq	%rbx
.LBB0_1:
	vxorps	%xmm0, %xmm0, %xmm0
.LBB0_2:                                # =>  This Inner Loop Header: Depth=2
	vmovups	(%rdx,%rax), %zmm2
	vmovups	64(%rsp), %zmm5                 # 64-byte Reload
	vfmadd231ps	(%rsi,%rax){1to16}, %zmm2, %zmm0
	vfmadd231ps	%zmm5, %zmm2, %zmm1
	leaq	64(%rax), %rax
	cmpq	$4096, %rax                     # imm = 0x1000
	jne	.LBB0_2
	vmovups	%zmm0, (%rcx)
	vmovups	%zmm1, 64(%rcx) {%k1}
	addq	$1, %r8
	jne	.LBB0_1
	retq
)";

TEST(InnerLoop, CountsOfX86) {
  const InnerLoop loop = busiest_inner_loop(kX86);
  EXPECT_EQ(loop.label, ".LBB0_2");
  EXPECT_EQ(loop.instructions, 7);
  EXPECT_EQ(loop.multiply_adds, 2);
  EXPECT_EQ(loop.loads, 3);
  EXPECT_EQ(loop.stores, 0);
  EXPECT_EQ(loop.spills, 1);
}

TEST(InnerLoop, AMaskedStoreIsAStore) {
  const InnerLoop loop = busiest_inner_loop(".L1:\n\tvmovups\t%zmm1, 64(%rcx) {%k1}\n\tjne\t.L1\n");
  EXPECT_EQ(loop.stores, 1);
  EXPECT_EQ(loop.loads, 0);
}

TEST(InnerLoop, CountsOfAarch64) {
  const InnerLoop loop = busiest_inner_loop(R"(
.LBB0_3:                                // =>This Inner Loop Header: Depth=1
	ldp	q2, q3, [x1], #32
	ldr	s4, [x0, #4]
	fmla	v0.4s, v2.4s, v4.s[0]
	fmla	v1.4s, v3.4s, v4.s[0]
	str	q5, [sp, #16]                   // 16-byte Folded Spill
	subs	x8, x8, #1
	b.ne	.LBB0_3
	ret
)");
  EXPECT_EQ(loop.label, ".LBB0_3");
  EXPECT_EQ(loop.instructions, 7);
  EXPECT_EQ(loop.multiply_adds, 2);
  EXPECT_EQ(loop.loads, 3);  // a pair is two
  EXPECT_EQ(loop.stores, 1);
  EXPECT_EQ(loop.spills, 1);
}

// A loop that skips an iteration goes back from several places.
TEST(InnerLoop, SeveralBranchesToOneLabelAreOneLoop) {
  const InnerLoop loop = busiest_inner_loop(R"(
.LBB0_1:
	add	x4, x4, #1
	cbz	x5, .LBB0_1
	dup	v1.4s, v2.s[0]
	fmla	v0.4s, v2.4s, v1.4s
	b	.LBB0_1
)");
  EXPECT_EQ(loop.instructions, 5);
  EXPECT_EQ(loop.multiply_adds, 1);
  EXPECT_EQ(loop.broadcasts, 1);
}

// Constants are packed once, before the calls that are timed, and packing may transform them: more
// multiply-adds than the kernel's own loop has.
TEST(InnerLoop, TheFunctionThatPacksIsLeftOut) {
  const std::string assembly =
      "conv:\n\tjmp\tconv.body\n"
      "conv.body:\n.LBB1_1:\n\tvfmadd231ps\t(%rax), %zmm1, %zmm0\n\tjne\t.LBB1_1\n"
      "conv_pack:\n\tjmp\tconv_pack.body\n"
      "conv_pack.body:\n.LBB3_1:\n\tvfmadd231ps\t(%rax), %zmm1, %zmm0\n\tvfmadd231ps\t(%rax), %zmm1, %zmm2\n"
      "\tjne\t.LBB3_1\n"
      "conv_packed_too:\n.LBB4_1:\n\tvmulps\t(%rax), %zmm1, %zmm0\n\tjne\t.LBB4_1\n";
  EXPECT_EQ(busiest_inner_loop(assembly).label, ".LBB3_1");
  EXPECT_EQ(busiest_inner_loop(assembly, "conv_pack").label, ".LBB1_1");
  EXPECT_EQ(busiest_inner_loop("conv_pack:\n.L1:\n\tvmulps\t%zmm1, %zmm0\n\tjne\t.L1\n", "conv_pack").label,
            "");
}

TEST(InnerLoop, NoneInStraightCode) {
  EXPECT_TRUE(busiest_inner_loop("f:\n\tvmovups\t(%rax), %zmm0\n\tretq\n").label.empty());
}

TEST(Roofline, OperandsLiveInTheSmallestLevelThatHoldsThem) {
  const MachineRoofs machine{
      .levels = {{"L1", 48 << 10, 400}, {"L2", 1 << 20, 200}, {"memory", int64_t{1} << 40, 20}}};
  EXPECT_EQ(level_for(machine, 1).name, "L1");
  EXPECT_EQ(level_for(machine, 48 << 10).name, "L1");
  EXPECT_EQ(level_for(machine, (48 << 10) + 1).name, "L2");
  EXPECT_EQ(level_for(machine, (1 << 20) + 1).name, "memory");
  EXPECT_EQ(level_for(machine, int64_t{1} << 41).name, "memory") << "more than there is";
}

// Both halves in the order of arrival; the middle one of an odd number is of the first. A bound is no time.
TEST(Roofline, ACourseComparesTheBestOfItsHalves) {
  const TemporaryFolder folder;
  const auto store = must_open(folder.file("t.db"));
  const CliTask task =
      task_from_keys("v1 matmul b=1 m=8 n=8 k=8 ta=0 tb=0 bias=0 act=none dtype=float32 const=none",
                     "llvm -mcpu=haswell -threads=1")
          .value();
  ASSERT_OK(store->add_job(job_row("j1", {{task.key, task.target_name}})));
  const auto ids = add_trials(*store, "j1", {"a=1", "a=2", "a=3", "a=4", "a=5", "a=6"});
  std::vector<MeasureRecord> records;
  for (const double ns : {90, 80, 70, 60, 65, 10}) records.push_back(ok_record(ids[records.size()], {ns}));
  records.back().cut = true;
  ASSERT_OK(store->add_records(records));
  const auto course = search_course(task, *store);
  ASSERT_TRUE(course.is_ok()) << course.message();
  EXPECT_EQ(course->trials, 5);
  EXPECT_EQ(course->best_ns, 60);
  EXPECT_EQ(course->best_of_first_half_ns, 70);
}

TEST(Roofline, TheTemplateIsBlamedOnlyForASearchThatStalledFarBelowTheBound) {
  const SearchCourse stalled{.trials = 200, .best_ns = 1000, .best_of_first_half_ns = 1001};
  EXPECT_TRUE(template_is_ceiling(stalled, 0.7));
  EXPECT_FALSE(template_is_ceiling(stalled, 0.9));  // near the bound
  EXPECT_FALSE(template_is_ceiling(stalled, 0));    // the bound is not known
  EXPECT_FALSE(template_is_ceiling({.trials = 200, .best_ns = 900, .best_of_first_half_ns = 1000}, 0.7));
  EXPECT_FALSE(template_is_ceiling({.trials = 20, .best_ns = 1000, .best_of_first_half_ns = 1000}, 0.7));
}

}  // namespace
}  // namespace tuner::cli
