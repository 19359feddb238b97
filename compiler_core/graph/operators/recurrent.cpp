// LSTM, GRU, RNN, and tuner.Recurrence: their steps without the products with the inputs (recurrent.h).
//
//   for each direction d
//     for each step s, one after the other
//       prev     = the state of step s - 1
//       acc      = prev * weights of d, of all gates
//       cell[d]  = of an LSTM
//       h[d, s]  = the functions of the gates
//   results  = h at their places
//
// Directions do not need each other. They run one after the other, so that the weights of one lie in a cache
// while its steps read them again and again.
//
// A sequence that is over keeps its state; its results are 0. Backwards, step s of a sequence of length n
// reads and gives element n - 1 - s.
#include "compiler_core/graph/operators/recurrent.h"

#include <utility>

namespace tuner::graph {
namespace recurrent_ops {
namespace {

// Where the math reads its operands.
struct Operands {
  // Of the input at place `time`, all that is added to gate column `n` besides what the state gives.
  std::function<Expr(const Expr& time, const Expr& b, const Expr& d, const Expr& n)> projected;
  std::function<Expr(const Expr& d, const Expr& k, const Expr& n)> weight;
  std::function<Expr(const Expr& d, const Expr& j)> reset_bias;  // may be empty
  Buffer lengths, initial_h, initial_c, peepholes;               // null: not given
};

// Tensors of a step are [batch, ..]; cell has the directions before them, h the directions and the steps.
class Steps {
 public:
  Steps(const Recurrent& form, Operands in, MathWriter& m, DType dtype)
      : r_(form), in_(std::move(in)), m_(m), dtype_(dtype), state_{r_.batch, r_.hidden} {}

  void write() {
    h_ = m_.declare("h", {r_.directions, r_.steps, r_.batch, r_.hidden}, dtype_);
    if (r_.cell == CellKind::kLstm) cell_ = m_.declare("cell", {r_.directions, r_.batch, r_.hidden}, dtype_);
    const auto write_direction = [&](const Expr& d) {
      m_.steps("s", r_.steps, [&](const Expr& s) { write_step({d, s}); });
    };
    if (r_.directions == 1) return write_direction(0);
    m_.steps("d", r_.directions, write_direction);
  }

  // Result `which` of ONNX at `i`, indices of its own shape.
  Expr result(size_t which, const te::Indices& i) const {
    if (which == 0) return output(i);
    const te::Indices at = r_.batch_first ? te::Indices{i[1], i[0], i[2]} : i;
    if (which == 2) return load(cell_, at);
    return load(h_, {at[0], Expr(r_.steps - 1), at[1], at[2]});
  }

 private:
  struct At {
    Expr d, s;
  };
  Expr number_of(double value) const { return number(dtype_, value); }
  Expr length(const Expr& b) const {
    const Expr given = cast(DType::kInt64, load(in_.lengths, {b}));
    return min(max(given, Expr(0)), Expr(r_.steps));
  }
  // The place of step `s` of a sequence, or the step of a place: one is the other's inverse.
  Expr mirrored(const Expr& s, const Expr& b, const Expr& d) const {
    if (r_.steps == 1 || (r_.directions == 1 && !r_.backwards)) return s;
    Expr back = Expr(r_.steps - 1) - s;
    if (in_.lengths != nullptr) back = select(s < length(b), max(length(b) - Expr(1) - s, Expr(0)), s);
    return r_.directions == 1 ? back : select(d < Expr(1), s, back);
  }
  Expr output(const te::Indices& i) const {
    const Expr &time = i[r_.batch_first ? 1 : 0], &d = i[r_.batch_first ? 2 : 1],
               &b = i[r_.batch_first ? 0 : 2];
    const Expr h = load(h_, {d, mirrored(time, b, d), b, i[3]});
    return in_.lengths == nullptr ? h : select(time < length(b), h, number_of(0));
  }
  // Of a state that the caller may give; `i` of direction `d`.
  Expr initial(const Buffer& given, const Expr& d, const te::Indices& i) const {
    if (given == nullptr) return number_of(0);
    return load(given, r_.batch_first ? te::Indices{i[0], d, i[1]} : te::Indices{d, i[0], i[1]});
  }
  Expr goes_on(const At& at, const Expr& b, const Expr& now, const Expr& before) const {
    return in_.lengths == nullptr ? now : select(at.s < length(b), now, before);
  }

