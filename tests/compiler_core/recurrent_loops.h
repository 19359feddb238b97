// LSTM, GRU and RNN as their definitions in ONNX's operator list read: one sequence, one step, one unit after
// the other. Cases are drawn from a seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/graph/builder.h"
#include "compiler_core/oracle/oracle.h"

namespace tuner::graph::testing {

struct RecurrentCase {
  std::string op = "LSTM", direction = "forward";
  int64_t steps = 1, batch = 1, inputs = 1, hidden = 1, layout = 0, operator_set = 22;
  std::vector<std::string> activations;  // empty: the usual ones
  std::vector<double> alphas, betas;     // one for each activation that takes one
  std::optional<double> clip;
  bool input_forget = false, linear_before_reset = false;
  bool constant_weights = true, constant_lengths = true;
  std::vector<double> x, w, r;
  std::vector<double> b, lengths, h0, c0, p;  // empty: not given

  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  int64_t gates() const { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }
  size_t results() const { return op == "LSTM" ? 3 : 2; }
  std::vector<int64_t> state_shape() const {
    return layout == 1 ? std::vector{batch, directions(), hidden} : std::vector{directions(), batch, hidden};
  }
  std::vector<int64_t> input_shape() const {
    return layout == 1 ? std::vector{batch, steps, inputs} : std::vector{steps, batch, inputs};
  }
  size_t state_at(int64_t d, int64_t n, int64_t j) const {
    return static_cast<size_t>(((layout == 1 ? n * directions() + d : d * batch + n) * hidden) + j);
  }
  size_t input_at(int64_t t, int64_t n, int64_t i) const {
    return static_cast<size_t>(((layout == 1 ? n * steps + t : t * batch + n) * inputs) + i);
  }
  size_t output_at(int64_t t, int64_t d, int64_t n, int64_t j) const {
    const int64_t row = layout == 1 ? (n * steps + t) * directions() + d : (t * directions() + d) * batch + n;
    return static_cast<size_t>(row * hidden + j);
  }
};

// The functions of the standard's table, with the numbers that the case gives or the defaults.
inline double activated(const std::string& name, double alpha, double beta, double x) {
  if (name == "Relu") return std::max(0.0, x);
  if (name == "Tanh") return (1 - std::exp(-2 * x)) / (1 + std::exp(-2 * x));
  if (name == "Sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "Affine") return alpha * x + beta;
  if (name == "LeakyRelu") return x >= 0 ? x : alpha * x;
  if (name == "ThresholdedRelu") return x > alpha ? x : 0;
  if (name == "ScaledTanh") return alpha * std::tanh(beta * x);
  if (name == "HardSigmoid") return std::min(std::max(alpha * x + beta, 0.0), 1.0);
  if (name == "Elu") return x >= 0 ? x : alpha * std::expm1(x);
  if (name == "Softsign") return x / (1 + std::fabs(x));
  return std::log1p(std::exp(x));  // Softplus
}

class RecurrentLoops {
 public:
  explicit RecurrentLoops(const RecurrentCase& of) : c_(of) {
    const auto states = static_cast<size_t>(c_.directions() * c_.batch * c_.hidden);
    answers_ = {std::vector<double>(states * static_cast<size_t>(c_.steps)), std::vector<double>(states),
                std::vector<double>(states)};
    name_functions();
    for (int64_t d = 0; d < c_.directions(); ++d)
      for (int64_t n = 0; n < c_.batch; ++n) run(d, n);
    answers_.resize(c_.results());
  }
  const std::vector<std::vector<double>>& answers() const { return answers_; }

 private:
  struct Function {
    std::string name;
    double alpha, beta;
  };
  void name_functions() {
    std::vector<std::string> names = c_.activations;
    const std::vector<std::string> usual = c_.op == "LSTM"
                                               ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                           : c_.op == "GRU" ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                            : std::vector<std::string>{"Tanh"};
    for (int64_t d = 0; c_.activations.empty() && d < c_.directions(); ++d)
      names.insert(names.end(), usual.begin(), usual.end());
    size_t alpha = 0, beta = 0;
    for (const std::string& name : names) {
      Function f{name, 0, 0};
      const bool has_beta = name == "Affine" || name == "ScaledTanh" || name == "HardSigmoid";
      const bool has_alpha = has_beta || name == "LeakyRelu" || name == "ThresholdedRelu" || name == "Elu";
      if (has_alpha) f.alpha = alpha < c_.alphas.size() ? c_.alphas[alpha++] : default_alpha(name);
      if (has_beta) f.beta = beta < c_.betas.size() ? c_.betas[beta++] : default_beta(name);
      functions_.push_back(f);
    }
  }
  static double default_alpha(const std::string& name) {
    return name == "LeakyRelu" ? 0.01 : name == "HardSigmoid" ? 0.2 : 1;
  }
  static double default_beta(const std::string& name) {
    return name == "HardSigmoid" ? 0.5 : name == "ScaledTanh" ? 1 : 0;
  }

  double f(int64_t d, size_t which, double x) const {
    if (c_.clip) x = std::min(std::max(x, -*c_.clip), *c_.clip);
    const size_t each = functions_.size() / static_cast<size_t>(c_.directions());
    const Function& function = functions_[static_cast<size_t>(d) * each + which];
    return activated(function.name, function.alpha, function.beta, x);
  }
  // Row g * hidden + j of W times the input, of R times a state, and the two biases.
  double of_input(int64_t d, int64_t t, int64_t n, int64_t row) const {
    double sum = 0;
    for (int64_t i = 0; i < c_.inputs; ++i)
      sum += c_.x[c_.input_at(t, n, i)] *
             c_.w[static_cast<size_t>((d * c_.gates() * c_.hidden + row) * c_.inputs + i)];
    return sum + bias(d, row);
  }
  double of_state(int64_t d, const std::vector<double>& h, int64_t row) const {
    double sum = 0;
    for (int64_t k = 0; k < c_.hidden; ++k)
      sum += h[static_cast<size_t>(k)] *
             c_.r[static_cast<size_t>((d * c_.gates() * c_.hidden + row) * c_.hidden + k)];
    return sum;
  }
  double bias(int64_t d, int64_t at) const {
    return c_.b.empty() ? 0 : c_.b[static_cast<size_t>(d * 2 * c_.gates() * c_.hidden + at)];
  }
  double state_bias(int64_t d, int64_t row) const { return bias(d, c_.gates() * c_.hidden + row); }
  double peephole(int64_t d, int64_t g, int64_t j, double cell) const {
    return c_.p.empty() ? 0 : c_.p[static_cast<size_t>((d * 3 + g) * c_.hidden + j)] * cell;
  }

  void run(int64_t d, int64_t n) {
    const int64_t length =
        c_.lengths.empty() ? c_.steps : static_cast<int64_t>(c_.lengths[static_cast<size_t>(n)]);
    const bool backwards = c_.direction == "reverse" || d == 1;
    std::vector<double> h(static_cast<size_t>(c_.hidden), 0), cell = h;
    for (int64_t j = 0; j < c_.hidden; ++j) {
      if (!c_.h0.empty()) h[static_cast<size_t>(j)] = c_.h0[c_.state_at(d, n, j)];
      if (!c_.c0.empty()) cell[static_cast<size_t>(j)] = c_.c0[c_.state_at(d, n, j)];
    }
    for (int64_t s = 0; s < length; ++s) {
      const int64_t t = backwards ? length - 1 - s : s;
      step(d, t, n, h, cell);
      for (int64_t j = 0; j < c_.hidden; ++j)
        answers_[0][c_.output_at(t, d, n, j)] = h[static_cast<size_t>(j)];
    }
    for (int64_t j = 0; j < c_.hidden; ++j) {
      answers_[1][c_.state_at(d, n, j)] = h[static_cast<size_t>(j)];
      answers_[2][c_.state_at(d, n, j)] = cell[static_cast<size_t>(j)];
    }
  }

  void step(int64_t d, int64_t t, int64_t n, std::vector<double>& h, std::vector<double>& cell) const {
    const std::vector<double> before = h;
    const int64_t units = c_.hidden;
    // What is added up for gate g of unit j, biases included.
    const auto sum = [&](int64_t g, int64_t j) {
      const int64_t row = g * units + j;
      return of_input(d, t, n, row) + of_state(d, before, row) + state_bias(d, row);
    };
    std::vector<double> reset(before.size());
    for (int64_t j = 0; c_.op == "GRU" && j < units; ++j) reset[static_cast<size_t>(j)] = f(d, 0, sum(1, j));
    for (int64_t j = 0; j < units; ++j) {
      const auto at = static_cast<size_t>(j);
      if (c_.op == "RNN") {
        h[at] = f(d, 0, sum(0, j));
      } else if (c_.op == "GRU") {
        const int64_t row = 2 * units + j;
        std::vector<double> kept = before;
        for (size_t k = 0; k < kept.size(); ++k) kept[k] *= reset[k];
        const double of_kept = c_.linear_before_reset
                                   ? reset[at] * (of_state(d, before, row) + state_bias(d, row))
                                   : of_state(d, kept, row) + state_bias(d, row);
        const double update = f(d, 0, sum(0, j)), candidate = f(d, 1, of_input(d, t, n, row) + of_kept);
        h[at] = (1 - update) * candidate + update * before[at];
      } else {
        const double old = cell[at], in = f(d, 0, sum(0, j) + peephole(d, 0, j, old));
        const double forget = c_.input_forget ? 1 - in : f(d, 0, sum(2, j) + peephole(d, 2, j, old));
        cell[at] = forget * old + in * f(d, 1, sum(3, j));
        h[at] = f(d, 0, sum(1, j) + peephole(d, 1, j, cell[at])) * f(d, 2, cell[at]);
      }
    }
  }

  const RecurrentCase& c_;
  std::vector<Function> functions_;
  std::vector<std::vector<double>> answers_;
};

// A case with every choice drawn. `hidden` below `most_hidden`.
inline RecurrentCase random_recurrent(uint32_t seed, int64_t most_hidden = 9) {
  std::mt19937 random(seed);
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint32_t>(n)); };
  const auto chance = [&](int64_t one_in) { return pick(one_in) == 0; };
  RecurrentCase c;
  c.op = std::vector<std::string>{"LSTM", "GRU", "RNN", "LSTM"}[static_cast<size_t>(pick(4))];
  c.direction = std::vector<std::string>{"forward", "reverse", "bidirectional"}[static_cast<size_t>(pick(3))];
  c.steps = 1 + pick(5), c.batch = 1 + pick(4), c.inputs = 1 + pick(6), c.hidden = 1 + pick(most_hidden);
  c.layout = pick(2);
  c.input_forget = chance(4), c.linear_before_reset = chance(2);
  c.constant_weights = !chance(4), c.constant_lengths = chance(2);
  if (chance(3)) c.clip = 0.3 + 0.1 * static_cast<double>(pick(10));
  const std::vector<std::string> names{"Affine",   "Elu",        "HardSigmoid",    "LeakyRelu",
                                       "Relu",     "ScaledTanh", "Sigmoid",        "Softplus",
                                       "Softsign", "Tanh",       "ThresholdedRelu"};
  const int64_t each = c.op == "LSTM" ? 3 : c.op == "GRU" ? 2 : 1;
  if (chance(2))
    for (int64_t k = 0; k < each * c.directions(); ++k)
      c.activations.push_back(names[static_cast<size_t>(pick(std::ssize(names)))]);
  const auto numbers = [&](int64_t count, double size) {
    std::vector<double> made(static_cast<size_t>(count));
    // As float32 has them: constants of the graph are.
    for (double& x : made) x = static_cast<float>(size * (static_cast<double>(pick(2001)) / 1000 - 1));
    return made;
  };
  if (chance(2)) c.alphas = numbers(pick(4), 0.9), c.betas = numbers(pick(3), 0.9);
  const int64_t d = c.directions(), rows = c.gates() * c.hidden;
  c.x = numbers(c.steps * c.batch * c.inputs, 1);
  c.w = numbers(d * rows * c.inputs, 1), c.r = numbers(d * rows * c.hidden, 1 / std::sqrt(c.hidden));
  if (!chance(3)) c.b = numbers(2 * d * rows, 1);
  if (chance(2)) c.h0 = numbers(d * c.batch * c.hidden, 1);
  if (chance(2) && c.op == "LSTM") c.c0 = numbers(d * c.batch * c.hidden, 1);
  if (chance(2) && c.op == "LSTM") c.p = numbers(d * 3 * c.hidden, 1);
  for (int64_t n = 0; chance(2) && n < c.batch; ++n)
    c.lengths.push_back(static_cast<double>(pick(c.steps + 1)));
  c.lengths.resize(c.lengths.empty() ? 0 : static_cast<size_t>(c.batch), static_cast<double>(c.steps));
  return c;
}

