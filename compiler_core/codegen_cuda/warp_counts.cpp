#include "compiler_core/codegen_cuda/warp_counts.h"

#include <cmath>
#include <numeric>
#include <vector>

namespace tuner::cuda {

std::string_view issue_name(Issue issue) {
  constexpr std::array<std::string_view, kIssues> kNames = {"work",    "tile",  "access",    "move",
                                                            "setup",   "index", "condition", "address",
                                                            "swizzle", "turn",  "barrier",   "entry"};
  return kNames[static_cast<size_t>(issue)];
}

// Printed by `sass_report --fit --configs 60 tests/bench/sass_shapes.json`, which fits them to every second
// shape and judges them on the others (sass/README.md). Held: what is one instruction; the entry, as of a
// kernel that copies an element; a barrier, which would stand for the copies beside it otherwise.
const IssueWeights& issue_weights() {
  static constexpr IssueWeights kWeights = {
      //               work tile access move setup index condition address swizzle turn barrier entry
      .instructions = {1, 1, 1, 1, 0.62, 0.60, 0, 0.17, 1.93, 4.88, 6, 15},
      .clocks = {1, 7.15, 2.23, 1, 0.75, 1.16, 0, 0, 2.28, 15.7, 30, 40}};
  return kWeights;
}

double WarpCounts::instructions() const {
  return std::inner_product(issues.begin(), issues.end(), issue_weights().instructions.begin(), 0.0);
}
double WarpCounts::clocks_alone() const {
  return std::inner_product(issues.begin(), issues.end(), issue_weights().clocks.begin(), 0.0);
}

WarpCounts& WarpCounts::operator+=(const WarpCounts& o) {
  for (size_t i = 0; i < kIssues; ++i) issues[i] += o.issues[i];
  arithmetic += o.arithmetic, dots += o.dots;
  halves += o.halves, bytes += o.bytes, grouped += o.grouped;
  wavefronts += o.wavefronts, conflicts += o.conflicts, sectors += o.sectors;
  return *this;
}

WarpCounts WarpCounts::operator*(double factor) const {
  WarpCounts all{.arithmetic = arithmetic * factor,
                 .wavefronts = wavefronts * factor,
                 .conflicts = conflicts * factor,
                 .sectors = sectors * factor,
                 .halves = halves * factor,
                 .bytes = bytes * factor,
                 .grouped = grouped * factor,
                 .dots = dots * factor};
  for (size_t i = 0; i < kIssues; ++i) all.issues[i] = issues[i] * factor;
  return all;
}

TileProducts tile_products(const Intrinsic& intrinsic) {
  using Access = IntrinsicOperand::Access;
  if (intrinsic.lands()) return {};
  const auto elements = [](const IntrinsicOperand& o) {
    double all = 1;
    for (const int64_t d : o.shape) all *= static_cast<double>(d);
    return all;
  };
  const std::vector<IntrinsicOperand>& operands = intrinsic.operands;
  if (operands.size() != 3 || operands[0].access != Access::kAccumulate) return {};
  // Of C [m, n], A [m, k] and B [k, n].
  const double products = std::sqrt(elements(operands[0]) * elements(operands[1]) * elements(operands[2])) *
                          static_cast<double>(intrinsic.products);
  if (dtype_bytes(operands[1].dtype) == 1)
    return {.bytes = products / (16 * 8 * 32), .instructions = products / (16 * 8 * 32)};
  if (intrinsic.threads > 32) {
    const double of_warp = products / (static_cast<double>(intrinsic.threads) / 32);
    return {.grouped = of_warp / (16 * 8 * 16), .instructions = static_cast<double>(intrinsic.instructions)};
  }
  // Of float32 an instruction has half as many products, in the same time.
  const double deep = dtype_bytes(operands[1].dtype) == 4 ? 8 : 16;
  return {.halves = products / (16 * 8 * deep), .instructions = products / (16 * 8 * deep)};
}

}  // namespace tuner::cuda