  // Function `k` of the gates, of what is clipped first.
  Expr gate(size_t k, Expr x, const At& at) const {
    if (r_.clip) x = min(max(x, number_of(-*r_.clip)), number_of(*r_.clip));
    const GateFunction &first = r_.functions[k],
                       &second = r_.functions[(r_.directions == 2 ? r_.functions_each() : 0) + k];
    if (first == second) return apply(first, x);
    return select(at.d < Expr(1), apply(first, x), apply(second, x));
  }

  // state * weights, of gate columns first .. first + columns - 1.
  Buffer product(std::string_view name, const At& at, const Buffer& state, int64_t first, int64_t columns) {
    return m_.reduced(name, {r_.batch, columns}, {r_.hidden}, ReduceOp::kSum,
                      [&](const te::Indices& i, const te::Indices& k) {
                        return load(state, {i[0], k[0]}) * in_.weight(at.d, k[0], i[1] + Expr(first));
                      });
  }

  void write_step(const At& at) {
    const Buffer prev = m_.stage("prev", state_, dtype_, [&](const te::Indices& i) {
      if (r_.steps == 1) return initial(in_.initial_h, at.d, i);
      return select(at.s < Expr(1), initial(in_.initial_h, at.d, i),
                    load(h_, {at.d, max(at.s - Expr(1), Expr(0)), i[0], i[1]}));
    });
    if (r_.cell == CellKind::kLstm)
      lstm(at, prev);
    else if (r_.cell == CellKind::kGru)
      gru(at, prev);
    else
      rnn(at, prev);
  }

  // What gate `g` is a function of: inputs and state. `acc` has its columns from `begin` on.
  Expr sum_of(const Buffer& acc, int64_t begin, int64_t g, const At& at, const te::Indices& i) const {
    return load(acc, {i[0], i[1] + Expr(g * r_.hidden - begin)}) + input_of(g, at, i);
  }
  Expr input_of(int64_t g, const At& at, const te::Indices& i) const {
    return in_.projected(mirrored(at.s, i[0], at.d), i[0], at.d, i[1] + Expr(g * r_.hidden));
  }

  // Gates: input, output, forget, candidate; peepholes: input, output, forget.
  void lstm(const At& at, const Buffer& prev) {
    enum { kInput, kOutput, kForget, kCandidate };
    const Buffer acc = product("acc", at, prev, 0, 4 * r_.hidden);
    const auto cell = [&](const te::Indices& i) { return load(cell_, {at.d, i[0], i[1]}); };
    const Buffer kept = m_.stage("kept", state_, dtype_, [&](const te::Indices& i) {
      if (r_.steps == 1) return initial(in_.initial_c, at.d, i);
      return select(at.s < Expr(1), initial(in_.initial_c, at.d, i), cell(i));
    });
    const auto peeped = [&](int64_t g, const te::Indices& i, const Expr& seen) {
      const Expr sum = sum_of(acc, 0, g, at, i);
      if (in_.peepholes == nullptr) return sum;
      return sum + load(in_.peepholes, {at.d, i[1] + Expr(g * r_.hidden)}) * seen;
    };
    m_.fill(cell_, {at.d}, [&](const te::Indices& i) {
      const Expr before = load(kept, i);
      const Expr in = gate(0, peeped(kInput, i, before), at);
      const Expr forget = r_.input_forget ? number_of(1) - in : gate(0, peeped(kForget, i, before), at);
      const Expr candidate = gate(1, sum_of(acc, 0, kCandidate, at, i), at);
      return goes_on(at, i[0], forget * before + in * candidate, before);
    });
    m_.fill(h_, {at.d, at.s}, [&](const te::Indices& i) {
      const Expr out = gate(0, peeped(kOutput, i, cell(i)), at);
      return goes_on(at, i[0], out * gate(2, cell(i), at), load(prev, i));
    });
  }

