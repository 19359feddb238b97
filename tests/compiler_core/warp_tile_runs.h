// Products by tiles of a warp, emulated and held against the reference; and damaged ones.
#pragma once

#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu.h"
#include "tests/compiler_core/warp_tile_schedules.h"

namespace tuner::testing {

inline std::vector<std::vector<float>> random_operands(const Program& math, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<std::vector<float>> inputs;
  for (const Buffer& b : math.args) {
    if (b->role == BufferRole::kOutput) continue;
    inputs.emplace_back();
    for (int64_t i = 0; i < b->elements(); ++i) {
      const float x = static_cast<float>(rng() % 2001) / 1000 - 1;
      inputs.back().push_back(b->dtype == DType::kBFloat16  ? rounded_to_bfloat16(x)
                              : b->dtype == DType::kFloat16 ? rounded_to_float16(x)
                                                            : x);
    }
  }
  return inputs;
}

// "": every element is right and nothing was found; else what was.
inline std::string verdict(const GpuProgram& gpu, const Program& math, uint64_t seed = 1) {
  const std::vector<std::vector<float>> inputs = random_operands(math, seed);
  const auto expected = reference_answer(math, inputs);
  if (!expected) return expected.message();
  const auto run = run_emulated(gpu, inputs);
  if (!run) return run.message();
  if (!run->faults.empty()) return run->faults.front();
  for (size_t i = 0; i < expected->back().size(); ++i)
    if (!(std::abs(run->outputs.back()[i] - expected->back()[i]) <= 1e-4))
      return str("out ", i, " is ", run->outputs.back()[i], ", expected ", expected->back()[i]);
  return "";
}

inline Result<GpuProgram> lowered(const Schedule& s) {
  ASSIGN_OR_RETURN(const Program scheduled, s.finish());
  return lower_gpu(scheduled);
}

inline int statements(const GpuProgram& gpu, StmtKind kind) {
  int found = 0;
  visit(gpu.kernels[0].body, [&](const Stmt& s) { found += s->kind == kind ? 1 : 0; });
  return found;
}

inline Program float_product(const WarpTiles& o, int64_t m, int64_t n, int64_t k) {
  return tile_product(DType::kFloat32, m, n, k, o.m_first, o.k_first, o.terms);
}

// Kernels as lowered, with one statement changed.
inline GpuProgram damaged(const GpuProgram& gpu, const std::function<Stmt(const Stmt&)>& change) {
  const std::function<Stmt(const Stmt&)> rebuild = [&](const Stmt& s) -> Stmt {
    const Stmt mapped = map_children(
        s, [](const Expr& e) { return e; }, rebuild);
    return mapped == nullptr ? mapped : change(mapped);
  };
  GpuProgram result = gpu;
  for (GpuKernel& kernel : result.kernels) kernel.body = rebuild(kernel.body);
  return result;
}

}  // namespace tuner::testing
