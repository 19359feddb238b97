// Random schedules compute what the unscheduled Program computes: primitives drawn from a seed, refusals
// skipped, every element compared in the interpreter, which also reports out-of-bounds and uninitialised
// reads. Each trace is replayed too.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler_core/ir/visitor.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/compiler_core/programs.h"
#include "tests/compiler_core/tile_schedules.h"
#include "tests/random_numbers.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

// Blocks of blocks of blocks are allowed long after the interpreter takes minutes for them.
constexpr double kMostStores = 50'000;

// How many times a store runs below s.
double stores(const Stmt& s) {
  if (s == nullptr) return 0;
  double n = s->kind == StmtKind::kStore ? 1 : 0;
  for (const Stmt& child : s->stmts) n += stores(child);
  n += stores(s->body) + stores(s->else_body);
  return s->kind == StmtKind::kFor ? n * static_cast<double>(s->extent) : n;
}

class RandomSchedule {
 public:
  RandomSchedule(Program program, uint32_t seed)
      : random_(seed), program_(std::move(program)), s_(program_) {}
  // Goes on from what `begun` has done to `program`.
  RandomSchedule(Program program, Schedule begun, uint32_t seed)
      : random_(seed), program_(std::move(program)), s_(std::move(begun)) {}

  // Draws primitives until `wanted` were accepted, or many were refused.
  void draw(int wanted) {
    for (int tries = 0, accepted = 0; tries < wanted * 6 && accepted < wanted; ++tries) {
      Schedule next = s_;
      if (!step(next)) continue;
      if (next.refused()) {
        EXPECT_EQ(next.finish().status().code(), StatusCode::kInvalidConfig) << next.finish().message();
        continue;
      }
      if (stores(next.program().body) > kMostStores) continue;
      s_ = std::move(next);
      ++accepted;
    }
    // Last: other primitives do not know them.
    Schedule asked = s_;
    asked.prefetch(one_of(read(s_)), one_of(computed(s_)), any_axis(s_), pick(1, 9));
    if (!asked.refused()) s_ = std::move(asked);
    asked = s_;
    asked.prefetch_next(one_of(read(s_)), one_of(computed(s_)), any_axis(s_), any_axis(s_));
    if (!asked.refused()) s_ = std::move(asked);
  }

  void check() {
    SCOPED_TRACE("\n" + to_text(program_) + s_.trace() + to_text(s_.program()));
    std::vector<std::vector<double>> inputs = random_arguments();
    std::vector<std::vector<double>> expected = inputs, found = inputs;
    const Status reference = interpret(program_, expected), scheduled = interpret(s_.program(), found);
    ASSERT_TRUE(reference.is_ok()) << reference.message();
    ASSERT_TRUE(scheduled.is_ok()) << scheduled.message();
    for (size_t a = 0; a < expected.size(); ++a) {
      ASSERT_EQ(found[a].size(), expected[a].size());
      for (size_t i = 0; i < expected[a].size(); ++i)
        ASSERT_NEAR(found[a][i], expected[a][i], 1e-9) << program_.args[a]->name << ", element " << i;
    }
    const Result<Program> again = replay(program_, s_.trace());
    ASSERT_TRUE(again.is_ok()) << again.message();
    EXPECT_EQ(to_text(*again), to_text(s_.program()));
  }

  const Schedule& schedule() const { return s_; }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  template <class T>
  const T& one_of(const std::vector<T>& from) {
    return from[static_cast<size_t>(pick(0, static_cast<int64_t>(from.size()) - 1))];
  }

  std::vector<std::vector<double>> random_arguments() {
    std::vector<std::vector<double>> args;
    for (const Buffer& b : program_.args) {
      args.emplace_back();
      if (b->role == BufferRole::kOutput) continue;
      for (int64_t i = 0; i < b->elements(); ++i)
        args.back().push_back(testing::random_number(random_, b->dtype));
    }
    return args;
  }

