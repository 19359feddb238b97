// Epilogues for tests: every activation, and the other parts drawn, in any order that a workload can have.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "templates/workload/workload.h"

namespace tuner::testing {

inline constexpr Activation kActivations[] = {
    Activation::kNone,       Activation::kRelu,      Activation::clip(-0.25F, 0.75F),
    Activation::leaky(0.1F), Activation::leaky(-3),  Activation::kSigmoid,
    Activation::kSilu,       Activation::kHardSwish, Activation::kTanh,
    Activation::kGelu,       Activation::kGeluTanh};

// Gives the product this activation, and parts beside it, in an order of their own. `in_place`: a residual
// may lie on out.
template <class Product>
void draw_epilogue(Product& w, const Activation& activation, bool in_place, std::mt19937_64& random) {
  const auto flag = [&] { return random() % 2 == 0; };
  const bool narrow = requantises(w), integer = w.dtype == DType::kInt8;
  w.activation = activation;
  w.bias = flag();
  w.scale = !integer && flag();
  w.accumulate = in_place && !narrow && random() % 4 == 0;
  w.residual = !w.accumulate && random() % 4 != 0;
  w.post.clear();
  if (narrow) return;
  std::vector<EpiloguePart> parts = epilogue_parts(w);
  std::ranges::shuffle(parts, random);
  set_order(w, std::move(parts));
}

}  // namespace tuner::testing