  // Gates: update, reset, candidate.
  void gru(const At& at, const Buffer& prev) {
    const int64_t h = r_.hidden, candidates = 2 * h;
    const bool linear = r_.linear_before_reset;
    const Buffer acc = product("acc", at, prev, 0, linear ? 3 * h : candidates);
    Buffer reset, more = acc;
    if (!linear) {
      reset = m_.stage("reset", state_, dtype_, [&](const te::Indices& i) {
        return gate(0, sum_of(acc, 0, 1, at, i), at) * load(prev, i);
      });
      more = product("more", at, reset, candidates, h);
    }
    m_.fill(h_, {at.d, at.s}, [&](const te::Indices& i) {
      const Expr update = gate(0, sum_of(acc, 0, 0, at, i), at);
      Expr of_state = load(more, {i[0], linear ? i[1] + Expr(candidates) : i[1]});
      if (linear) {
        if (in_.reset_bias) of_state = of_state + in_.reset_bias(at.d, i[1]);
        of_state = gate(0, sum_of(acc, 0, 1, at, i), at) * of_state;
      }
      const Expr candidate = gate(1, input_of(2, at, i) + of_state, at);
      const Expr next = (number_of(1) - update) * candidate + update * load(prev, i);
      return goes_on(at, i[0], next, load(prev, i));
    });
  }

  void rnn(const At& at, const Buffer& prev) {
    const Buffer acc = product("acc", at, prev, 0, r_.hidden);
    m_.fill(h_, {at.d, at.s}, [&](const te::Indices& i) {
      return goes_on(at, i[0], gate(0, sum_of(acc, 0, 0, at, i), at), load(prev, i));
    });
  }

