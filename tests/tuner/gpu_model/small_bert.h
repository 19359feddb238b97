// BERT as exporters write it, with weights drawn from a seed: embeddings, attention with a mask in several
// heads, layer normalization, GELU by Erf, and the pooler. BERT-base is layers 12, heads 12, width 768, inner
// 3072, words 30522.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/models/onnx_model.h"

namespace tuner::testing {

struct BertOptions {
  int64_t layers = 2, heads = 3, width = 48, inner = 96, words = 50, tokens = 9;
  uint32_t seed = 1;
};

class SmallBert {
 public:
  explicit SmallBert(const BertOptions& options) : o_(options), random_(options.seed) {
    model_.input("ids", DType::kInt64, {1, o_.tokens});
    model_.input("mask", DType::kInt64, {1, o_.tokens});
    std::string x = node("Gather", {weights("words", {o_.words, o_.width}, 1), "ids"});
    x = norm(node("Add", {x, weights("places", {1, o_.tokens, o_.width}, 1)}));
    const std::string wide =
        node("Cast", {node("Unsqueeze", {"mask", integers({1, 2})})}, {{"to", int64_t{1}}});
    const std::string hidden = node("Mul", {node("Sub", {number(1), wide}), number(-10000)});
    for (int64_t layer = 0; layer < o_.layers; ++layer) x = encoder(x, hidden);
    model_.output(x, DType::kFloat32, {1, o_.tokens, o_.width});
    const std::string first = node("Gather", {x, integers({0}, {})}, {{"axis", int64_t{1}}});
    model_.node("Tanh", {dense(first, o_.width, o_.width)}, {"pooled"});
    model_.output("pooled", DType::kFloat32, {1, o_.width});
  }
  std::string bytes() const { return model_.bytes(); }

 private:
  std::string name(const std::string& what) { return what + std::to_string(names_++); }
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxModel::Attribute>& attributes = {}) {
    const std::string out = name("v");
    model_.node(op, inputs, {out}, attributes);
    return out;
  }
  std::string weights(const std::string& what, const std::vector<int64_t>& shape, double size) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    std::vector<float> numbers(static_cast<size_t>(count));
    std::uniform_real_distribution<float> drawn(static_cast<float>(-size), static_cast<float>(size));
    for (float& x : numbers) x = drawn(random_);
    return floats(what, shape, numbers);
  }
  std::string floats(const std::string& what, const std::vector<int64_t>& shape,
                     const std::vector<float>& numbers) {
    const std::string made = name(what);
    model_.weights(made, DType::kFloat32, shape,
                   {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
    return made;
  }
  std::string number(float x) { return floats("c", {}, {x}); }
  std::string integers(const std::vector<int64_t>& numbers) {
    return integers(numbers, {static_cast<int64_t>(numbers.size())});
  }
  std::string integers(const std::vector<int64_t>& numbers, const std::vector<int64_t>& shape) {
    const std::string made = name("i");
    model_.weights(made, DType::kInt64, shape,
                   {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)});
    return made;
  }
  std::string dense(const std::string& x, int64_t from, int64_t to) {
    const std::string w = weights("w", {from, to}, 1.5 / std::sqrt(static_cast<double>(from)));
    return node("Add", {node("MatMul", {x, w}), weights("b", {to}, 0.1)});
  }
  std::string norm(const std::string& x) {
    return node("LayerNormalization",
                {x, floats("gamma", {o_.width}, std::vector<float>(static_cast<size_t>(o_.width), 1.1F)),
                 weights("beta", {o_.width}, 0.1)},
                {{"axis", int64_t{-1}}, {"epsilon", 1e-12}});
  }
  std::string split_heads(const std::string& x, const std::vector<int64_t>& order) {
    return node("Transpose", {node("Reshape", {x, integers({1, o_.tokens, o_.heads, o_.width / o_.heads})})},
                {{"perm", order}});
  }
  std::string encoder(const std::string& x, const std::string& hidden) {
    const std::string q = split_heads(dense(x, o_.width, o_.width), {0, 2, 1, 3});
    const std::string k = split_heads(dense(x, o_.width, o_.width), {0, 2, 3, 1});
    const std::string v = split_heads(dense(x, o_.width, o_.width), {0, 2, 1, 3});
    const auto size = static_cast<float>(o_.width) / static_cast<float>(o_.heads);
    const std::string scores = node("Div", {node("MatMul", {q, k}), number(std::sqrt(size))});
    const std::string shares = node("Softmax", {node("Add", {scores, hidden})}, {{"axis", int64_t{-1}}});
    const std::string seen =
        node("Transpose", {node("MatMul", {shares, v})}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    const std::string joined = node("Reshape", {seen, integers({1, o_.tokens, o_.width})});
    const std::string y = norm(node("Add", {dense(joined, o_.width, o_.width), x}));
    const std::string inner = dense(y, o_.width, o_.inner);
    const std::string bell =
        node("Add", {node("Erf", {node("Div", {inner, number(std::sqrt(2.0F))})}), number(1)});
    const std::string gelu = node("Mul", {node("Mul", {inner, bell}), number(0.5F)});
    return norm(node("Add", {dense(gelu, o_.inner, o_.width), y}));
  }

  const BertOptions o_;
  std::mt19937 random_;
  OnnxModel model_;
  int names_ = 0;
};

}  // namespace tuner::testing
