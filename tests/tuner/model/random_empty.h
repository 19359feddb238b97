// Random models whose tensors often have an extent of 0, and what they compute: each node's result is found
// while the node is written, by plain loops after ONNX's definitions, and by nothing of ours.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/tuner/model/graph_message.h"

namespace tuner::testing {

using Dims = std::vector<int64_t>;

class RandomEmpty {
 public:
  struct Tensor {
    std::string name;
    Dims shape;
    std::vector<double> numbers;
    bool is_float = true;  // float32, else int64
  };

  // `as_elsewhere`: without what ONNX Runtime 1.30 computes otherwise than ONNX says. Where there are no
  // products to add, its Gemm adds C without beta, and its Conv gives what stands in memory.
  explicit RandomEmpty(uint32_t seed, bool as_elsewhere = false);

  // "Concat t5, ...": who makes what.
  std::string nodes() const;
  // The model with the version of the format, which our reader does not ask for.
  std::string bytes() const { return "\x08\x07" + model_.SerializeAsString(); }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  // What the model computes of the inputs.
  const std::vector<Tensor>& outputs() const { return outputs_; }
  // How many nodes of each operator read or make a tensor without elements.
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  using At = const Dims&;

  int64_t pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool flag() { return pick(0, 1) == 1; }
  int64_t extent() { return pick(0, 2) == 0 ? 0 : pick(1, 3); }
  Dims shape_of_rank(int64_t rank);
  std::string new_name() { return "t" + std::to_string(++names_); }
  size_t axis_of(const Tensor& x) { return static_cast<size_t>(pick(0, std::ssize(x.shape) - 1)); }

  const Tensor& any();
  Tensor input(const Dims& shape);
  Tensor constant(const Dims& shape);
  // One of the two.
  Tensor fresh(const Dims& shape) { return flag() ? input(shape) : constant(shape); }
  std::string integers(const Dims& numbers);
  std::string integers(const Dims& numbers, const Dims& shape);

  // A node that reads `names`, the tensor `x` among them, and makes what f says of each place.
  onnx::NodeProto& node(const std::string& op, const Names& names, const Tensor& x, const Dims& shape,
                        const std::function<double(At)>& f);

  void add_step();
  void slice(const Tensor& x);
  void split(const Tensor& x);
  void concat(const Tensor& x);
  void gather(const Tensor& x);
  void reshape(const Tensor& x);
  void expand(const Tensor& x);
  void reduce(const Tensor& x);
  void product(const Tensor& x);
  void gemm(const Tensor& x);
  void convolution(const Tensor& x);
  void pad(const Tensor& x);
  void where(const Tensor& x);
  void elementwise(const Tensor& x);
  void of_shape(const Tensor& x);
  void range();
  void non_zero();
  void transpose(const Tensor& x);
  void tile(const Tensor& x);
  void softmax(const Tensor& x);
  void scatter(const Tensor& x);
  void compress(const Tensor& x);

  const bool as_elsewhere_;
  std::mt19937 random_;
  onnx::ModelProto model_;
  onnx::GraphProto& graph_;
  std::vector<Tensor> pool_, inputs_, outputs_;
  std::map<std::string, int> counts_;
  int names_ = 0;
};

}  // namespace tuner::testing
