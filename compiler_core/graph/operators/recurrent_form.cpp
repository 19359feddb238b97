// What a use of LSTM, GRU or RNN says: shapes, attributes, functions of the gates.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "compiler_core/graph/operators/recurrent.h"

namespace tuner::graph {
namespace {

// Functions of the standard with the alpha and beta they have where the node gives none. It gives them in the
// order of those functions that take one.
struct FunctionRow {
  std::string_view name;
  std::optional<double> alpha, beta;
};
constexpr FunctionRow kFunctions[] = {
    {"affine", 1, 0},     {"elu", 1, {}},       {"hardsigmoid", 0.2, 0.5},  {"leakyrelu", 0.01, {}},
    {"relu", {}, {}},     {"scaledtanh", 1, 1}, {"sigmoid", {}, {}},        {"softplus", {}, {}},
    {"softsign", {}, {}}, {"tanh", {}, {}},     {"thresholdedrelu", 1, {}},
};

std::string small_letters(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

std::vector<std::string> usual_functions(CellKind cell) {
  if (cell == CellKind::kLstm) return {"sigmoid", "tanh", "tanh"};
  if (cell == CellKind::kGru) return {"sigmoid", "tanh"};
  return {"tanh"};
}

Result<std::vector<GateFunction>> functions_of(const Use& use, CellKind cell, int64_t directions) {
  const std::vector<std::string> usual = usual_functions(cell);
  std::vector<std::string> names = use.words("activations");
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), usual.begin(), usual.end());
  const size_t wanted = usual.size() * static_cast<size_t>(directions);
  if (names.size() != wanted)
    return invalid_argument("activations has ", names.size(), " names, expected ", wanted);
  const std::vector<double> alphas = use.numbers("activation_alpha"), betas = use.numbers("activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<GateFunction> functions;
  for (const std::string& given : names) {
    const std::string name = small_letters(given);
    const auto* row = std::ranges::find(kFunctions, name, &FunctionRow::name);
    if (row == std::end(kFunctions))
      return invalid_argument("activation \"", given,
                              "\" is none of the standard's: expected Affine, Elu, HardSigmoid, LeakyRelu, "
                              "Relu, ScaledTanh, Sigmoid, Softplus, Softsign, Tanh or ThresholdedRelu");
    GateFunction f{.name = name};
    if (row->alpha) f.alpha = alpha < alphas.size() ? alphas[alpha++] : *row->alpha;
    if (row->beta) f.beta = beta < betas.size() ? betas[beta++] : *row->beta;
    if (!std::isfinite(f.alpha) || !std::isfinite(f.beta))
      return invalid_argument("activation ", given, " has an alpha or beta that is no number");
    functions.push_back(std::move(f));
  }
  return functions;
}

// What the attributes alone say.
Status read_attributes(const Use& use, Recurrent& r) {
  const std::string direction = use.word("direction", "forward");
  r.backwards = direction == "reverse";
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (directions != r.directions)
    return invalid_argument("direction is ", direction, ", but the weights are of ", r.directions,
                            r.directions == 1 ? " direction" : " directions");
  if (use.has_attribute("hidden_size") && use.integer("hidden_size", 0) != r.hidden)
    return invalid_argument("hidden_size is ", use.integer("hidden_size", 0), ", the weights have ",
                            r.hidden);
  r.input_forget = use.integer("input_forget", 0) != 0;
  r.linear_before_reset = use.integer("linear_before_reset", 0) != 0;
  if (use.has_attribute("clip")) {
    r.clip = use.number("clip", 0);
    if (!(*r.clip > 0)) return invalid_argument("clip is ", *r.clip, ", expected a number above 0");
  }
  ASSIGN_OR_RETURN(r.functions, functions_of(use, r.cell, r.directions));
  return Status::ok();
}

Status check_shape(const Use& use, size_t input, std::string_view name, const Shape& wanted) {
  if (!use.has(input) || use.shape(input) == wanted) return Status::ok();
  return invalid_argument(name, " (input ", input, ") is ", to_text(use.type(input)), ", expected ",
                          to_text(TensorType{use.dtype(input), wanted}));
}

// Lengths that are known when compiling are within the steps; others are brought there.
Status check_lengths(const Use& use, size_t input, int64_t steps) {
  if (!use.has(input) || !use.is_constant(input)) return Status::ok();
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, use.integers(input));
  for (const int64_t length : lengths)
    if (length < 0 || length > steps)
      return invalid_argument("a sequence length is ", length, ", expected 0 to ", steps);
  return Status::ok();
}

CellKind cell_of(std::string_view name) {
  if (name == "LSTM") return CellKind::kLstm;
  return name == "GRU" ? CellKind::kGru : CellKind::kRnn;
}

Result<Recurrent> whole_of(const Use& use) {
  constexpr int64_t kHasLayout = 14;
  const std::string& op = use.node().op;
  Recurrent r{.cell = cell_of(op)};
  if (use.has_attribute("layout") && use.operator_set() < kHasLayout)
    return invalid_argument("layout is an attribute since operator set ", kHasLayout);
  const int64_t layout = use.integer("layout", 0);
  if (layout != 0 && layout != 1) return invalid_argument("layout is ", layout, ", expected 0 or 1");
  r.batch_first = layout == 1;
  const Shape &x = use.shape(kX), &weights = use.shape(kR);
  r.steps = x[r.batch_first ? 1 : 0];
  r.batch = x[r.batch_first ? 0 : 1];
  r.directions = weights[0];
  r.hidden = weights[2];
  RETURN_IF_ERROR(read_attributes(use, r));
  const int64_t rows = r.gates() * r.hidden;
  RETURN_IF_ERROR(check_shape(use, kW, "W", {r.directions, rows, x[2]}));
  RETURN_IF_ERROR(check_shape(use, kR, "R", {r.directions, rows, r.hidden}));
  RETURN_IF_ERROR(check_shape(use, kB, "B", {r.directions, 2 * rows}));
  RETURN_IF_ERROR(check_shape(use, kLengths, "sequence_lens", {r.batch}));
  RETURN_IF_ERROR(check_shape(use, kInitialH, "initial_h", r.state_shape()));
  RETURN_IF_ERROR(check_shape(use, kInitialC, "initial_c", r.state_shape()));
  RETURN_IF_ERROR(check_shape(use, kPeepholes, "P", {r.directions, 3 * r.hidden}));
  RETURN_IF_ERROR(check_lengths(use, kLengths, r.steps));
  return r;
}

// Of tuner.Recurrence, whose numbers of inputs are its own.
Result<Recurrent> steps_of(const Use& use) {
  Recurrent r{.cell = cell_of(use.word("cell", ""))};
  r.batch_first = use.integer("layout", 0) != 0;
  const Shape &projected = use.shape(0), &weights = use.shape(1);
  r.steps = projected[r.batch_first ? 1 : 0];
  r.batch = projected[r.batch_first ? 0 : 1];
  r.directions = weights[0];
  r.hidden = weights[1];
  RETURN_IF_ERROR(read_attributes(use, r));
  const int64_t columns = r.gates() * r.hidden;
  RETURN_IF_ERROR(check_shape(use, 1, "weights", {r.directions, r.hidden, columns}));
  RETURN_IF_ERROR(check_shape(use, 2, "reset_bias", {r.directions, r.hidden}));
  RETURN_IF_ERROR(check_shape(use, 3, "lengths", {r.batch}));
  RETURN_IF_ERROR(check_shape(use, 4, "initial_h", r.state_shape()));
  RETURN_IF_ERROR(check_shape(use, 5, "initial_c", r.state_shape()));
  RETURN_IF_ERROR(check_shape(use, 6, "peepholes", {r.directions, 3 * r.hidden}));
  RETURN_IF_ERROR(check_lengths(use, 3, r.steps));
  if (projected[2] != r.directions * columns)
    return invalid_argument("projected is ", to_text(use.type(0)), " for ", r.directions * columns, " gates");
  return r;
}

}  // namespace

