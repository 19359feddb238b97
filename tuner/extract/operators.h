// Turns single operators of a ModelGraph into workloads, without what follows them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "templates/workload/workload.h"
#include "tuner/extract/graph_view.h"

namespace tuner {

// A workload, or the reason in a few words why the operator is none.
struct Served {
  Workload workload;
  std::string reason;
  bool is_served() const { return reason.empty(); }
};

// Each takes an operator of its kind and returns its workload, or why there is none.
Served conv_of(const GraphView& view, const GraphNode& n);
// Returns the padding of a Pad operator that only adds zeros around an image: top, left, bottom, right; else
// nothing.
std::optional<std::array<int64_t, 4>> zero_padding_of(const GraphView& view, const GraphNode& n);
Served matmul_of(const GraphView& view, const GraphNode& n);
Served gemm_of(const GraphView& view, const GraphNode& n);
Served pool_of(const GraphView& view, const GraphNode& n);
Served softmax_of(const GraphView& view, const GraphNode& n);
Served layer_norm_of(const GraphView& view, const GraphNode& n);
Served reduce_of(const GraphView& view, const GraphNode& n);
// The reason for a transposition that does not change the order in memory.
inline constexpr std::string_view kNothingMoves = "nothing moves";
Served transpose_of(const GraphView& view, const GraphNode& n);
// True if it swaps the last two extents and nothing else.
bool swaps_last_two(const GraphView& view, const GraphNode& n);

// Returns the product of the extents from `first` up to, but not including, `last`.
int64_t product_of(const std::vector<int64_t>& shape, size_t first, size_t last);

}  // namespace tuner
