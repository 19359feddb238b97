// Damage to kernels that really come out of the CUDA templates: whatever place it hits, it must be caught, by
// the emulator's checks or by a wrong answer. The undamaged kernels report nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu.h"
#include "templates/schedule_template.h"
#include "templates/workload/tolerance.h"

namespace tuner {
namespace {

// A config of a task as kernels, its data and its answer.
struct Sample {
  GpuProgram program;
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<double>> answers;
  Tolerance tolerance;
};

// Multiples of scale / 256 in [-scale, scale).
std::vector<float> values(int64_t n, std::mt19937& random, float scale) {
  std::vector<float> result(static_cast<size_t>(n));
  for (float& v : result) v = static_cast<float>(static_cast<int>(random() % 512) - 256) / 256.0f * scale;
  return result;
}

Sample sample(const std::string& key, const std::string& template_name,
              const std::map<std::string, int64_t>& knobs = {}, float scale = 1) {
  const Workload workload = *workload_from_key(key);
  const Target target = *parse_target("cuda -arch=sm_80");
  const AnyTemplate* t = find_template(template_name);
  CHECK(t != nullptr) << template_name;
  const auto instance = t->apply(workload, target);
  CHECK(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  std::map<std::string, int64_t> config = space.at(space.default_index()).values();
  for (const auto& [knob, value] : knobs) config[knob] = value;
  const Result<Program> scheduled = (*instance)->instantiate(Config(config));
  CHECK(scheduled.is_ok()) << scheduled.message();
  const Result<GpuProgram> program = lower_gpu(*scheduled);
  CHECK(program.is_ok()) << program.message();
  Sample s{.program = *program, .inputs = {}, .answers = {}, .tolerance = tolerance_of(workload)};
  std::mt19937 random(7);
  const Program math = workload.compute();
  for (const Buffer& b : math.args)
    if (b->role != BufferRole::kOutput) s.inputs.push_back(values(b->elements(), random, scale));
  const auto answers = reference_answer(math, s.inputs);
  CHECK(answers.is_ok()) << answers.message();
  s.answers = *answers;
  return s;
}

// Empty when all is well, else what was found.
std::string findings(const Sample& s, const GpuProgram& program) {
  const Result<EmulatedRun> run = run_emulated(program, s.inputs);
  if (!run) return "refused: " + run.message();
  if (!run->faults.empty()) return run->faults[0];
  for (size_t o = 0; o < s.answers.size(); ++o)
    for (size_t i = 0; i < s.answers[o].size(); ++i) {
      const double expected = s.answers[o][i], found = static_cast<double>(run->outputs[o][i]);
      if (!(std::abs(found - expected) <= s.tolerance.absolute + s.tolerance.relative * std::abs(expected)))
        return str("element ", i, " is ", found, ", expected ", expected);
    }
  return {};
}

// Replaces the `which`-th statement for which `damage` returns another one; false when there is none.
using Damage = std::function<Stmt(const Stmt&)>;
bool damage_one(Stmt& body, int& which, const Damage& damage) {
  bool done = false;
  const std::function<Stmt(const Stmt&)> walk = [&](const Stmt& s) -> Stmt {
    if (s == nullptr || done) return s;
    if (Stmt damaged = damage(s); damaged != s && which-- == 0) {
      done = true;
      return damaged;
    }
    return map_children(
        s, [](const Expr& e) { return e; }, walk);
  };
  body = walk(body);
  return done;
}

// Every program with one place damaged.
std::vector<GpuProgram> damaged(const GpuProgram& program, const Damage& damage) {
  std::vector<GpuProgram> result;
  for (size_t k = 0; k < program.kernels.size(); ++k)
    for (int place = 0;; ++place) {
      GpuProgram copy = program;
      int which = place;
      if (!damage_one(copy.kernels[k].body, which, damage) || copy.kernels[k].body == nullptr) break;
      result.push_back(std::move(copy));
    }
  if (program.packing != nullptr)
    for (GpuProgram& packing : damaged(*program.packing, damage)) {
      result.push_back(program);
      result.back().packing = std::make_shared<const GpuProgram>(std::move(packing));
    }
  return result;
}

bool stores(const Stmt& s, MemoryScope scope) {
  return s->kind == StmtKind::kStore && s->buffer->scope == scope;
}

Stmt drop_barrier(const Stmt& s) { return s->kind == StmtKind::kBarrier ? nullptr : s; }
Stmt drop_intrinsic(const Stmt& s) { return s->kind == StmtKind::kIntrinsic ? nullptr : s; }
Stmt drop_output_store(const Stmt& s) { return stores(s, MemoryScope::kGlobal) ? nullptr : s; }
Stmt drop_shared_store(const Stmt& s) { return stores(s, MemoryScope::kShared) ? nullptr : s; }
Stmt drop_register_store(const Stmt& s) { return stores(s, MemoryScope::kRegister) ? nullptr : s; }

// The loads ahead of a double buffer: without their guard one tile too many is read, as zeros, and thrown
// away. That is no damage.
bool loads_ahead(const Stmt& guard) {
  bool all = true;
  visit(guard, [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore) all = all && s->buffer->name.ends_with(".staged");
  });
  return all;
}

// < becomes <=: one iteration or element too many.
Stmt loosen_guard(const Stmt& s) {
  if (s->kind != StmtKind::kIf || loads_ahead(s)) return s;
  std::vector<Expr> conditions = conjuncts(s->condition);
  for (Expr& c : conditions) {
    if (c->kind != ExprKind::kBinary || c->binary_op != BinaryOp::kLt) continue;
    c = c->operands[0] <= c->operands[1];
    return make_if(conjunction(conditions), s->body, s->else_body);
  }
  return s;
}
Stmt drop_guard(const Stmt& s) {
  return s->kind == StmtKind::kIf && s->else_body == nullptr && !loads_ahead(s) ? s->body : s;
}

// The other stage of a double buffer, in what is read or in what is stored.
Expr other_stage(const Expr& e) {
  int64_t stages = 0;
  if (e->kind == ExprKind::kBinary && e->binary_op == BinaryOp::kFloorMod &&
      is_const_int(e->operands[1], &stages) && stages == 2)
    return floor_mod(e->operands[0] + Expr(1), 2);
  return map_children(e, other_stage);
}
Stmt store_other_stage(const Stmt& s) {
  if (!stores(s, MemoryScope::kShared)) return s;
  std::vector<Expr> indices;
  bool changed = false;
  for (const Expr& index : s->indices) {
    indices.push_back(other_stage(index));
    changed = changed || !indices.back().same_as(index);
  }
  return changed ? make_store(s->buffer, indices, s->value) : s;
}
Stmt load_other_stage(const Stmt& s) {
  if (s->kind != StmtKind::kStore) return s;
  const std::function<Expr(const Expr&)> walk = [&](const Expr& e) -> Expr {
    if (e->kind == ExprKind::kLoad && e->buffer->scope == MemoryScope::kShared)
      return map_children(e, other_stage);
    return map_children(e, walk);
  };
  const Expr value = walk(s->value);
  return value.same_as(s->value) ? s : make_store(s->buffer, s->indices, value);
}

// Stores to plain addresses of a tile that is read through its xor layout.
Stmt store_unswizzled(const Stmt& s) {
  int64_t unit = 0, rows = 0;
  if (!stores(s, MemoryScope::kShared) ||
      std::sscanf(s->buffer->layout.c_str(), "xor:%ld,%ld", &unit, &rows) != 2)
    return s;
  Expr row = 0;
  for (size_t d = 0; d + 1 < s->indices.size(); ++d) row = row * Expr(s->buffer->shape[d]) + s->indices[d];
  std::vector<Expr> indices = s->indices;
  indices.back() = bit_xor(floor_div(indices.back(), unit), floor_mod(row, rows)) * Expr(unit) +
                   floor_mod(s->indices.back(), unit);
  return make_store(s->buffer, indices, s->value);
}

// Every store to global memory goes to the place of its neighbour's neighbour in the first dimension that has
// one.
Stmt store_elsewhere(const Stmt& s) {
  if (!stores(s, MemoryScope::kGlobal)) return s;
  std::vector<Expr> indices = s->indices;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (s->buffer->shape[d] == 1) continue;
    indices[d] = floor_div(indices[d], 2) * Expr(2);
    return make_store(s->buffer, indices, s->value);
  }
  return s;
}

bool is_ahead(const Buffer& b) { return b->name.ends_with(".ahead"); }

// Padding that is not there: what lies beside the image is read in its place. (Zeros beyond the last channel or
// step of k meet zeros of the other operand, or sums that nobody stores: those are there to be safe, not to be
// right.)
Stmt drop_zero_fill(const Stmt& s) {
  if (s->kind != StmtKind::kStore || !is_ahead(s->buffer) || s->value->kind != ExprKind::kSelect ||
      s->value->operands[1]->buffer->name != "data")
    return s;
  return make_store(s->buffer, s->indices, s->value->operands[1]);
}

// The stores of a copy before its loads.
Stmt store_before_load(const Stmt& s) {
  if (s->kind != StmtKind::kAllocate || !is_ahead(s->buffer) || s->body->kind != StmtKind::kSeq) return s;
  std::vector<Stmt> swapped(s->body->stmts.rbegin(), s->body->stmts.rend());
  return make_allocate(s->buffer, make_seq(std::move(swapped)));
}

// One iteration less.
Stmt shorten_loop(const Stmt& s) {
  if (s->kind != StmtKind::kFor || s->extent < 2) return s;
  return make_for(s->var, s->extent - 1, s->body, s->axis, s->loop);
}

struct Kind {
  const char* name;
  Damage damage;
};
const Kind kKinds[] = {{"dropped barrier", drop_barrier},
                       {"dropped intrinsic", drop_intrinsic},
                       {"dropped output store", drop_output_store},
                       {"dropped shared store", drop_shared_store},
                       {"dropped register store", drop_register_store},
                       {"guard off by one", loosen_guard},
                       {"missing predicate", drop_guard},
                       {"wrong stage stored", store_other_stage},
                       {"wrong stage read", load_other_stage},
                       {"one-sided swizzle", store_unswizzled},
                       {"output stored twice", store_elsewhere},
                       {"zero fill dropped", drop_zero_fill},
                       {"stored before loaded", store_before_load},
                       {"loop too short", shorten_loop}};

// Damages every place of every kind; returns how many of each kind there were.
std::map<std::string, int> expect_all_caught(const Sample& s) {
  EXPECT_EQ(findings(s, s.program), "") << to_text(s.program);
  std::map<std::string, int> places;
  for (const Kind& kind : kKinds)
    for (const GpuProgram& broken : damaged(s.program, kind.damage)) {
      EXPECT_NE(findings(s, broken), "")
          << kind.name << " went unseen, number " << places[kind.name] << " in\n"
          << to_text(broken);
      ++places[kind.name];
    }
  return places;
}

void expect_places(const std::map<std::string, int>& places, const std::vector<std::string>& kinds) {
  for (const std::string& kind : kinds) EXPECT_TRUE(places.contains(kind)) << kind << " found no place";
}

TEST(CudaMutation, MatmulWithDoubleBuffersAndSwizzle) {
  const Sample s =
      sample("v1 matmul b=1 m=37 n=41 k=50 ta=0 tb=0 bias=1 act=relu dtype=float32 const=none", "matmul_cuda",
             {{"layout_a", 1}, {"double_buffer", 1}, {"block_k", 8}, {"unroll_k", 8}});
  expect_places(expect_all_caught(s),
                {"dropped barrier", "guard off by one", "missing predicate", "wrong stage stored",
                 "wrong stage read", "one-sided swizzle", "output stored twice", "loop too short"});
}

TEST(CudaMutation, ConvolutionWithPaddingAndTails) {
  const Sample s = sample(
      "v1 conv2d n=1 ic=8 ih=9 iw=11 oc=10 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 act=relu "
      "dtype=float32 layout=NCHW const=none",
      "conv2d_nchw_cuda");
  expect_places(expect_all_caught(s),
                {"dropped barrier", "missing predicate", "output stored twice", "dropped shared store",
                 "loop too short", "zero fill dropped", "stored before loaded"});
}

TEST(CudaMutation, WeightsPackedAhead) {
  const Sample s = sample(
      "v1 conv2d n=1 ic=9 ih=6 iw=5 oc=11 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=0 act=none "
      "dtype=float32 layout=NCHW const=weight",
      "conv2d_implicit_gemm_cuda");
  ASSERT_NE(s.program.packing, nullptr);
  const GpuProgram packing = packing_alone(*s.program.packing);
  EXPECT_EQ(damaged(packing, store_elsewhere).size(), 1u);
  expect_places(expect_all_caught(s), {"dropped barrier", "dropped output store", "output stored twice"});
}

TEST(CudaMutation, SoftmaxReducedByShufflesAndSharedMemory) {
  // Values more than 88 apart: softmax of others does not depend on the maximum that is subtracted, for exp
  // does not overflow. Many rows, so that every part of a row holds the maximum of one.
  const Sample s = sample("v1 softmax rows=24 columns=301 dtype=float32", "softmax_cuda", {{"threads", 64}},
                          /*scale=*/32768);
  expect_places(expect_all_caught(s), {"dropped barrier", "dropped intrinsic", "dropped output store"});
}

}  // namespace
}  // namespace tuner