  std::vector<Tensor> computed(const Schedule& s) {
    std::vector<Tensor> found;
    visit(s.program().body, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kStore) found.push_back({stmt->buffer});
    });
    return found;
  }
  std::vector<Tensor> read(const Schedule& s) {
    std::vector<Tensor> found;
    visit_exprs(s.program().body, [&](const Expr& e) {
      if (e->kind == ExprKind::kLoad) found.push_back({e->buffer});
    });
    return found;
  }
  Axis any_axis(const Schedule& s) {
    std::vector<Axis> found;
    visit(s.program().body, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kFor) found.push_back({stmt->var});
    });
    return one_of(found);
  }

  // False when there is nothing to do it to.
  bool step(Schedule& s) {
    const std::vector<Tensor> stages = computed(s), loads = read(s);
    switch (pick(0, 17)) {
      case 0:
      case 1:
      case 2:
        s.split(any_axis(s), pick(1, 6));
        return true;
      case 3: {
        const std::vector<Axis> axes = s.axes(one_of(stages));
        if (axes.size() < 2) return false;
        const size_t first = static_cast<size_t>(pick(0, static_cast<int64_t>(axes.size()) - 2));
        s.fuse({axes[first], axes[first + 1]});
        return true;
      }
      case 4:
      case 5: {
        std::vector<Axis> axes = s.axes(one_of(stages));
        if (axes.size() < 2) return false;
        std::shuffle(axes.begin(), axes.end(), random_);
        axes.resize(static_cast<size_t>(pick(2, static_cast<int64_t>(axes.size()))));
        s.reorder(axes);
        return true;
      }
      case 6:
      case 7:
      case 8:
        s.compute_at(one_of(stages), any_axis(s));
        return true;
      case 9:
        s.cache_write(one_of(stages), MemoryScope::kGlobal);
        return true;
      case 10:
        s.cache_read(one_of(loads), MemoryScope::kGlobal, one_of(stages));
        return true;
      case 11:
        s.inline_compute(one_of(stages));
        return true;
      case 12: {
        const Tensor sum = one_of(stages);
        s.decompose_reduction(sum, any_axis(s));
        if (pick(0, 1) == 0) s.skip_zeros(sum);
        return true;
      }
      case 13:
        pack(s, one_of(loads));
        return true;
      case 14:
        if (pick(0, 1) == 0)
          s.unroll(any_axis(s));
        else
          s.dot(any_axis(s));
        return true;
      case 16: {
        const std::vector<Axis> axes = s.axes(one_of(stages));
        if (axes.size() < 2) return false;
        const size_t first = static_cast<size_t>(pick(0, static_cast<int64_t>(axes.size()) - 2));
        s.skew(axes[first], axes[first + 1], pick(1, 3), pick(1, 3));
        return true;
      }
      case 15:  // a copy of a constant, where cache_read made one
        s.precompute(one_of(stages));
        return true;
      default: {
        const int64_t kind = pick(0, 3);
        if (kind == 0)
          s.parallel(any_axis(s));
        else if (kind == 1)
          s.vectorize_rows(any_axis(s));
        else
          s.vectorize(any_axis(s));
        return true;
      }
    }
  }

  void pack(Schedule& s, const Tensor& t) {
    std::vector<PackDim> dims;
    for (size_t d = 0; d < t.buffer->shape.size(); ++d) {
      const int64_t factor = pick(1, 4);
      dims.push_back({static_cast<int>(d), factor});
      if (factor > 1) dims.push_back({static_cast<int>(d), factor, true});
    }
    std::shuffle(dims.begin(), dims.end(), random_);
    s.pack(t, dims);
  }

  std::mt19937 random_;
  Program program_;
  Schedule s_;
};

// Returns all traces.
std::string run(const std::function<Program(std::mt19937&)>& make, uint32_t schedules, int steps) {
  std::string traces;
  int64_t drawn = 0;
  for (const uint32_t seed : Seeds(/*fixed=*/1, schedules)) {
    std::mt19937 random(seed);
    RandomSchedule schedule(make(random), seed);
    schedule.draw(steps);
    schedule.check();
    traces += schedule.schedule().trace();
    ++drawn;
  }
  EXPECT_GT(std::count(traces.begin(), traces.end(), '\n'), drawn * steps / 2)
      << "too many primitives were refused for this test to say much";
  return traces;
}

