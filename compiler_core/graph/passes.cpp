#include "compiler_core/graph/passes.h"

namespace tuner::graph {
namespace {

constexpr Pass kPasses[] = {
    {"split-recurrent", "LSTM, GRU and RNN become one product of all inputs, and the steps", split_recurrent},
    {"make-views", "reshapes become views; what moves nothing goes", make_views},
    {"find-quantized", "what is rounded to bytes and back becomes operators on bytes", find_quantized},
    {"split-dynamic", "rounding to bytes by a tensor's own range becomes the range, and rounding",
     split_dynamic},
    {"split-zero-points", "products of integers become such without zero points, and sums",
     split_zero_points},
    {"fold-constants", "what is computed from constants alone becomes a constant", fold_constants},
    {"merge-common", "nodes that do the same become one", merge_common},
    {"slice-places", "a Gather of one known place becomes a Slice", slice_places},
    {"find-composites", "activations and normalizations written out become one operator each",
     find_composites},
    {"plain-gemms", "alpha and beta of Gemm go into its constants, or become products of their own",
     plain_gemms},
    {"fold-scales", "batch normalizations and factors a channel go into the weights before them",
     fold_scales},
    {"split-transposed", "transposed convolutions become plain ones, and a move of their results",
     split_transposed},
    {"drop-dead", "what nothing reads goes", drop_dead},
};

}  // namespace

std::span<const Pass> passes() { return kPasses; }

Status optimize(Graph& graph, const Evaluator& evaluate, std::string_view last, bool on_bytes) {
  bool known = last.empty();
  std::string names;
  for (const Pass& pass : kPasses) {
    known = known || pass.name == last;
    names += str(names.empty() ? "" : ", ", pass.name);
  }
  if (!known) return invalid_argument("no pass is called \"", last, "\"; there are ", names);
  for (const Pass& pass : kPasses) {
    if (!on_bytes && (pass.run == find_quantized || pass.run == split_zero_points)) continue;
    RETURN_IF_ERROR(pass.run(graph, evaluate).with_context(str("pass ", pass.name, ": ")));
    if (pass.name == last) break;
  }
  return Status::ok();
}

}  // namespace tuner::graph
