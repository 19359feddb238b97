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
#include "compiler_core/ir/intrinsic.h"
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

// All of a byte.
std::vector<float> integers(int64_t n, std::mt19937& random, DType dtype) {
  std::vector<float> result(static_cast<size_t>(n));
  for (float& v : result)
    v = static_cast<float>(static_cast<int>(random() % 256) - (dtype == DType::kUInt8 ? 0 : 128));
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
    if (b->role != BufferRole::kOutput)
      s.inputs.push_back(is_float(b->dtype) ? values(b->elements(), random, scale)
                                            : integers(b->elements(), random, b->dtype));
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

// The loads ahead of a double buffer, the copies ahead of a pipeline: without their guard one tile too many is read, as
// zeros, and thrown away. That is no damage.
bool loads_ahead(const Stmt& guard) {
  bool all = true, is_copy = false;
  visit(guard, [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore) all = all && s->buffer->name.ends_with(".staged");
    is_copy |= is_async(*s, "copy");
  });
  return all || is_copy;
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

// The next stage of a double buffer or pipeline, in what is read or in what is stored. It is the first index.
std::vector<Expr> other_stage(std::vector<Expr> indices) {
  int64_t stages = 0;
  if (!indices.empty() && indices[0]->kind == ExprKind::kBinary &&
      indices[0]->binary_op == BinaryOp::kFloorMod && is_const_int(indices[0]->operands[1], &stages))
    indices[0] = floor_mod(indices[0]->operands[0] + Expr(1), stages);
  return indices;
}
Stmt store_other_stage(const Stmt& s) {
  if (!stores(s, MemoryScope::kShared)) return s;
  std::vector<Expr> indices = other_stage(s->indices);
  return indices[0].same_as(s->indices[0]) ? s : make_store(s->buffer, std::move(indices), s->value);
}
Stmt load_other_stage(const Stmt& s) {
  if (s->kind != StmtKind::kStore && s->kind != StmtKind::kIntrinsic) return s;
  const std::function<Expr(const Expr&)> walk = [&](const Expr& e) -> Expr {
    if (e->kind != ExprKind::kLoad || e->buffer->scope != MemoryScope::kShared) return map_children(e, walk);
    std::vector<Expr> indices = other_stage(e->operands);
    return indices.empty() || indices[0].same_as(e->operands[0]) ? e : load(e->buffer, std::move(indices));
  };
  return map_children(s, walk, [](const Stmt& child) { return child; });
}

// --- asynchronous copies and tiles of a warp ---

Stmt drop_wait(const Stmt& s) { return is_async(*s, "wait") ? nullptr : s; }
Stmt drop_commit(const Stmt& s) { return is_async(*s, "commit") ? nullptr : s; }
Stmt drop_copy(const Stmt& s) { return is_async(*s, "copy") ? nullptr : s; }
Stmt wait_less(const Stmt& s) {
  int64_t in_flight = 0;
  return is_async(*s, "wait") && is_const_int(s->operands[0], &in_flight) ? make_async_wait(in_flight + 1)
                                                                          : s;
}
// An operand in registers is that of the next tile. (Sums that begin at 0 in another order are no damage.)
Stmt other_registers(const Stmt& s) {
  if (s->name == "mma.zero") return s;
  const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
  for (size_t o = 0; i != nullptr && o < s->operands.size(); ++o) {
    const Expr& operand = s->operands[o];
    if (operand->buffer->scope != MemoryScope::kRegister ||
        operand->buffer->shape.back() <= i->operands[o].registers)
      continue;
    auto node = std::make_shared<StmtNode>(*s);
    std::vector<Expr> at = operand->operands;
    at.back() = floor_mod(at.back() + i->operands[o].registers, operand->buffer->shape.back());
    node->operands[o] = load(operand->buffer, std::move(at));
    return node;
  }
  return s;
}
// Matrices are transposed on their way that are not to be, and the other way round.
Stmt transpose_matrices(const Stmt& s) {
  if (s->kind != StmtKind::kIntrinsic || !s->name.starts_with("ldmatrix.")) return s;
  auto node = std::make_shared<StmtNode>(*s);
  std::string& lines = node->name;
  const std::string last = lines.substr(lines.size() - 2);
  lines.replace(lines.size() - 2, 2, last == "mk" ? "km" : last == "km" ? "mk" : last == "kn" ? "nk" : "kn");
  return node;
}

// Stores to plain addresses of a tile that is read through its xor layout.
Stmt store_unswizzled(const Stmt& s) {
  int64_t unit = 0, rows = 0, alike = 1;
  const std::string& layout = s->kind == StmtKind::kStore ? s->buffer->layout : std::string();
  const bool groups = layout.starts_with("groups:");
  if (!stores(s, MemoryScope::kShared) ||
      std::sscanf(layout.c_str() + (groups ? 7 : 0), "xor:%ld,%ld,%ld", &unit, &rows, &alike) < 2)
    return s;
  const size_t column = s->indices.size() - (groups ? 2 : 1);
  Expr row = 0;
  for (size_t d = 0; d < column; ++d) row = row * Expr(s->buffer->shape[d]) + s->indices[d];
  std::vector<Expr> indices = s->indices;
  indices[column] =
      bit_xor(floor_div(indices[column], unit), floor_mod(floor_div(row, alike), rows)) * Expr(unit) +
      floor_mod(s->indices[column], unit);
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

// Zeros of a copy straight into shared memory: what lies beyond the operand is read in their place.
// Of selects in each other the innermost, which is the padding of an image.
Expr without_zeros(const Expr& e) {
  if (e->kind != ExprKind::kSelect) return e;
  const Expr& inner = e->operands[1];
  return inner->kind == ExprKind::kSelect ? select(e->operands[0], without_zeros(inner), e->operands[2])
                                          : inner;
}
Stmt drop_copied_zeros(const Stmt& s) {
  const bool zeros = stores(s, MemoryScope::kShared) && s->value->kind == ExprKind::kSelect;
  return zeros ? make_store(s->buffer, s->indices, without_zeros(s->value)) : s;
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
                       {"copied zeros dropped", drop_copied_zeros},
                       {"dropped wait", drop_wait},
                       {"dropped commit", drop_commit},
                       {"dropped copy", drop_copy},
                       {"waits for one group less", wait_less},
                       {"registers of another tile", other_registers},
                       {"transposed matrices", transpose_matrices},
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

TEST(CudaMutation, ProductOnTensorCoresWithAPipeline) {
  for (const int64_t unrolled : {0, 1}) {
    const Sample s =
        sample("v1 matmul b=1 m=37 n=40 k=168 ta=0 tb=0 bias=1 act=relu dtype=bfloat16 const=none",
               "matmul_mma_cuda",
               {{"warps_m", 1},
                {"warps_n", 2},
                {"tiles_m", 2},
                {"tiles_n", 2},
                {"block_k", 32},
                {"stages", 3},
                {"unroll_stages", unrolled},
                {"split_k", 1},
                {"group_m", 1}});
    expect_places(expect_all_caught(s),
                  {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
                   "waits for one group less", "registers of another tile", "transposed matrices",
                   "copied zeros dropped", "one-sided swizzle", "output stored twice", "loop too short"});
  }
}

TEST(CudaMutation, ConvolutionOnTensorCoresWithAPipeline) {
  const Sample s = sample(
      "v1 conv2d n=1 ic=16 ih=7 iw=6 oc=24 kh=3 kw=3 stride=1,1 pad=1,1,1,1 dil=1,1 groups=1 bias=1 act=relu "
      "dtype=bfloat16 layout=NHWC const=weight",
      "conv2d_nhwc_mma_cuda",
      {{"warps_m", 2},
       {"warps_n", 1},
       {"tiles_m", 1},
       {"tiles_n", 2},
       {"block_k", 32},
       {"stages", 3},
       {"unroll_stages", 0},
       {"split_k", 1},
       {"group_m", 1}});
  expect_places(expect_all_caught(s),
                {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
                 "waits for one group less", "registers of another tile", "copied zeros dropped",
                 "one-sided swizzle", "output stored twice", "loop too short"});
}

TEST(CudaMutation, ProductOfBytesInWords) {
  const Sample s = sample(
      "v1 matmul b=1 m=37 n=40 k=132 ta=0 tb=0 bias=1 act=relu dtype=int8 const=none", "matmul_dp4a_cuda",
      {{"layout_a", 1}, {"double_buffer", 1}, {"block_k", 8}, {"unroll_k", 8}, {"split_k", 1}});
  expect_places(expect_all_caught(s),
                {"dropped barrier", "guard off by one", "missing predicate", "wrong stage stored",
                 "wrong stage read", "one-sided swizzle", "output stored twice", "loop too short"});
}

// k along the rows of one operand, across those of the other: both ways to load fragments.
TEST(CudaMutation, ProductOfFloat32OnTensorCores) {
  const Sample s = sample("v1 matmul b=1 m=37 n=40 k=100 ta=0 tb=0 bias=1 act=relu dtype=float32 const=none",
                          "matmul_tf32x3_cuda",
                          {{"warps_m", 1},
                           {"warps_n", 2},
                           {"tiles_m", 2},
                           {"tiles_n", 2},
                           {"block_k", 32},
                           {"stages", 2},
                           {"split_k", 1},
                           {"group_m", 1}});
  expect_places(expect_all_caught(s),
                {"dropped barrier", "dropped intrinsic", "dropped wait", "dropped commit", "dropped copy",
                 "waits for one group less", "registers of another tile", "transposed matrices",
                 "copied zeros dropped", "one-sided swizzle", "output stored twice", "loop too short"});
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