Shape Recurrent::output_shape() const {
  if (batch_first) return {batch, steps, directions, hidden};
  return {steps, directions, batch, hidden};
}

Shape Recurrent::state_shape() const {
  if (batch_first) return {batch, directions, hidden};
  return {directions, batch, hidden};
}

Result<Recurrent> recurrent_of(const Use& use) {
  return use.node().op == "tuner.Recurrence" ? steps_of(use) : whole_of(use);
}

Expr apply(const GateFunction& f, const Expr& x) {
  const auto is = [&](double value) { return number(x->dtype, value); };
  const auto exponential = [](const Expr& e) { return unary(UnaryOp::kExp, e); };
  const Expr minus = unary(UnaryOp::kNeg, x);
  if (f.name == "sigmoid") return is(1) / (is(1) + exponential(minus));
  if (f.name == "tanh") return unary(UnaryOp::kTanh, x);
  if (f.name == "relu") return max(x, is(0));
  if (f.name == "affine") return is(f.alpha) * x + is(f.beta);
  if (f.name == "leakyrelu") return select(x < is(0), x * is(f.alpha), x);
  if (f.name == "thresholdedrelu") return select(x <= is(f.alpha), is(0), x);
  if (f.name == "scaledtanh") return is(f.alpha) * unary(UnaryOp::kTanh, is(f.beta) * x);
  if (f.name == "hardsigmoid") return min(max(x * is(f.alpha) + is(f.beta), is(0)), is(1));
  if (f.name == "softsign") return x / (is(1) + unary(UnaryOp::kAbs, x));
  // log(1 + e^x), without e^x of a large x.
  if (f.name == "softplus")
    return max(x, is(0)) +
           unary(UnaryOp::kLog, is(1) + exponential(unary(UnaryOp::kNeg, unary(UnaryOp::kAbs, x))));
  // Elu. Beside 0 the first terms of the series are better than e^x - 1.
  const Expr series = x + x * x * is(0.5) + x * x * x * is(1.0 / 6);
  const Expr grown = select(unary(UnaryOp::kAbs, x) < is(1e-3), series, exponential(x) - is(1));
  return select(x < is(0), is(f.alpha) * grown, x);
}

}  // namespace tuner::graph
