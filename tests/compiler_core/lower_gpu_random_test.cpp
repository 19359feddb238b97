// Random GPU schedules through lower_gpu and the emulator: right values, no race, nothing out of bounds,
// nothing uninitialised or unwritten. Draws tile sizes, virtual threads, double buffers, pipelines, layouts,
// split-K and odd shapes.
#include <cmath>
#include <random>

#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/codegen/reference.h"
#include "tests/compiler_core/gpu_schedules.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using testing::gpu_product;
using testing::tiled_product;
using testing::TiledOptions;

template <class T>
T pick(std::mt19937_64& rng, std::initializer_list<T> values) {
  return values.begin()[rng() % values.size()];
}

void expect_right(const Schedule& s, const Program& math, uint64_t seed) {
  const auto scheduled = s.finish();
  ASSERT_TRUE(scheduled.is_ok()) << scheduled.message();
  const auto gpu = lower_gpu(*scheduled);
  ASSERT_TRUE(gpu.is_ok()) << gpu.message() << "\n" << s.trace();
  SCOPED_TRACE(to_text(*gpu));
  std::mt19937_64 rng(seed);
  std::vector<std::vector<float>> inputs;
  for (const Buffer& b : math.args) {
    if (b->role == BufferRole::kOutput) continue;
    inputs.emplace_back();
    for (int64_t i = 0; i < b->elements(); ++i)
      inputs.back().push_back(static_cast<float>(rng() % 2001) / 1000 - 1);
  }
  const auto expected = reference_answer(math, inputs);
  ASSERT_TRUE(expected.is_ok()) << expected.message();
  const auto run = run_emulated(*gpu, inputs);
  ASSERT_TRUE(run.is_ok()) << run.message();
  ASSERT_EQ(run->faults, std::vector<std::string>());
  for (size_t i = 0; i < expected->back().size(); ++i)
    ASSERT_NEAR(run->outputs.back()[i], expected->back()[i], 1e-4) << "out " << i;
}

TEST(LowerGpuRandom, TiledProducts) {
  const RandomSeed seed(20261121);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 80; ++i) {
    TiledOptions o;
    o.bm = pick<int64_t>(rng, {8, 16, 24}), o.bn = pick<int64_t>(rng, {16, 32}),
    o.bk = pick<int64_t>(rng, {1, 4, 8});
    o.virtual_threads = rng() % 2 == 0;
    // Whole warps, as GPUs have them.
    o.tm = 1, o.tn = 1;
    const int64_t threads = o.bm * (o.virtual_threads ? o.bn / 2 : o.bn);
    if (threads % 64 == 0) (rng() % 2 == 0 ? o.tm : o.tn) = 2;
    o.double_buffer = rng() % 2 == 0, o.in_registers = rng() % 2 == 0;
    o.layout_a = pick<const char*>(rng, {"", "pad:1", "pad:4", "xor:1,8", "xor:2,4"});
    const auto m = static_cast<int64_t>(1 + rng() % 40), n = static_cast<int64_t>(1 + rng() % 40),
               k = static_cast<int64_t>(1 + rng() % 20);
    if (m < o.bm) o.layout_a.clear();  // the tile is then smaller than its units
    // As many steps as fill it, and a loop to be the pipeline of.
    const int64_t steps = (k + o.bk - 1) / o.bk;
    if (!o.double_buffer && steps > 1) o.stages = std::min(steps + 1, pick<int64_t>(rng, {1, 2, 3, 4}));
    SCOPED_TRACE(str("number ", i, ": ", m, "x", n, "x", k));
    ASSERT_NO_FATAL_FAILURE(expect_right(tiled_product(m, n, k, o), gpu_product(m, n, k), seed + i));
  }
}

TEST(LowerGpuRandom, RowsOfAnyLengthAndNumber) {
  const RandomSeed seed(20261122);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 40; ++i) {
    const auto threads = pick<int64_t>(rng, {4, 16, 32, 64, 96, 256});
    const int64_t rows_of_block = std::max<int64_t>(32 / threads, pick<int64_t>(rng, {1, 2}));
    const auto rows = static_cast<int64_t>(1 + rng() % 9), columns = static_cast<int64_t>(1 + rng() % 300);
    SCOPED_TRACE(str("number ", i, ": ", rows, "x", columns, ", ", threads, " threads"));
    const Schedule s = testing::row_shares(rows, columns, threads, rows_of_block);
    const auto scheduled = s.finish();
    ASSERT_TRUE(scheduled.is_ok()) << scheduled.message();
    const auto gpu = lower_gpu(*scheduled);
    ASSERT_TRUE(gpu.is_ok()) << gpu.message();
    SCOPED_TRACE(to_text(*gpu));
    std::vector<std::vector<float>> inputs(1);
    for (int64_t e = 0; e < rows * columns; ++e)
      inputs[0].push_back(static_cast<float>(rng() % 1000 + 1) / 1000);
    const auto run = run_emulated(*gpu, inputs);
    ASSERT_TRUE(run.is_ok()) << run.message();
    ASSERT_EQ(run->faults, std::vector<std::string>());
    for (int64_t r = 0; r < rows; ++r) {
      double total = 0;
      for (int64_t c = 0; c < columns; ++c) total += inputs[0][static_cast<size_t>(r * columns + c)];
      for (int64_t c = 0; c < columns; ++c) {
        const auto at = static_cast<size_t>(r * columns + c);
        ASSERT_NEAR(run->outputs[0][at], inputs[0][at] / total, 1e-5 * inputs[0][at] / total + 1e-9) << at;
      }
    }
  }
}

}  // namespace
}  // namespace tuner