int64_t between(std::mt19937& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

TEST(ScheduleRandom, TwoElementwiseStages) {
  run([](std::mt19937& r) { return testing::two_stages(between(r, 1, 13), between(r, 0, 1) == 1); }, 400, 8);
}

TEST(ScheduleRandom, Matmul) {
  run([](std::mt19937& r) { return testing::matmul(between(r, 1, 7), between(r, 1, 9), between(r, 1, 6)); },
      300, 12);
}

TEST(ScheduleRandom, ByteMatmulByDotProducts) {
  const std::string traces = run(
      [](std::mt19937& r) {
        const int64_t k = between(r, 0, 1) == 0 ? 4 : between(r, 1, 9);
        return testing::typed_matmul(DType::kUInt8, DType::kInt8, between(r, 1, 4), between(r, 1, 9), k);
      },
      300, 12);
  EXPECT_NE(traces.find("dot("), std::string::npos);
}

// Tile intrinsics under primitives that do not know them.
TEST(ScheduleRandom, ProductsOfTiles) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, 60)) {
    std::mt19937 r(seed);
    const bool bytes = between(r, 0, 1) == 0;
    const DType a = bytes ? DType::kUInt8 : DType::kBFloat16, b = bytes ? DType::kInt8 : DType::kBFloat16;
    const testing::TileShape tile{
        .rows = between(r, 1, 16), .down = between(r, 1, 2), .across = between(r, 1, 2)};
    const Program math = testing::typed_matmul(a, b, between(r, 1, 20), between(r, 2, 40), between(r, 5, 70));
    const Schedule tiled = testing::tiled_matmul(math, tile);
    ASSERT_FALSE(tiled.refused()) << tiled.finish().message();
    RandomSchedule schedule(math, tiled, seed);
    schedule.draw(8);
    schedule.check();
    EXPECT_NE(schedule.schedule().trace().find("tensorize("), std::string::npos);
  }
}

// Sums that begin with those of other terms, under primitives that do not know it.
TEST(ScheduleRandom, CarriedSums) {
  std::string traces;
  for (const uint32_t seed : Seeds(/*fixed=*/1, 300)) {
    std::mt19937 r(seed);
    const Program math = testing::matmul(between(r, 1, 7), between(r, 2, 9), between(r, 1, 6));
    Schedule s(math);
    const Tensor sum = s.tensor("C");
    const auto [k] = s.reduce_axes<1>(sum);
    const Tensor part = s.rfactor(sum, s.split(k, between(r, 1, 4)).outer);
    const auto [i, j] = s.axes<2>(sum);
    const auto [block] = s.reduce_axes<1>(sum);
    const auto [tile, row] = s.split(i, between(r, 1, 3));
    s.reorder({block, tile, row, j});
    s.compute_at(part, tile);
    const std::vector<Axis> own = s.axes(part);
    s.decompose_reduction(part, own.front());
    s.carry_sums(part, sum);
    if (s.refused()) continue;  // rows that do not fill the last tile
    RandomSchedule schedule(math, s, seed);
    schedule.draw(10);
    schedule.check();
    traces += schedule.schedule().trace();
  }
  EXPECT_NE(traces.find("carry_sums("), std::string::npos);
}

TEST(ScheduleRandom, DenseWithBiasAndRelu) {
  run([](std::mt19937& r) { return testing::dense(between(r, 1, 7), between(r, 1, 9), between(r, 1, 6)); },
      300, 14);
}

TEST(ScheduleRandom, Convolution) {
  run(
      [](std::mt19937& r) {
        return testing::conv2d({.n = between(r, 1, 2),
                                .ic = between(r, 1, 3),
                                .h = between(r, 3, 5),
                                .w = between(r, 3, 5),
                                .oc = between(r, 1, 4),
                                .kh = between(r, 1, 2),
                                .kw = between(r, 1, 2),
                                .stride = between(r, 1, 3),
                                .padding = between(r, 0, 2),
                                .dilation = between(r, 1, 2)});
      },
      100, 16);
}

}  // namespace
}  // namespace tuner
