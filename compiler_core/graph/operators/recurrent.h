// LSTM, GRU and RNN: what a use of one of them says, for their rows and for the pass that takes the products
// with the inputs out of them.
//
// Three rows are ONNX's. A fourth, tuner.Recurrence, is what that pass leaves: the steps alone.
//
//   in   projected   [steps, batch, directions * gates * hidden], or batch first with layout 1: each input
//                    times its weights, and the biases that are added to it
//        weights     [directions, hidden, gates * hidden]: those of the state, transposed; gates side by side
//        reset_bias  [directions, hidden]: of a GRU that resets what weights made of the state; else missing
//        lengths, initial_h, initial_c, peepholes                       as ONNX has them
//   out  the results that the attribute `results` lists (0: Y, 1: Y_h, 2: Y_c). One has its own shape; more
//        are matrices [.., hidden], one below the other
//
// The attribute `cell` is LSTM, GRU or RNN, and `packed` says that the weights are constants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler_core/graph/families.h"

namespace tuner::graph {

enum class CellKind : uint8_t { kLstm, kGru, kRnn };

// A function of a gate, its numbers settled: alpha and beta of the node or the function's own.
struct GateFunction {
  std::string name;  // in small letters
  double alpha = 0, beta = 0;
  friend bool operator==(const GateFunction&, const GateFunction&) = default;
};
Expr apply(const GateFunction& f, const Expr& x);

struct Recurrent {
  CellKind cell = CellKind::kRnn;
  int64_t steps = 1, batch = 1, directions = 1, hidden = 1;
  bool batch_first = false;  // layout 1
  bool backwards = false;    // the one direction, or the first of two
  bool input_forget = false, linear_before_reset = false;
  std::optional<double> clip;
  std::vector<GateFunction> functions;  // of the first direction, then of the second

  int64_t gates() const { return cell == CellKind::kLstm ? 4 : cell == CellKind::kGru ? 3 : 1; }
  size_t functions_each() const { return functions.size() / static_cast<size_t>(directions); }
  size_t results() const { return cell == CellKind::kLstm ? 3 : 2; }
  Shape output_shape() const;  // of Y
  Shape state_shape() const;   // of Y_h, Y_c and what they begin with
};

// InvalidArgument: shapes that do not fit each other, an activation that is none, a form that the operator
// set does not have, a length beyond the steps.
Result<Recurrent> recurrent_of(const Use& use);

// Number of ONNX's inputs, in their order.
enum RecurrentInput : uint8_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

}  // namespace tuner::graph
