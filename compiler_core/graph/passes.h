// Passes: rewrites of a graph that keep what it computes. Each is a file in passes/; optimize() runs them in
// order.
//
// A pass leaves a graph that check() accepts. Results keep their names and types; a pass may change their
// last digits where it says so.
#pragma once

#include <span>
#include <string_view>

#include "compiler_core/graph/evaluator.h"
#include "compiler_core/graph/graph.h"

namespace tuner::graph {

struct Pass {
  std::string_view name;   // "fold-constants": of `tuner show --after`
  std::string_view about;  // one line for people
  Status (*run)(Graph& graph, const Evaluator& evaluate);
};

// All passes, in the order of optimize().
std::span<const Pass> passes();

// Runs every pass up to and with the one named `last`; empty: all. InvalidArgument: there is none of that
// name. `on_bytes`: find_quantized() and split_zero_points() are among them, for targets with good kernels of
// such products.
Status optimize(Graph& graph, const Evaluator& evaluate, std::string_view last = {}, bool on_bytes = true);

// --- the passes ---
// The products of LSTM, GRU and RNN with the inputs of all steps become one Gemm before the steps, which are
// left (operators/recurrent.h). Sums may be added in another order.
Status split_recurrent(Graph& graph, const Evaluator& evaluate);
// What stands between tensors that are rounded to bytes and back becomes operators on bytes: QLinearConv,
// QLinearMatMul, QGemm, sums, averages, moves. Products of bytes whose result is not rounded become
// MatMulIntegerToFloat. Signed activations become unsigned ones. A result may be off by one where it lies
// between two bytes.
Status find_quantized(Graph& graph, const Evaluator& evaluate);
// DynamicQuantizeLinear becomes the nodes that its definition names, which share what they compute.
Status split_dynamic(Graph& graph, const Evaluator& evaluate);
// Products of integers that no kernel rounds itself become a product of unsigned and signed bytes without
// zero points, and sums; borders of another byte than 0 are put around images.
Status split_zero_points(Graph& graph, const Evaluator& evaluate);
// Nodes of constants alone become constants.
Status fold_constants(Graph& graph, const Evaluator& evaluate);
// Reshape, Flatten, Squeeze, Unsqueeze, and what moves nothing, become one operator, tuner.View; chains of
// them one node; a view as its source, Identity and Dropout go.
Status make_views(Graph& graph, const Evaluator& evaluate);
// A Gather of one place that is known ahead becomes a Slice: where it is a step of a sequence, the plan gives
// it no work, and the steps of a loop share a kernel.
Status slice_places(Graph& graph, const Evaluator& evaluate);
// Nodes that do the same become one.
Status merge_common(Graph& graph, const Evaluator& evaluate);
// The factors of Gemm, alpha and beta, go into its constants; where it has none, they become products of
// their own, which epilogues take. Weights are rounded once more.
Status plain_gemms(Graph& graph, const Evaluator& evaluate);
// Batch normalizations, and factors and summands a channel, go into the weights and bias of the convolution
// or product before them; others become one product and one sum. Weights are rounded once more.
Status fold_scales(Graph& graph, const Evaluator& evaluate);
// Sigmoid times its operand, and other activations and normalizations written out, become the operator they
// are. Sums may be added in another order.
Status find_composites(Graph& graph, const Evaluator& evaluate);
// A transposed convolution of constant weights becomes a plain one, whose channels are the pixels between
// those of the image, and their move to their places. A sum may be added in another order.
Status split_transposed(Graph& graph, const Evaluator& evaluate);
// Not one of optimize()'s: for accelerators that compute in 8 bits, before it. Softmax and LayerNormalization
// of the last axis, from DequantizeLinear to QuantizeLinear, become operators on bytes. Bytes may differ by
// one from the float32 result's, where that lies near the middle between two.
Status join_quantized_rows(Graph& graph, const Evaluator& evaluate);
// What nothing reads goes.
Status drop_dead(Graph& graph, const Evaluator& evaluate);

}  // namespace tuner::graph
