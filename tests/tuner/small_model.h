// A small network as a compiled model in a folder: three convolutions, of which two are the same with the
// same weights, and a product; two outputs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/runtime/kernel.h"
#include "tests/random_seed.h"
#include "tests/tuner/packed_model.h"

namespace tuner::testing {

using Numbers = std::vector<double>;

class SmallModel {
 public:
  // x float32[1, 3, 10, 12] -> y float32[1, 10], features float32[1, 8, 10, 12]. Models of other seeds have
  // other weights.
  explicit SmallModel(uint32_t seed = first_seed(1)) : random_(seed), builder_("small", model_evaluator()) {
    using graph::ValueId;
    const ValueId x = builder_.input("x", {DType::kFloat32, {1, 3, 10, 12}});
    const ValueId w1 = weights("w1", {8, 3, 3, 3}), b1 = weights("b1", {8});
    const ValueId w2 = weights("w2", {8, 8, 1, 1}), b2 = weights("b2", {8});
    const ValueId w3 = weights("w3", {960, 10}), b3 = weights("b3", {10});
    const graph::Attributes padded{{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
    const ValueId c1 = add("Relu", {add("Conv", {x, w1, b1}, padded)});
    const ValueId c2 = add("Relu", {add("Conv", {c1, w2, b2})});
    const ValueId c3 = add("Relu", {add("Conv", {c2, w2, b2})}, {}, "features");
    const ValueId flat = add("Flatten", {c3});
    const ValueId y = add("Relu", {add("Gemm", {flat, w3, b3})}, {}, "y");
    graph_ = builder_.finish({y, c3});
  }

  const graph::Graph& network() const { return graph_; }

  // With default configs.
  ModelToPack packed(const std::string& name, const Target& target) const {
    return packed_model(graph_, name, target);
  }

  // Writes the folder, as `tuner compile` does.
  Status write(const std::string& folder, const std::string& name, const Target& target) const {
    return write_packed(packed(name, target), folder);
  }

  Numbers input(uint32_t seed) const {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> numbers(-1, 1);
    Numbers out(360);
    for (double& number : out) number = numbers(random);
    return out;
  }
  std::vector<Numbers> answer(const Numbers& x) const {
    auto answer = run_reference(graph_, {x}, model_evaluator());
    CHECK(answer.is_ok()) << answer.message();
    return *std::move(answer);
  }

  // The program's side of a run.
  struct Memory {
    AlignedBuffer x{1440}, y{40}, features{3840};
    explicit Memory(const Numbers& input) { std::ranges::copy(input, x.as<float>()); }
    std::vector<const void*> inputs() const { return {x.data()}; }
    std::vector<void*> outputs() const { return {y.data(), features.data()}; }
    void expect(const std::vector<Numbers>& answer) const {
      for (const auto& [found, expected] :
           {std::pair(y.as<float>(), &answer[0]), std::pair(features.as<float>(), &answer[1])})
        for (size_t i = 0; i < expected->size(); ++i)
          ASSERT_NEAR(found[i], (*expected)[i], 1e-4) << "element " << i << " of " << expected->size();
    }
  };

 private:
  graph::ValueId weights(const std::string& name, std::vector<int64_t> shape) {
    const graph::TensorType type{DType::kFloat32, std::move(shape)};
    std::uniform_real_distribution<float> numbers(-0.3F, 0.3F);
    Numbers drawn(static_cast<size_t>(type.elements()));
    for (double& number : drawn) number = numbers(random_);
    return builder_.constant(name, type, graph::Constant::of(drawn, type.dtype));
  }
  graph::ValueId add(const std::string& op, std::vector<graph::ValueId> inputs,
                     graph::Attributes attributes = {}, const std::string& result = "") {
    const std::string name = str(op, "_", ++nodes_);
    auto made = builder_.add({.name = name,
                              .op = op,
                              .attributes = std::move(attributes),
                              .inputs = std::move(inputs),
                              .outputs = {}},
                             {result.empty() ? name + "_out" : result});
    CHECK(made.is_ok()) << made.message();
    return made->at(0);
  }

  std::mt19937 random_;
  graph::GraphBuilder builder_;
  graph::Graph graph_;
  int nodes_ = 0;
};

}  // namespace tuner::testing