  const Recurrent& r_;
  Operands in_;
  MathWriter& m_;
  DType dtype_;
  Shape state_;
  Buffer h_, cell_;
};

// --- LSTM, GRU, RNN ---
Result<std::vector<TensorType>> types(const Use& use) {
  ASSIGN_OR_RETURN(const Recurrent r, recurrent_of(use));
  std::vector<TensorType> all(r.results(), {use.dtype(kX), r.state_shape()});
  all[0].shape = r.output_shape();
  return all;
}

void whole(const Use& use, MathWriter& m) {
  const Recurrent r = *recurrent_of(use);
  const DType dtype = use.dtype(kX);
  const int64_t columns = r.gates() * r.hidden;
  const bool resets_later = r.cell == CellKind::kGru && r.linear_before_reset;
  const auto given = [&](size_t input) { return use.has(input) ? m.in(input) : nullptr; };
  const Buffer projected = m.reduced(
      "projected", {r.steps, r.batch, r.directions, columns}, {use.shape(kX)[2]}, ReduceOp::kSum,
      [&](const te::Indices& i, const te::Indices& k) {
        const Expr x =
            load(m.in(kX), r.batch_first ? te::Indices{i[1], i[0], k[0]} : te::Indices{i[0], i[1], k[0]});
        return x * load(m.in(kW), {i[2], i[3], k[0]});
      });
  Operands in{.projected =
                  [&](const Expr& time, const Expr& b, const Expr& d, const Expr& n) {
                    Expr sum = load(projected, {time, b, d, n});
                    if (!use.has(kB)) return sum;
                    sum = sum + load(m.in(kB), {d, n});
                    const Expr of_state = load(m.in(kB), {d, n + Expr(columns)});
                    if (!resets_later) return sum + of_state;
                    return sum + select(n < Expr(2 * r.hidden), of_state, number(dtype, 0));
                  },
              .weight =
                  [&](const Expr& d, const Expr& k, const Expr& n) {
                    return load(m.in(kR), {d, n, k});
                  },
              .reset_bias = {},
              .lengths = given(kLengths),
              .initial_h = given(kInitialH),
              .initial_c = given(kInitialC),
              .peepholes = given(kPeepholes)};
  if (resets_later && use.has(kB))
    in.reset_bias = [&](const Expr& d, const Expr& j) {
      return load(m.in(kB), {d, j + Expr(columns + 2 * r.hidden)});
    };
  Steps steps(r, std::move(in), m, dtype);
  steps.write();
  for (size_t k = 0; k < r.results(); ++k)
    m.result(k, [&](const te::Indices& i) { return steps.result(k, i); });
}

// --- tuner.Recurrence ---
Result<std::vector<TensorType>> recurrence_types(const Use& use) {
  ASSIGN_OR_RETURN(const Recurrent r, recurrent_of(use));
  const std::vector<int64_t> results = use.integers("results");
  if (results.empty()) return invalid_argument("results lists none");
  int64_t rows = 0;
  for (const int64_t k : results) {
    if (k < 0 || k >= static_cast<int64_t>(r.results())) return invalid_argument("there is no result ", k);
    rows += elements_of(k == 0 ? r.output_shape() : r.state_shape()) / r.hidden;
  }
  if (results.size() > 1) return one({use.dtype(0), {rows, r.hidden}});
  return one({use.dtype(0), results[0] == 0 ? r.output_shape() : r.state_shape()});
}

void recurrence(const Use& use, MathWriter& m) {
  const Recurrent r = *recurrent_of(use);
  const std::vector<int64_t> results = use.integers("results");
  const auto given = [&](size_t input) { return use.has(input) ? m.in(input) : nullptr; };
  Operands in{
      .projected =
          [&](const Expr& time, const Expr& b, const Expr& d, const Expr& n) {
            const Expr column = r.directions == 1 ? n : d * Expr(r.gates() * r.hidden) + n;
            return load(m.in(0), r.batch_first ? te::Indices{b, time, column} : te::Indices{time, b, column});
          },
      .weight =
          [&](const Expr& d, const Expr& k, const Expr& n) {
            return load(m.in(1), {d, k, n});
          },
      .reset_bias = {},
      .lengths = given(3),
      .initial_h = given(4),
      .initial_c = given(5),
      .peepholes = given(6)};
  if (use.has(2)) in.reset_bias = [&](const Expr& d, const Expr& j) { return load(m.in(2), {d, j}); };
  Steps steps(r, std::move(in), m, use.dtype(0));
  steps.write();
  if (results.size() == 1)
    return m.result([&](const te::Indices& i) { return steps.result(static_cast<size_t>(results[0]), i); });
  m.result([&](const te::Indices& i) {
    int64_t end = m.type().shape[0];
    Expr value;
    for (size_t k = results.size(); k-- > 0;) {
      Shape rows = results[k] == 0 ? r.output_shape() : r.state_shape();
      rows.pop_back();
      const int64_t begin = end - elements_of(rows);
      te::Indices at = indices_of(i[0] - Expr(begin), rows);
      at.push_back(i[1]);
      const Expr own = steps.result(static_cast<size_t>(results[k]), at);
      value = value.defined() ? select(i[0] < Expr(end), own, value) : own;
      end = begin;
    }
    return value;
  });
}

constexpr auto kKind = OperatorKind::kProduct;
constexpr Operator kRows[] = {
    {"LSTM", kKind, 3, 8, 3, types, whole},
    {"GRU", kKind, 3, 6, 2, types, whole},
    {"RNN", kKind, 3, 6, 2, types, whole},
    {"tuner.Recurrence", kKind, 2, 7, 1, recurrence_types, recurrence},
};

}  // namespace
}  // namespace recurrent_ops

std::span<const Operator> recurrent_operators() { return recurrent_ops::kRows; }

}  // namespace tuner::graph
