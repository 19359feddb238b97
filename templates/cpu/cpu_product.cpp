#include "templates/cpu/cpu_product.h"

#include <algorithm>
#include <vector>

#include "compiler_core/base/int_math.h"

namespace tuner::cpu {

Axis sum_in_registers(Schedule& s, const Tensor& acc, const Axis& tile, int64_t lanes,
                      std::span<const int64_t> reduce_splits, int64_t group) {
  if (s.refused()) return {};
  s.set_scope(acc, MemoryScope::kRegister);
  const std::vector<Axis> spatial = s.spatial_axes(acc), reduced = s.reduce_axis_list(acc);
  s.compute_at(acc, tile);
  if (s.refused()) return {};
  std::vector<Axis> order;
  Axis last = reduced.back(), in_group;
  if (group > 1) {
    const SplitAxes groups = s.split(last, group);
    last = groups.outer;
    in_group = groups.inner;
  }
  for (const int64_t factor : reduce_splits) {
    const auto [outer, inner] = s.split(last, factor);
    order.push_back(outer);
    last = inner;
  }
  const Axis first = order.empty() ? last : order.front();
  const Axis& row = spatial[spatial.size() - 2];
  const auto [vector, lane] = s.split(spatial.back(), lanes);
  order.insert(order.end(), {last, row, vector, lane});
  if (group > 1) order.push_back(in_group);
  s.reorder(order);
  s.decompose_reduction(acc, first);
  if (!reduce_splits.empty()) s.unroll(last);
  s.unroll(row);
  s.unroll(vector);
  if (group > 1) s.dot(in_group);
  if (lanes > 1) s.vectorize(lane);
  return first;
}

void require_tile(ConfigSpace& space, const SplitKnob& rows, const SplitKnob& columns, Columns in,
                  int64_t registers, const IntExpr& unroll) {
  const IntExpr vectors = columns.inner() / in.lanes;
  space.require(rows.inner() * vectors + vectors + registers_of(in.broadcasts, rows.inner()) <= registers);
  space.require(ceil_div(rows.extent(), rows.outer()) == rows.inner());
  space.require(ceil_div(ceil_div(columns.extent(), in.unit), columns.outer()) * in.unit == columns.inner());
  space.require(rows.inner() * vectors * unroll <= kMaxBody);
}

Broadcasts broadcasts_of(const Target& t, bool side_by_side) {
  if (!t.is_cpu() || !t.mtriple.starts_with("aarch64")) return Broadcasts::kEach;
  return side_by_side ? Broadcasts::kLanesOfRows : Broadcasts::kLanesOfTerms;
}

int64_t first_unroll(Broadcasts how, int64_t sums, int64_t terms) {
  if (how == Broadcasts::kEach) return 1;
  for (const int64_t unroll : {4, 2})
    if (unroll <= terms && sums * unroll <= kMaxBody) return unroll;
  return 1;
}

double cycles_of_terms(int64_t rows, int64_t vectors, Broadcasts how) {
  if (rows == 0) return 0;
  const auto sums = static_cast<double>(rows * vectors);
  if (how == Broadcasts::kEach)
    return std::max({sums / 2, static_cast<double>(rows + vectors) / 2, 4.0}) + 0.5;
  const double broadcasts = how == Broadcasts::kLanesOfTerms ? static_cast<double>(rows) / 4
                                                             : static_cast<double>(ceil_div(rows, 4));
  const double loads = broadcasts + static_cast<double>(vectors);
  constexpr double kLoad = 1.0 / 16;  // of two tiles alike the one that loads less
  return std::max({sums / 2, loads, (sums + loads) / 3, 4.0}) + 0.5 + kLoad * loads;
}

Tile first_tile(int64_t m, int64_t n, Columns in, int64_t registers) {
  const int64_t units = ceil_div(n, in.unit);
  Tile best{1, in.unit};
  double best_cost = 1e300;
  for (int64_t width = 1; width <= std::min<int64_t>(units, 8); ++width) {
    const int64_t panels = ceil_div(units, width), vectors = width * in.unit / in.lanes;
    if (ceil_div(units, panels) != width) continue;
    for (int64_t rows = 1; rows <= std::min(m, registers - 2); ++rows) {
      // A register is left to the compiler.
      const int64_t used = rows * vectors + vectors + registers_of(in.broadcasts, rows);
      if (ceil_div(m, ceil_div(m, rows)) != rows || used > registers - 1) continue;
      const auto cycles = [&](int64_t r) { return cycles_of_terms(r, vectors, in.broadcasts); };
      const int64_t whole = m / rows;
      const double cost =
          (static_cast<double>(whole) * cycles(rows) + cycles(m % rows)) * static_cast<double>(panels);
      if (cost < best_cost) {
        best_cost = cost;
        best = {rows, width * in.unit};
      }
    }
  }
  return best;
}

Tensor pack_blocks(Schedule& s, const Tensor& t, int first, int x, int64_t block, int64_t group) {
  if (s.refused()) return {};
  const int rank = static_cast<int>(t.buffer->shape.size()), k = x == first ? first + 1 : first;
  std::vector<PackDim> dims;
  for (int d = 0; d < first; ++d) dims.push_back({d});
  dims.push_back({x, block});
  for (int d = first; d < rank; ++d)
    if (d != x) dims.push_back({d, d == k ? group : 1});
  dims.push_back({x, block, true});
  if (group > 1) dims.push_back({k, group, true});
  return s.pack(t, dims);
}

int64_t dot_group(DType dtype) {
  if (dtype == DType::kFloat32) return 1;
  return dtype == DType::kBFloat16 || dtype == DType::kInt8 ? 4 / dtype_bytes(dtype) : 0;
}

void group_channels(Schedule& s, const Tensor& image, int64_t group, bool parallel) {
  if (s.refused()) return;
  constexpr int64_t kRows = 16;  // pixels that are woven at a time
  std::vector<PackDim> dims = {{0}, {1, group}};
  for (int d = 2; d < static_cast<int>(image.buffer->shape.size()); ++d) dims.push_back({d});
  dims.push_back({1, group, true});
  const Tensor grouped = s.pack(image, dims);
  if (s.refused() || image.buffer->role == BufferRole::kConstant) return;
  std::vector<Axis> axes = s.axes(grouped);
  const Axis channel = axes.back();
  axes.pop_back();
  Axis pixels = axes.back();
  axes.pop_back();
  // Rows of an image follow each other: they are woven as one.
  if (axes.size() > 2) {
    const Axis row = axes.back();
    axes.pop_back();
    pixels = s.fuse({row, pixels});
  }
  const auto [strips, pixel] = s.split(pixels, kRows);
  s.vectorize(channel);
  s.vectorize_rows(pixel);
  if (parallel) s.parallel(s.fuse(axes));
}

Tensor pack_groups(Schedule& s, const Tensor& t, int along_k, const Groups& in) {
  if (s.refused()) return {};
  const int first = static_cast<int>(t.buffer->shape.size()) - 2, other = first + 1 - along_k,
            k = first + along_k;
  std::vector<PackDim> dims;
  if (first == 1) dims.push_back({0});
  dims.push_back({other, in.block, false, in.blocks});
  dims.push_back({k, in.group, false, in.multiple});
  dims.push_back({other, in.block, true});
  dims.push_back({k, in.group, true});
  return s.pack(t, dims);
}

void weave_groups(Schedule& s, const Tensor& packed, int along_k, int64_t block, bool parallel) {
  if (s.refused()) return;
  const std::vector<Axis> axes = s.axes(packed);
  if (along_k == 0) {
    const auto [outer, inner] = s.split(axes[axes.size() - 2], std::min<int64_t>(block, 16));
    s.vectorize(axes.back());
    s.vectorize_rows(inner);
  } else {
    s.vectorize(axes.back());
  }
  if (parallel) s.parallel(axes.front());
}

void vectorize_by(Schedule& s, const Axis& axis, int64_t lanes) {
  if (lanes <= 1) return;
  const auto [vector, lane] = s.split(axis, lanes);
  s.unroll(vector);
  s.vectorize(lane);
}

}  // namespace tuner::cpu
