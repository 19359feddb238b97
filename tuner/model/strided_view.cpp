#include "tuner/model/strided_view.h"

#include <algorithm>
#include <numeric>

#include "compiler_core/graph/operator.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::Node;
using graph::Shape;
using graph::Use;
using graph::ValueId;

// The same elements in the same order, as dimensions of another shape.
std::optional<StridedView> reshaped(const StridedView& in, const Shape& shape) {
  StridedParts left;
  for (const StridedParts& dimension : in.dimensions)
    left.insert(left.end(), dimension.begin(), dimension.end());
  std::erase_if(left, [](const StridedPart& p) { return p.extent == 1; });
  StridedView out{in.offset, std::vector<StridedParts>(shape.size())};
  for (size_t d = shape.size(); d-- > 0;) {
    std::optional<CutParts> parts = cut_parts(std::move(left), shape[d]);
    if (!parts) return std::nullopt;
    out.dimensions[d] = std::move(parts->inner);
    left = std::move(parts->outer);
  }
  return out;
}

std::optional<StridedView> transposed(const Use& use, const StridedView& in) {
  Shape backwards(in.dimensions.size());
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  StridedView out{in.offset, {}};
  for (const int64_t d : use.integers("perm", backwards))
    out.dimensions.push_back(in.dimensions[static_cast<size_t>(d)]);
  return out;
}

// `count` places of a dimension from `start` on.
bool take_part(StridedView& view, size_t d, int64_t start, int64_t count) {
  StridedParts parts = merged(view.dimensions[d]);
  if (parts.size() != 1) return false;
  view.offset += start * parts[0].stride;
  parts[0].extent = count;
  view.dimensions[d] = parts;
  return true;
}

std::optional<StridedView> sliced(const Use& use, const Shape& shape, StridedView out) {
  const auto starts = use.integers("starts", 1), axes = use.integers("axes", 3);
  if (!starts || !*starts || !axes) return std::nullopt;
  if (use.has(4)) {
    const auto steps = use.integers(4);
    if (!steps || std::ranges::any_of(*steps, [](int64_t s) { return s != 1; })) return std::nullopt;
  }
  for (size_t i = 0; i < (*starts)->size(); ++i) {
    int64_t axis = *axes ? (**axes)[i] : static_cast<int64_t>(i), start = (**starts)[i];
    if (axis < 0) axis += use.rank(0);
    const auto d = static_cast<size_t>(axis);
    const int64_t extent = use.shape(0)[d];
    if (start < 0) start += extent;
    if (shape[d] == extent) continue;
    if (!take_part(out, d, std::clamp<int64_t>(start, 0, extent), shape[d])) return std::nullopt;
  }
  return out;
}

// One place of an axis, known ahead; the axis goes.
std::optional<StridedView> gathered(const Use& use, StridedView out) {
  const auto axis = use.axis(0, use.rank(0));
  const auto place = use.integers(1);
  if (!axis || !place || place->size() != 1 || !use.shape(1).empty()) return std::nullopt;
  const auto d = static_cast<size_t>(*axis);
  const int64_t extent = use.shape(0)[d], at = (*place)[0] < 0 ? (*place)[0] + extent : (*place)[0];
  if (extent > 1 && !take_part(out, d, at, 1)) return std::nullopt;
  out.dimensions.erase(out.dimensions.begin() + *axis);
  return out;
}

std::optional<StridedView> split(const Graph& graph, const Node& node, ValueId result, StridedView out) {
  const Use use(graph, node);
  const auto axis = use.axis(0, use.rank(0));
  if (!axis) return std::nullopt;
  const auto d = static_cast<size_t>(*axis);
  int64_t start = 0;
  for (const ValueId each : node.outputs) {
    if (each == graph::kNoValue) return std::nullopt;
    if (each == result) break;
    start += graph[each].type.shape[d];
  }
  const int64_t count = graph[result].type.shape[d];
  if (count != use.shape(0)[d] && !take_part(out, d, start, count)) return std::nullopt;
  return out;
}

std::optional<StridedView> expanded(const Use& use, const Shape& shape, const StridedView& in) {
  StridedView out{in.offset, std::vector<StridedParts>(shape.size())};
  const size_t more = shape.size() - in.dimensions.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t before = d < more ? 1 : use.shape(0)[d - more];
    if (before == shape[d])
      out.dimensions[d] = d < more ? StridedParts{} : in.dimensions[d - more];
    else
      out.dimensions[d] = {{shape[d], 0}};
  }
  return out;
}

}  // namespace

StridedView StridedView::of(const std::vector<int64_t>& shape) {
  StridedView view;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    view.dimensions.insert(view.dimensions.begin(), StridedParts{{shape[d], stride}});
    stride *= shape[d];
  }
  return view;
}

bool is_strided(const Node& node) {
  constexpr std::string_view kOps[] = {"tuner.View", "Transpose", "Gather", "Slice", "Split", "Expand"};
  return std::ranges::find(kOps, node.op) != std::end(kOps);
}

std::optional<StridedView> moved(const Graph& graph, const Node& node, ValueId result,
                                 const StridedView& input) {
  const Use use(graph, node);
  const Shape& shape = graph[result].type.shape;
  if (node.op == "tuner.View") return reshaped(input, shape);
  if (node.op == "Transpose") return transposed(use, input);
  if (node.op == "Slice") return sliced(use, shape, input);
  if (node.op == "Gather") return gathered(use, input);
  if (node.op == "Split") return split(graph, node, result, input);
  if (node.op == "Expand") return expanded(use, shape, input);
  return std::nullopt;
}

StridedParts merged(const StridedParts& parts) {
  StridedParts out;
  for (const StridedPart& part : parts) {
    if (part.extent == 1) continue;
    if (!out.empty() && out.back().stride == part.stride * part.extent)
      out.back() = {out.back().extent * part.extent, part.stride};
    else
      out.push_back(part);
  }
  return out;
}

std::optional<CutParts> cut_parts(StridedParts parts, int64_t inner) {
  CutParts out;
  while (inner > 1) {
    if (parts.empty()) return std::nullopt;
    const StridedPart last = parts.back();
    parts.pop_back();
    if (inner % last.extent == 0) {
      out.inner.insert(out.inner.begin(), last);
      inner /= last.extent;
    } else if (last.extent % inner == 0) {
      out.inner.insert(out.inner.begin(), {inner, last.stride});
      parts.push_back({last.extent / inner, last.stride * inner});
      inner = 1;
    } else {
      return std::nullopt;
    }
  }
  out.outer = std::move(parts);
  return out;
}

}  // namespace tuner
