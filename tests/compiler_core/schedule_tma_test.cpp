// copy_by_tma: the loops that come out of it and of a pipeline around, what becomes of them in a kernel, and
// what is refused; which sides a box has, and when one dimension of an array is two of its map.
#include <gmock/gmock.h>

#include <sstream>

#include "compiler_core/analysis/tensor_copy.h"
#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/lower/gpu.h"
#include "compiler_core/oracle/oracle.h"
#include "compiler_core/schedule/schedule.h"
#include "tests/compiler_core/gpu_schedules.h"

namespace tuner {
namespace {

using testing::gpu_product;
using ::testing::HasSubstr;
using testing::loops;

using Options = testing::FetchedOptions;
Schedule product(const Options& o = {}) { return testing::fetched_product(o); }

TEST(ScheduleTma, AFetchMeansItsLoops) {
  const std::string text = loops(product({.m = 8, .n = 8, .k = 16, .stages = 0}));
  EXPECT_THAT(text, HasSubstr(R"(
        reduce k.outer in 0..2
          allocate a.packed float32[1, 1, 4, 8] shared
          allocate b.packed float32[1, 1, 8, 8] shared
          async fetch
            for p0 in 0..1
              for p1 in 0..1
                for p2 in 0..4
                  for p3 in 0..8
                    a.packed[0, 0, p2, p3] = a[i.outer*4 + p2, k.outer*8 + p3]
)")) << text;
}

TEST(ScheduleTma, APipelineWaitsAtABarrierForEachStage) {
  std::istringstream all(loops(product()));
  std::string text;
  for (std::string line; std::getline(all, line);)  // without what the copies do
    if (line.find("for p") == std::string::npos && line.find("] = select(") == std::string::npos &&
        line.find(", p2, p3] = ") == std::string::npos)
      text += line + "\n";
  EXPECT_THAT(text, HasSubstr(R"(
            allocate full int64[3] shared
            async init full[0], 1
            async expect full[0], 384
            async fetch full[0]
            async fetch full[0]
            async expect full[1], 384
            async fetch full[1]
            async fetch full[1]
            reduce k.outer in 0..3
              async await full[k.outer], 0
              if k.outer < 1
                async expect full[k.outer + 2], 384
                async fetch full[k.outer + 2]
                async fetch full[k.outer + 2]
              reduce k.inner in 0..8
)")) << text;
}

// Read as if all loops were serial, and in the emulator.
TEST(ScheduleTma, KeepsItsMeaning) {
  for (const Options& o :
       {Options{}, Options{.k = 8, .stages = 2}, Options{.m = 4, .n = 24, .k = 100, .stages = 4},
        Options{.m = 13, .n = 12, .k = 40, .stages = 2}}) {
    SCOPED_TRACE(str(o.m, "x", o.n, "x", o.k, " in ", o.stages, " stages"));
    const Program math = gpu_product(o.m, o.n, o.k);
    const auto scheduled = product(o).finish();
    ASSERT_TRUE(scheduled.is_ok()) << scheduled.message();
    std::vector<std::vector<double>> args, expected;
    std::vector<std::vector<float>> inputs;
    int64_t next = 0;
    for (const Buffer& b : math.args) {
      args.emplace_back();
      if (b->role == BufferRole::kOutput) continue;
      for (int64_t i = 0; i < b->elements(); ++i)
        args.back().push_back(static_cast<double>(next++ % 17 - 8) / 4);
      inputs.emplace_back(args.back().begin(), args.back().end());
    }
    expected = args;
    ASSERT_TRUE(interpret(math, expected).is_ok());
    ASSERT_TRUE(interpret(*scheduled, args).is_ok());
    EXPECT_EQ(args.back(), expected.back());
    const auto lowered = lower_gpu(*scheduled);
    ASSERT_TRUE(lowered.is_ok()) << lowered.message();
    const auto run = run_emulated(*lowered, inputs);
    ASSERT_TRUE(run.is_ok()) << run.message();
    EXPECT_THAT(run->faults, ::testing::IsEmpty());
    EXPECT_EQ(std::vector<double>(run->outputs[0].begin(), run->outputs[0].end()), expected.back());
  }
}

// One thread asks; a block barrier stands where others must see that barriers were begun, and before a stage
// is asked for again.
TEST(ScheduleTma, OneThreadOfABlockAsks) {
  const auto lowered = lower_gpu(*product({.m = 9, .n = 8, .k = 100, .stages = 2}).finish());
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  EXPECT_EQ("\n" + to_text(*lowered), R"(
kernel product(out) grid (1, 3, 1) block (8, 4, 1)
  shared b.packed float32[2, 1, 1, 8, 8] at 0
  shared a.packed float32[2, 1, 1, 4, 8] at 512
  shared full int64[2] at 768
  map 0 of a: float32 [100, 9], box [8, 4]
  map 1 of b: float32 [8, 100], box [8, 8]
  allocate acc float32[1, 1] register
  acc[0, 0] = 0
  if tx == 0 && ty == 0
    async init full[0], 1
    async expect full[0], 384
    async fetch full[0], a.packed[0, 0, 0, 0, 0] = map 0 of a at [0, by*4]
    async fetch full[0], b.packed[0, 0, 0, 0, 0] = map 1 of b at [0, 0]
  barrier shared
  reduce k.outer in 0..13
    async await full[k.outer%2], k.outer//2%2
    if k.outer < 12
      if tx == 0 && ty == 0
        async expect full[(k.outer + 1)%2], 384
        async fetch full[(k.outer + 1)%2], a.packed[(k.outer + 1)%2, 0, 0, 0, 0] = map 0 of a at [k.outer*8 + 8, by*4]
        async fetch full[(k.outer + 1)%2], b.packed[(k.outer + 1)%2, 0, 0, 0, 0] = map 1 of b at [0, k.outer*8 + 8]
    if by*4 + ty < 9
      reduce k.inner in 0..8
        acc[0, 0] = acc[0, 0] + a.packed[k.outer%2, 0, 0, ty, k.inner] * b.packed[k.outer%2, 0, 0, k.inner, tx]
    barrier shared
  if by*4 + ty < 9
    out[by*4 + ty, tx] = max(acc[0, 0], 0)
)");
}

std::string refusal(const Schedule& s) { return s.finish().message(); }

TEST(ScheduleTma, RefusesWhatNoBoxDoes) {
  EXPECT_THAT(
      refusal(product({.k = 18})),
      HasSubstr("copy_by_tma(a.packed): the rows of a are 72 bytes apart, expected a multiple of 16"));
  EXPECT_THAT(
      refusal(product({.n = 10})),
      HasSubstr("copy_by_tma(b.packed): the rows of b are 40 bytes apart, expected a multiple of 16"));
  Schedule twice = product({.stages = 0});
  twice.copy_by_tma(twice.tensor("a.packed"));
  EXPECT_EQ(refusal(twice), "copy_by_tma(a.packed): a.packed is copied by TMA already");
  Schedule global = product({.stages = 0});
  global.copy_by_tma(global.tensor("out"));
  EXPECT_EQ(refusal(global), "copy_by_tma(out): out is in global memory; set_scope(shared) first");
  Schedule threads = product({.stages = 0, .tma_a = false});
  threads.bind(threads.axes(threads.tensor("a.packed")).back(), LoopKind::kThreadX);
  threads.copy_by_tma(threads.tensor("a.packed"));
  EXPECT_THAT(refusal(threads),
              HasSubstr("is threadIdx.x; one thread asks for the whole copy, so all of its loops "
                        "must be serial"));
  EXPECT_THAT(
      refusal(product({.tma_b = false})),
      HasSubstr("some of the tensors are copied by TMA and some by threads; copy_by_tma() all or none"));
  Schedule doubled = product({.stages = 0});
  doubled.double_buffer(doubled.tensor("a.packed"), doubled.axis("k.outer"));
  EXPECT_THAT(refusal(doubled), HasSubstr("a.packed is copied by TMA; pipeline() instead"));
}

TEST(ScheduleTma, KernelsRefuseFetchesThatNobodyAwaitsAndLayoutsThatTheEngineDoesNotWrite) {
  EXPECT_EQ(lower_gpu(*product({.stages = 0}).finish()).message(),
            "kernel product: the copy of a.packed by TMA: nothing waits for it; pipeline() it");
  EXPECT_THAT(
      lower_gpu(*product({.k = 40, .layout_a = "pad:4"}).finish()).message(),
      HasSubstr(
          "a.packed with layout \"pad:4\" has element 8 of a box at byte 48, where the engine leaves it "
          "at 32"));
  // A swizzle of 32 bytes repeats after 256; a stage of a has 128.
  EXPECT_THAT(lower_gpu(*product({.k = 40, .layout_a = "xor:4,2,4"}).finish()).message(),
              HasSubstr("a box in a.packed is not shown to begin at a multiple of 256 bytes"));
}

TEST(ScheduleTma, ReplaysFromItsTrace) {
  const Options o{.k = 40};
  const Schedule s = product(o);
  const auto again = replay(gpu_product(o.m, o.n, o.k), s.trace());
  ASSERT_TRUE(again.is_ok()) << again.message() << "\n" << s.trace();
  EXPECT_EQ(to_text(*again), to_text(*s.finish()));
}

// --- sides of boxes ---

Buffer array(std::vector<int64_t> shape) {
  return make_buffer("x", DType::kFloat16, std::move(shape), MemoryScope::kGlobal, BufferRole::kInput);
}
Buffer tile(std::vector<int64_t> shape, std::string layout = "") {
  auto node = std::make_shared<BufferNode>(BufferNode{
      .name = "tile", .dtype = DType::kFloat16, .shape = std::move(shape), .scope = MemoryScope::kShared});
  node->layout = std::move(layout);
  return node;
}
std::string described(const Result<TensorCopy>& copy) {
  if (!copy) return copy.message();
  std::string text = to_text(copy->map) + " at";
  for (const Expr& c : copy->coordinates) text += " " + to_text(c);
  text += " to " + to_text(copy->to);
  for (const Stmt& round : copy->rounds) text += str(", ", round->extent, " times");
  return text;
}

struct Loops {
  Var piece = make_var("piece"), row = make_var("row"), column = make_var("column"),
      block = make_var("block");
  RangeMap ranges;
  Loops() { ranges.bind(block, 3); }

  // for piece in 0..2: for row in 0..64: for column in 0..64: tile[piece, row, column] = select(inside, x[i,
  // j], 0)
  Stmt copy(const Buffer& to, const Buffer& from, const Expr& i, const Expr& j) const {
    const Expr inside = i < from->shape[0] && j < from->shape[1];
    const Stmt store = make_store(to, {Expr(piece), Expr(row), Expr(column)},
                                  select(inside, load(from, {i, j}), float_imm(0, DType::kFloat16)));
    return make_for(piece, 2, make_for(row, 64, make_for(column, 64, store)));
  }
};

// A piece goes on where the one before ends.
TEST(TensorCopy, PiecesOfRowsAreOneSide) {
  const Loops l;
  EXPECT_EQ(described(tensor_copy(
                l.copy(tile({2, 64, 64}, "xor:8,8"), array({300, 200}),
                       Expr(l.block) * 128 + Expr(l.piece) * 64 + l.row, Expr(l.block) * 64 + l.column),
                l.ranges)),
            "float16 [200, 300], box [64, 128], swizzle 128 at block*64 block*128 to tile[0, 0, 0]");
}

// Pieces of columns lie between rows in the tile: two dimensions of the map, if the columns are whole pieces.
TEST(TensorCopy, PiecesOfColumnsAreADimension) {
  const Loops l;
  const auto of = [&](int64_t columns) {
    return described(
        tensor_copy(l.copy(tile({2, 64, 64}, "xor:8,8"), array({300, columns}), Expr(l.block) * 64 + l.row,
                           Expr(l.block) * 128 + Expr(l.piece) * 64 + l.column),
                    l.ranges));
  };
  EXPECT_EQ(of(384),
            "float16 [64, 300, 6], box [64, 64, 2], swizzle 128 at 0 block*64 block*2 to tile[0, 0, 0]");
  // Beyond the last columns the engine would read the next row.
  EXPECT_EQ(
      of(376),
      "float16 [376, 300], box [64, 64], swizzle 128 at block*128 + piece*64 block*64 to tile[piece, 0, 0], "
      "2 times");
}

// Units of 16 bytes are exchanged within a row of 32, 64 or 128 bytes.
TEST(TensorCopy, LayoutsThatExchangeUnitsAreSwizzles) {
  const Loops l;
  const auto of = [&](int64_t columns, const char* layout) {
    const Buffer to = tile({2, 64, columns}, layout), from = array({300, 256});
    const Expr i = Expr(l.piece) * 64 + l.row, j = Expr(l.column);
    const Stmt store = make_store(to, {Expr(l.piece), Expr(l.row), Expr(l.column)}, load(from, {i, j}));
    return described(
        tensor_copy(make_for(l.piece, 2, make_for(l.row, 64, make_for(l.column, columns, store))), {}));
  };
  EXPECT_EQ(of(16, "xor:8,2,4"), "float16 [256, 300], box [16, 128], swizzle 32 at 0 0 to tile[0, 0, 0]");
  EXPECT_EQ(of(32, "xor:8,4,2"), "float16 [256, 300], box [32, 128], swizzle 64 at 0 0 to tile[0, 0, 0]");
  EXPECT_EQ(of(64, "xor:8,8"), "float16 [256, 300], box [64, 128], swizzle 128 at 0 0 to tile[0, 0, 0]");
  EXPECT_EQ(of(128, ""), "float16 [256, 300], box [128, 128] at 0 0 to tile[0, 0, 0]");
  for (const auto& [columns, layout] :
       {std::pair(16, "xor:8,2,2"), std::pair(32, "xor:8,4"), std::pair(64, "xor:8,8,2"),
        std::pair(128, "xor:8,16"), std::pair(64, "pad:8")})
    EXPECT_THAT(of(columns, layout), HasSubstr("where the engine leaves it at")) << layout;
}

// A constant that was packed to lie as the tile does comes as it is, without a map.
TEST(TensorCopy, WhatLiesAsTheTileDoesIsBytesInARow) {
  const auto of = [](const char* of_array, const char* of_tile, int64_t pieces) {
    const Var k = make_var("k"), piece = make_var("piece"), row = make_var("row"),
              column = make_var("column");
    auto packed = std::make_shared<BufferNode>(*array({5, pieces, 64, 64}));
    packed->layout = of_array;
    const Buffer to = tile({2, 2, 64, 64}, of_tile);
    const Stmt store = make_store(to, {floor_mod(k, 2), Expr(piece), Expr(row), Expr(column)},
                                  load(Buffer(packed), {Expr(k), Expr(piece), Expr(row), Expr(column)}));
    RangeMap ranges;
    ranges.bind(k, 5);
    const auto copy = tensor_copy(make_for(piece, 2, make_for(row, 64, make_for(column, 64, store))), ranges);
    if (!copy) return copy.message();
    return str(copy->bytes, " bytes from ", to_text(copy->first), " to ", to_text(copy->to), ", ",
               copy->rounds.size(), " rounds");
  };
  EXPECT_EQ(of("xor:8,8", "xor:8,8", 2), "16384 bytes from x[k, 0, 0, 0] to tile[k%2, 0, 0, 0], 0 rounds");
  EXPECT_EQ(of("xor:8,8", "xor:8,8", 6), "16384 bytes from x[k, 0, 0, 0] to tile[k%2, 0, 0, 0], 0 rounds");
  EXPECT_EQ(
      of("xor:8,8", "", 2),
      "x with layout \"xor:8,8\" does not lie as tile with layout \"\": element 64 at byte 144, there 128");
  EXPECT_THAT(of("xor:8,4", "xor:8,8", 2), HasSubstr("does not lie as tile"));
}

TEST(ScheduleTma, ConstantsArePackedToLieAsInTheTile) {
  te::Builder b("product");
  const Buffer A = b.input("a", {8, 64}), B = b.constant("b", {64, 24});
  b.reduce("out", {8, 24}, {{"k", 64}}, ReduceOp::kSum,
           [&](const te::Indices& i, const te::Indices& r) {
             return load(A, {i[0], r[0]}) * load(B, {r[0], i[1]});
           },
           BufferRole::kOutput, {"i", "j"});
  const Program math = b.finish();
  Schedule s(math);
  const Tensor packed = s.pack(s.tensor("b"), {{1, 8}, {0, 32}, {1, 8, true}, {0, 32, true}});
  const Tensor out = s.tensor("out"), tile = s.cache_read(packed, MemoryScope::kShared, out);
  const auto [i, j] = s.axes<2>(out);
  const auto [k] = s.reduce_axes<1>(out);
  const auto [block, column] = s.split(j, 8);
  const auto [k_outer, k_inner] = s.split(k, 32);
  s.reorder({block, i, column, k_outer, k_inner});
  s.bind(block, LoopKind::kBlockX);
  s.bind(i, LoopKind::kThreadY);
  s.bind(column, LoopKind::kThreadX);
  s.decompose_reduction(out, k_outer);
  s.compute_at(tile, k_outer);
  s.set_layout(packed, "xor:4,8");
  s.set_layout(tile, "xor:4,8");
  s.copy_by_tma(tile);
  s.pipeline({tile}, k_outer, 2);
  const auto scheduled = s.finish();
  ASSERT_TRUE(scheduled.is_ok()) << scheduled.message();
  const auto lowered = lower_gpu(*scheduled);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  EXPECT_TRUE(lowered->kernels[0].tensor_maps.empty());
  EXPECT_THAT(to_text(lowered->kernels[0]), HasSubstr("b.packed[bx, k.outer + 1, 0, 0], 1024\n"));
  EXPECT_THAT(to_text(*lowered), HasSubstr("once before:"));
  std::vector<std::vector<float>> inputs = {std::vector<float>(8 * 64), std::vector<float>(64 * 24)};
  for (std::vector<float>& input : inputs)
    for (size_t at = 0; at < input.size(); ++at) input[at] = static_cast<float>(at % 13) - 6;
  const auto run = run_emulated(*lowered, inputs);
  ASSERT_TRUE(run.is_ok()) << run.message();
  EXPECT_THAT(run->faults, ::testing::IsEmpty());
  for (int64_t at = 0; at < 8 * 24; ++at) {
    double sum = 0;
    for (int64_t x = 0; x < 64; ++x)
      sum += static_cast<double>(inputs[0][static_cast<size_t>(at / 24 * 64 + x)]) *
             inputs[1][static_cast<size_t>(x * 24 + at % 24)];
    ASSERT_EQ(run->outputs[0][static_cast<size_t>(at)], sum) << at;
  }
  const auto again = replay(math, s.trace());
  ASSERT_TRUE(again.is_ok()) << again.message() << "\n" << s.trace();
  EXPECT_EQ(to_text(*again), to_text(*scheduled));
  // A row more than the constant has is nobody's.
  Schedule padded(math);
  padded.set_layout(padded.pack(padded.tensor("b"), {{1, 8}, {0, 32}, {1, 8, true}, {0, 32, true}}), "pad:4");
  EXPECT_THAT(padded.finish().message(),
              HasSubstr("is packed ahead, and an argument has no unused elements"));
}

TEST(TensorCopy, RefusesByName) {
  const Loops l;
  const Expr row = Expr(l.block) * 128 + Expr(l.piece) * 64 + l.row, column = Expr(l.block) * 64 + l.column;
  const Buffer swizzled = tile({2, 64, 64}, "xor:8,8");
  EXPECT_EQ(described(tensor_copy(l.copy(swizzled, array({300, 200}), column, row), l.ranges)),
            "no loop goes along the rows of both tile and x");
  EXPECT_EQ(described(tensor_copy(l.copy(swizzled, array({300, 100}), row, column), l.ranges)),
            "the rows of x are 200 bytes apart, expected a multiple of 16");
  EXPECT_EQ(described(tensor_copy(l.copy(swizzled, array({300, 200}), row, Expr(l.column) * 2), l.ranges)),
            "no loop goes along the rows of both tile and x");
  EXPECT_THAT(described(tensor_copy(l.copy(swizzled, array({300, 200}), row - 1, column), l.ranges)),
              HasSubstr("it is not shown to read inside of x"));
  EXPECT_EQ(described(tensor_copy(
                make_if(Expr(l.block) < 2, l.copy(swizzled, array({384, 200}), row, column)), l.ranges)),
            "it has zeros inside of x, beyond block < 2");
  EXPECT_THAT(
      described(tensor_copy(l.copy(tile({2, 64, 64}, "xor:8,4"), array({300, 200}), row, column), l.ranges)),
      HasSubstr("tile with layout \"xor:8,4\" has element"));
  EXPECT_EQ(described(tensor_copy(l.copy(swizzled, array({300, 200}), row, floor_div(column, 3)), l.ranges)),
            "loop column does not go through x in even steps: (block*64 + column)//3");
  // Rows between the pieces: a box for each, which begins where a swizzle does not.
  EXPECT_EQ(
      described(tensor_copy(l.copy(tile({3, 65, 64}, "xor:8,8"), array({300, 200}), row, column), l.ranges)),
      "a box in tile is not shown to begin at a multiple of 1024 bytes: element piece*65*64");
}

}  // namespace
}  // namespace tuner
