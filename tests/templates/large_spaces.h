// Spaces whose products are 1e12 and more, with the constraints that templates write. Each has a default.
#pragma once

#include <string>
#include <vector>

#include "templates/space/knob.h"

namespace tuner::testing {

// A space while it is declared; keeps its constraints, so that they can be checked without the space.
struct Declared {
  ConfigSpace space;
  std::vector<IntExpr> constraints;
  void require(const IntExpr& constraint) {
    constraints.push_back(constraint);
    space.require(constraint);
  }
};

struct LargeSpace {
  const char* name;
  void (*declare)(Declared& d);
};

// A GPU matrix product: blocks, tiles of a thread, shared memory for several stages, registers, threads,
// vectors.
inline void declare_gpu_matmul(Declared& d) {
  const SplitKnob bm = d.space.split("block_m", 4096).at_most(512).try_first(64);
  const SplitKnob bn = d.space.split("block_n", 4096).at_most(512).try_first(64);
  const SplitKnob bk = d.space.split("block_k", 4096).at_most(128).try_first(8);
  const SplitKnob tm = d.space.split("thread_m", 32).try_first(4);
  const SplitKnob tn = d.space.split("thread_n", 32).try_first(4);
  const ChoiceKnob stages = d.space.choice("stages", {1, 2, 3, 4, 5, 6}).try_first(2);
  const ChoiceKnob vector_a = d.space.choice("vector_a", {1, 2, 4}).try_first(1);
  const ChoiceKnob vector_b = d.space.choice("vector_b", {1, 2, 4}).try_first(1);
  const ChoiceKnob unroll = d.space.choice("unroll", {1, 2, 4, 8, 16}).try_first(1);
  d.space.flag("pad_a");
  d.space.flag("pad_b");
  d.space.category("order", {"rows", "columns", "squares"});
  const IntExpr threads = (bm.inner() / tm.inner()) * (bn.inner() / tn.inner());
  d.require(bm.inner() % tm.inner() == 0);
  d.require(bn.inner() % tn.inner() == 0);
  d.require(threads >= 32 && threads <= 1024 && threads % 32 == 0);
  d.require(stages * bk.inner() * (bm.inner() + bn.inner()) * 4 <= 48 * 1024);
  d.require(tm.inner() * tn.inner() + tm.inner() + tn.inner() + 2 * stages <= 255);
  d.require(bk.inner() % vector_a == 0);
  d.require(bn.inner() % vector_b == 0 && tn.inner() % vector_b == 0);
  d.require(bk.inner() % unroll == 0);
  d.require(unroll * tm.inner() * tn.inner() <= 1024);
}

// One register budget over a long chain: eight factors whose product and whose weighted sum are bounded.
inline void declare_register_chain(Declared& d) {
  IntExpr product = 1, sum = 0;
  for (int i = 0; i < 8; ++i) {
    const SplitKnob k = d.space.split("k" + std::to_string(i), 32);
    product = product * k.inner();
    sum = sum + k.inner() * (1 + i % 3);
  }
  d.require(product <= 4096);
  d.require(sum <= 200);
}

// Loops around a convolution's tile: divisors only, tied by register, cache and parallelism bounds.
inline void declare_conv_tiles(Declared& d) {
  std::vector<SplitKnob> inner, outer;
  const std::pair<const char*, int64_t> axes[] = {{"oc", 960}, {"ic", 960}, {"oh", 360}, {"ow", 360}};
  for (const auto& [name, extent] : axes) {
    inner.push_back(d.space.split(std::string(name) + "_inner", extent).divisors_only().try_first(4));
    outer.push_back(d.space.split(std::string(name) + "_block", extent).divisors_only().try_first(4));
    d.require(outer.back().inner() % inner.back().inner() == 0);
  }
  const IntExpr registers =
      inner[3].inner() * inner[2].inner() * (inner[0].inner() / 4) + inner[0].inner() / 4;
  d.require(registers <= 32);
  d.require((outer[2].inner() + 2) * (outer[3].inner() + 2) * outer[1].inner() +
                outer[0].inner() * outer[1].inner() * 9 <=
            256 * 1024);
  d.require(outer[0].outer() * outer[2].outer() >= 4);
  d.require(inner[1].inner() * registers <= 512);
  d.space.choice("unroll", {0, 1, 2, 4, 8}).try_first(0);
  d.space.flag("pack");
}

// One linear budget over many knobs: every prefix has a sum of its own.
inline void declare_linear_budget(Declared& d) {
  IntExpr sum = 0;
  const int64_t weights[] = {1, 3, 7, 11, 17, 29, 5, 13};
  for (int i = 0; i < 8; ++i) {
    const SplitKnob k = d.space.split("w" + std::to_string(i), 48);
    sum = sum + k.inner() * weights[i];
  }
  d.require(sum <= 900);
  d.require(sum >= 86);
}

inline std::vector<LargeSpace> large_spaces() {
  return {{"gpu_matmul", declare_gpu_matmul},
          {"register_chain", declare_register_chain},
          {"conv_tiles", declare_conv_tiles},
          {"linear_budget", declare_linear_budget}};
}

}  // namespace tuner::testing
