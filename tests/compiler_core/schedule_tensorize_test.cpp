// tensorize: the statements that come out, what they compute, and the requests that are refused.
#include <random>

#include "compiler_core/analysis/regions.h"
#include "compiler_core/arith/meaning.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/compiler_core/tile_schedules.h"
#include "tests/random_numbers.h"

namespace tuner {
namespace {

using testing::loops;
using testing::tiled_matmul;
using testing::TileShape;
using testing::typed_matmul;

TEST(ScheduleTensorize, AProductOfTwoByTwoTilesIsFourLoadsAndFourProductsAStep) {
  const Program math = typed_matmul(DType::kBFloat16, DType::kBFloat16, 32, 32, 64);
  const Schedule s = tiled_matmul(math, {.rows = 16, .down = 2, .across = 2});
  ASSERT_FALSE(s.refused()) << s.finish().message();
  EXPECT_EQ(loops(s), R"(
allocate A.packed bfloat16[2, 2, 16, 32]
for p0 in 0..2
  for p1 in 0..2
    for p2 in 0..16
      for p3 in 0..32
        A.packed[p0, p1, p2, p3] = A[p0*16 + p2, p1*32 + p3]
for m.outer in 0..1
  for n.outer in 0..1
    allocate C.global float32[32, 32]
    allocate C.global.fragment float32[32, 32] fragment
    unrolled m.outer.init in 0..2
      unrolled n.outer.init in 0..2
        amx.zero.float32.16(C.global.fragment[m.outer.init*16, n.outer.init*16])
    reduce k.outer in 0..2
      allocate A.packed.fragment bfloat16[2, 1, 16, 32] fragment
      allocate B.packed.fragment bfloat16[2, 16, 16, 2] fragment
      unrolled i0 in 0..2
        unrolled i1 in 0..1
          amx.load.bfloat16.16(A.packed.fragment[i0, 0, 0, 0], A.packed[i0, k.outer, 0, 0])
      unrolled i0 in 0..2
        amx.groups.bfloat16(B.packed.fragment[i0, 0, 0, 0], B.packed[i0, k.outer*16, 0, 0])
      unrolled m.outer_1 in 0..2
        unrolled n.outer_1 in 0..2
          amx.bfloat16.16(C.global.fragment[m.outer_1*16, n.outer_1*16], A.packed.fragment[m.outer_1, 0, 0, 0], B.packed.fragment[n.outer_1, 0, 0, 0])
    unrolled m.outer_1 in 0..2
      unrolled n.outer_1 in 0..2
        amx.store.float32.16(C.global.fragment[m.outer_1*16, n.outer_1*16], C.global[m.outer_1*16, n.outer_1*16])
    for m.inner in 0..32
      vectorized n.inner in 0..32
        C[m.inner, n.inner] = C.global[m.inner, n.inner]
)");
  const auto again = replay(math, s.trace());
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(s.program()));
}

// The scheduled Program, by the meanings of its intrinsics, against the plain one.
void expect_same_sums(const Program& math, const Schedule& s) {
  ASSERT_FALSE(s.refused()) << s.finish().message();
  std::mt19937 random(7);
  std::vector<std::vector<double>> expected;
  for (const Buffer& b : math.args) {
    expected.emplace_back();
    for (int64_t i = 0; b->role != BufferRole::kOutput && i < b->elements(); ++i)
      expected.back().push_back(testing::random_number(random, b->dtype));
  }
  std::vector<std::vector<double>> found = expected;
  ASSERT_TRUE(interpret(math, expected).is_ok());
  const Status status = interpret(s.program(), found);
  ASSERT_TRUE(status.is_ok()) << status.message();
  ASSERT_EQ(found.back().size(), expected.back().size());
  for (size_t i = 0; i < expected.back().size(); ++i)
    ASSERT_NEAR(found.back()[i], expected.back()[i], 1e-9 * (1 + std::abs(expected.back()[i]))) << i;
}

// Sizes that tiles divide and do not, in every direction.
TEST(ScheduleTensorize, TilesOfAnySizeAndTypeSumTheSame) {
  const auto check = [](DType a, DType b, int64_t m, int64_t n, int64_t k, const TileShape& tile) {
    SCOPED_TRACE(str(a, " ", b, " ", m, "x", n, "x", k, " rows ", tile.rows));
    const Program math = typed_matmul(a, b, m, n, k);
    expect_same_sums(math, tiled_matmul(math, tile));
  };
  const DType half = DType::kBFloat16;
  check(half, half, 16, 16, 32, {});
  check(half, half, 37, 41, 75, {.rows = 7, .down = 2, .across = 2});
  check(half, half, 3, 5, 9, {.rows = 3});
  check(half, half, 1, 33, 64, {.rows = 1, .across = 3});
  for (const DType a : {DType::kInt8, DType::kUInt8})
    for (const DType b : {DType::kInt8, DType::kUInt8})
      check(a, b, 21, 40, 70, {.rows = 11, .down = 2, .across = 1});
}

// A unit that can multiply but not load tiles: the sums, which only meet what is loaded, are loops, too.
TEST(ScheduleTensorize, AFragmentIsRegistersForAllOrForNobody) {
  const auto tile = [](const char* name, DType dtype, std::vector<int64_t> shape, MemoryScope scope) {
    return make_buffer(name, dtype, std::move(shape), scope);
  };
  const Buffer c = tile("c", DType::kFloat32, {16, 16}, MemoryScope::kFragment);
  const Buffer a = tile("a", DType::kBFloat16, {16, 32}, MemoryScope::kFragment);
  const Buffer b = tile("b", DType::kBFloat16, {16, 16, 2}, MemoryScope::kFragment);
  const Buffer x = make_buffer("x", DType::kBFloat16, {16, 32}, MemoryScope::kGlobal, BufferRole::kInput);
  const auto use = [](const char* name, const std::vector<Buffer>& operands) {
    auto s = std::make_shared<StmtNode>();
    s->kind = StmtKind::kIntrinsic;
    s->name = name;
    for (const Buffer& o : operands)
      s->operands.push_back(load(o, std::vector<Expr>(o->shape.size(), Expr(0))));
    return Stmt(s);
  };
  Stmt body = make_seq({use("amx.zero.float32.16", {c}), use("amx.bfloat16.16", {c, a, b}),
                        use("amx.load.bfloat16.16", {a, x})});
  for (const Buffer& each : {c, a, b}) body = make_allocate(each, body);
  const Program p{"tiles", {x}, body};
  const auto left = [&](const std::function<bool(const Intrinsic&)>& keep) {
    std::string found;
    visit(with_meanings(p, keep).body, [&](const Stmt& s) {
      if (s->kind == StmtKind::kIntrinsic) found += s->name + " ";
      if (s->kind == StmtKind::kAllocate && s->buffer->scope == MemoryScope::kFragment)
        found += s->buffer->name + " ";
    });
    return found;
  };
  EXPECT_EQ(left([](const Intrinsic&) { return true; }),
            "b a c amx.zero.float32.16 amx.bfloat16.16 amx.load.bfloat16.16 ");
  EXPECT_EQ(left([](const Intrinsic& i) { return !i.name.starts_with("amx.load"); }), "");
}

TEST(ScheduleTensorize, RegionsOfAStatementAreThoseOfItsTiles) {
  const Program math = typed_matmul(DType::kBFloat16, DType::kBFloat16, 32, 32, 64);
  const Schedule s = tiled_matmul(math, {.rows = 16, .down = 2, .across = 2});
  Stmt product;
  visit(s.program().body, [&](const Stmt& child) {
    if (child->kind == StmtKind::kIntrinsic && child->name == "amx.groups.bfloat16") product = child;
  });
  ASSERT_NE(product, nullptr);
  const auto read = region_read(product, product->operands[1]->buffer, {});
  const auto written = region_written(product, product->operands[0]->buffer, {});
  ASSERT_TRUE(read.has_value() && written.has_value());
  EXPECT_EQ(read->extent, (std::vector<int64_t>{1, 16, 16, 2}));
  EXPECT_EQ(to_text(read->min[1]), "k.outer*16");
  EXPECT_EQ(written->extent, (std::vector<int64_t>{1, 16, 16, 2}));
  EXPECT_EQ(region_read(product, product->operands[0]->buffer, {}), std::nullopt);
}

// y = x through a copy of x, whose loops are i0 and i1.
Program copy(std::vector<int64_t> shape, DType dtype = DType::kBFloat16) {
  te::Builder b("copy", dtype);
  const Buffer x = b.input("x", shape, dtype);
  b.compute(
      "y", shape, [&](const te::Indices& i) { return load(x, i); }, BufferRole::kOutput);
  return b.finish();
}

std::string refusal(Program program, const std::function<void(Schedule&, Axis, Axis)>& rewrite,
                    MemoryScope scope = MemoryScope::kFragment) {
  Schedule s(std::move(program));
  const Tensor t = s.cache_read(s.tensor("x"), scope, s.tensor("y"));
  const auto [i, j] = s.axes<2>(t);
  rewrite(s, i, j);
  return s.finish().message();
}
void load_tile(Schedule& s, Axis i, Axis) { s.tensorize(i, "amx.load.bfloat16.16"); }

TEST(ScheduleTensorize, AMissSaysWhatWouldHaveToBeSplit) {
  EXPECT_EQ(refusal(copy({16, 32}), load_tile), "");
  EXPECT_EQ(refusal(copy({32, 32}), load_tile),
            "tensorize(x.fragment:i0, amx.load.bfloat16.16): loop i0 has 32 iterations, amx.load.bfloat16.16 "
            "takes 16: split it by 16 "
            "first");
  EXPECT_EQ(refusal(copy({16, 20}), load_tile),
            "tensorize(x.fragment:i0, amx.load.bfloat16.16): loop i1 has 20 iterations, amx.load.bfloat16.16 "
            "takes 32: pad it to a "
            "multiple of 32 first");
  EXPECT_EQ(
      refusal(copy({20, 32}), [](Schedule& s, Axis i, Axis j) { load_tile(s, s.split(i, 16).inner, j); }),
      "tensorize(i0.inner, amx.load.bfloat16.16): guard i0.outer*16 + i0.inner < 20 stands inside; "
      "pack the operands in blocks, so that every tile is full");
  EXPECT_EQ(refusal(copy({16, 32}), [](Schedule& s, Axis, Axis j) { s.tensorize(j, "amx.groups.int8"); }),
            "tensorize(x.fragment:i1, amx.groups.int8): loop i1 has 32 iterations, amx.groups.int8 takes 16: "
            "split it by 16 first");
  EXPECT_EQ(refusal(copy({16, 32}),
                    [](Schedule& s, Axis i, Axis j) {
                      s.unroll(i);
                      load_tile(s, i, j);
                    }),
            "tensorize(x.fragment:i0, amx.load.bfloat16.16): loop i0 is unrolled already");
}

TEST(ScheduleTensorize, RefusesOperandsThatLieElsewhere) {
  EXPECT_EQ(
      refusal(copy({16, 32}), load_tile, MemoryScope::kGlobal),
      "tensorize(x.global:i0, amx.load.bfloat16.16): x.global is in global memory, amx.load.bfloat16.16 "
      "takes tile from fragment memory: cache_read, cache_write or set_scope first");
  EXPECT_EQ(refusal(copy({16, 32}, DType::kFloat16), load_tile),
            "tensorize(x.fragment:i0, amx.load.bfloat16.16): x is float16, amx.load.bfloat16.16 takes memory "
            "of bfloat16");
  // Rows with a gap: pairs out of groups of four.
  te::Builder pairs("pairs", DType::kBFloat16);
  const Buffer groups = pairs.input("x", {16, 16, 4}, DType::kBFloat16);
  pairs.compute(
      "y", {16, 16, 4}, [&](const te::Indices& i) { return load(groups, i); }, BufferRole::kOutput);
  Schedule gaps(pairs.finish());
  const Tensor read = gaps.cache_read(gaps.tensor("x"), MemoryScope::kFragment, gaps.tensor("y"));
  const auto [g, c, e] = gaps.axes<3>(read);
  const SplitAxes pair = gaps.split(e, 2);
  gaps.reorder({pair.outer, g, c, pair.inner});
  gaps.tensorize(g, "amx.groups.bfloat16");
  EXPECT_EQ(
      gaps.finish().message(),
      "tensorize(x.fragment:i0, amx.groups.bfloat16): x[0, 0, i2.outer*2] does not begin a tile memory of "
      "amx.groups.bfloat16: tiles of a fragment are cut from its start, rows of memory lie without gaps");
  te::Builder b("transposed", DType::kBFloat16);
  const Buffer x = b.input("x", {32, 16}, DType::kBFloat16);
  b.compute(
      "y", {16, 32},
      [&](const te::Indices& i) {
        return load(x, {i[1], i[0]});
      },
      BufferRole::kOutput);
  Schedule s(b.finish());
  const Tensor t = s.cache_write(s.tensor("y"), MemoryScope::kFragment);
  s.tensorize(s.axes(t)[0], "amx.load.bfloat16.16");
  EXPECT_EQ(s.finish().message(),
            "tensorize(y.fragment:i0, amx.load.bfloat16.16): x[i1, i0] is not a tile of "
            "amx.load.bfloat16.16: dimension 0 moves with its loops");
}

TEST(ScheduleTensorize, RefusesOtherArithmeticAndOtherIntrinsics) {
  const auto name = [](const char* intrinsic) {
    return refusal(copy({16, 32}), [&](Schedule& s, Axis i, Axis) { s.tensorize(i, intrinsic); });
  };
  EXPECT_EQ(name("amx.load.float64.16"),
            "tensorize(x.fragment:i0, amx.load.float64.16): there is no such intrinsic (ir/intrinsic.h lists "
            "them)");
  EXPECT_EQ(name("warp_allreduce.sum.32"),
            "tensorize(x.fragment:i0, warp_allreduce.sum.32): takes registers of 32 threads; only tiles are "
            "matched");
  EXPECT_EQ(name("amx.store.float32.16"),
            "tensorize(x.fragment:i0, amx.store.float32.16): loop i1 has 32 iterations, amx.store.float32.16 "
            "takes 16: split it by 16 first");
  // Sums that start inside.
  Schedule s(typed_matmul(DType::kBFloat16, DType::kBFloat16, 16, 16, 32));
  s.pack(s.tensor("B"), {{1, 16}, {0, 2, false, 16}, {1, 16, true}, {0, 2, true}});
  const Tensor sums = s.cache_write(s.tensor("C"), MemoryScope::kFragment);
  s.cache_read(s.tensor("A"), MemoryScope::kFragment, sums);
  s.cache_read(s.tensor("B.packed"), MemoryScope::kFragment, sums);
  const auto [i, j] = s.axes<2>(sums);
  const auto [group, element] = s.split(s.reduce_axes<1>(sums)[0], 2);
  s.reorder({i, group, j, element});
  Schedule not_decomposed = s;
  not_decomposed.tensorize(i, "amx.bfloat16.16");
  EXPECT_EQ(not_decomposed.finish().message(),
            "tensorize(C.fragment:m, amx.bfloat16.16): the sums of C.fragment may start here; "
            "decompose_reduction first");
  s.reorder({i, j, group, element});
  s.tensorize(i, "amx.bfloat16.16");
  EXPECT_EQ(
      s.finish().message(),
      "tensorize(C.fragment:m, amx.bfloat16.16): amx.bfloat16.16 takes loops i 16, reduce g 16, j 16, reduce "
      "e 2; found m 16, n 16, reduce k.outer 16, reduce k.inner 2: split and reorder them first");
}

}  // namespace
}  // namespace tuner
