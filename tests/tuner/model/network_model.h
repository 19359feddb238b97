// Networks of tests/models as graphs and compiled models, with an input and what the reference makes of it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/graph/reference.h"
#include "tests/models/networks.h"
#include "tests/random_seed.h"
#include "tests/tuner/packed_model.h"

namespace tuner::testing {

class NetworkModel {
 public:
  // Small images and few channels: the structure is that of the whole network.
  NetworkModel(const std::string& name, int64_t narrower, int64_t image) : name_(name) {
    auto bytes = network(name, {.image = image, .batch = 1, .narrower = narrower, .seed = first_seed(11)});
    CHECK(bytes.is_ok()) << bytes.message();
    bytes_ = *std::move(bytes);
    auto read = read_model(bytes_, nullptr, {}, model_evaluator());
    CHECK(read.is_ok()) << read.message();
    graph_ = *std::move(read);
    std::mt19937 random(first_seed(12));
    std::uniform_real_distribution<float> numbers(-1, 1);
    input_.resize(static_cast<size_t>(graph_[graph_.inputs[0]].type.elements()));
    for (float& x : input_) x = numbers(random);
    const auto answer = run_reference(graph_, {{input_.begin(), input_.end()}}, model_evaluator());
    CHECK(answer.is_ok()) << answer.message();
    answer_ = (*answer)[0];
  }

  NetworkModel(const NetworkModel&) = delete;

  ModelToPack packed(const Target& target) const { return packed_model(graph_, name_, target); }
  const std::vector<float>& input() const { return input_; }
  size_t outputs() const { return answer_.size(); }
  // Within 1e-4 of the largest output.
  void expect_right(const float* found) const {
    double most = 0, error = 0;
    for (size_t k = 0; k < answer_.size(); ++k) {
      ASSERT_FALSE(std::isnan(found[k])) << k;
      most = std::max(most, std::fabs(answer_[k]));
      error = std::max(error, std::fabs(static_cast<double>(found[k]) - answer_[k]));
    }
    ASSERT_GT(most, 0);
    EXPECT_LE(error, 1e-4 * most) << name_;
  }

 private:
  std::string name_, bytes_;  // the graph's constants are views of the bytes
  graph::Graph graph_;
  std::vector<float> input_;
  std::vector<double> answer_;  // of the only output
};

}  // namespace tuner::testing
