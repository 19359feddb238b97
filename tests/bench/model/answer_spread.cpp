#include "tests/bench/model/answer_spread.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "compiler_core/base/elements.h"

namespace tuner {
namespace {

struct Spread {
  double mean = 0;  // of differences
  double far = 0;   // share of elements that differ by more than a thousandth of the largest
};
Spread spread(const void* found, const std::vector<double>& expected, const graph::TensorType& type) {
  const std::vector<double> a = load_elements(found, type.elements(), type.dtype);
  double largest = 0;
  for (const double x : expected) largest = std::max(largest, std::fabs(x));
  Spread all;
  const auto count = static_cast<double>(a.size());
  for (size_t k = 0; k < a.size(); ++k) {
    const double off = std::fabs(a[k] - expected[k]);
    all.mean += off / count;
    all.far += off <= 1e-3 * largest ? 0 : 1 / count;
  }
  return all;
}

}  // namespace

Status check_spread(const graph::Graph& graph, const std::vector<const void*>& ours,
                    const OnnxSession& optimised, const OnnxSession& plain) {
  constexpr double kMore = 1.25, kRounding = 1e-6;
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const graph::TensorType& type = graph[graph.outputs[o]].type;
    const std::vector<double> expected = load_elements(plain.output(o), type.elements(), type.dtype);
    const Spread own = spread(ours[o], expected, type), theirs = spread(optimised.output(o), expected, type);
    std::printf(
        "  output %zu, off ONNX Runtime without optimisations: ours %.3g on average, %.2f %% by more than a "
        "thousandth; ONNX Runtime with all %.3g, %.2f %%\n",
        o, own.mean, 100 * own.far, theirs.mean, 100 * theirs.far);
    if (!(own.mean <= kMore * theirs.mean + kRounding))
      return failed("output ", o, ": our mean difference is ", own.mean, ", that of ONNX Runtime itself ",
                    theirs.mean, "; expected at most a quarter more");
  }
  return Status::ok();
}

}  // namespace tuner