// The case as a graph of one node, and what its inputs are. `wanted`: which results the graph gives.
struct RecurrentGraph {
  Graph graph;
  std::vector<std::vector<double>> inputs;
};
inline Result<RecurrentGraph> graph_of(const RecurrentCase& c, const std::vector<size_t>& wanted) {
  GraphBuilder builder("recurrent", interpret);
  RecurrentGraph made;
  Node node{
      .name = "n", .op = c.op, .operator_set = c.operator_set, .attributes = {}, .inputs = {}, .outputs = {}};
  const auto give = [&](const std::string& name, const std::vector<double>& numbers,
                        std::vector<int64_t> shape, bool constant, DType dtype = DType::kFloat32) {
    if (numbers.empty()) return node.inputs.push_back(kNoValue);
    const TensorType type{dtype, std::move(shape)};
    node.inputs.push_back(constant ? builder.constant(name, type, Constant::of(numbers, dtype))
                                   : builder.input(name, type));
    if (!constant) made.inputs.push_back(numbers);
  };
  const int64_t d = c.directions(), rows = c.gates() * c.hidden;
  give("X", c.x, c.input_shape(), false);
  give("W", c.w, {d, rows, c.inputs}, c.constant_weights);
  give("R", c.r, {d, rows, c.hidden}, c.constant_weights);
  give("B", c.b, {d, 2 * rows}, c.constant_weights);
  give("sequence_lens", c.lengths, {c.batch}, c.constant_lengths, DType::kInt32);
  give("initial_h", c.h0, c.state_shape(), false);
  if (c.op == "LSTM") give("initial_c", c.c0, c.state_shape(), false);
  if (c.op == "LSTM") give("P", c.p, {d, 3 * c.hidden}, c.constant_weights);
  while (node.inputs.back() == kNoValue) node.inputs.pop_back();
  node.attributes = {{"direction", c.direction}, {"hidden_size", c.hidden}};
  if (c.layout != 0) node.attributes["layout"] = c.layout;
  if (!c.activations.empty()) node.attributes["activations"] = c.activations;
  if (!c.alphas.empty()) node.attributes["activation_alpha"] = c.alphas;
  if (!c.betas.empty()) node.attributes["activation_beta"] = c.betas;
  if (c.clip) node.attributes["clip"] = *c.clip;
  if (c.op == "LSTM") node.attributes["input_forget"] = static_cast<int64_t>(c.input_forget);
  if (c.op == "GRU") node.attributes["linear_before_reset"] = static_cast<int64_t>(c.linear_before_reset);
  std::vector<std::string> names(c.results());
  for (const size_t k : wanted) names[k] = std::vector<std::string>{"Y", "Y_h", "Y_c"}[k];
  ASSIGN_OR_RETURN(const std::vector<ValueId> results, builder.add(std::move(node), names));
  std::vector<ValueId> outputs;
  for (const size_t k : wanted) outputs.push_back(results[k]);
  made.graph = builder.finish(std::move(outputs));
  return made;
}
// A part of the results, at least one.
inline std::vector<size_t> random_results(const RecurrentCase& c, uint32_t seed) {
  std::vector<size_t> wanted;
  for (size_t k = 0; k < c.results(); ++k)
    if (((seed * 2654435761U) >> (k + 9)) % 2 == 0) wanted.push_back(k);
  if (wanted.empty()) wanted.push_back(seed % c.results());
  return wanted;
}

}  // namespace tuner::graph::testing
