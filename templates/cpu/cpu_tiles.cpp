#include "templates/cpu/cpu_tiles.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"

namespace tuner::cpu {
namespace {

std::string product_name(const TileUnit& unit, DType a, DType b, int64_t rows) {
  const std::string types = is_float(a) ? std::string(dtype_name(a)) : str(dtype_name(a), ".", dtype_name(b));
  return str(unit.name, ".", types, ".", rows);
}

// The copy `t`, whose last `rank` dimensions hold tiles.
void copy_tiles(Schedule& s, const Tensor& t, size_t rank, const std::vector<int64_t>& cut,
                const std::string& intrinsic) {
  const std::vector<Axis> axes = s.spatial_axes(t);
  if (s.refused()) return;
  const auto first = axes.end() - static_cast<std::ptrdiff_t>(rank);
  by_tiles(s, {axes.begin(), first}, {first, axes.end()}, cut, intrinsic);
}

}  // namespace

const TileUnit& amx_tiles() {
  static const TileUnit unit{.name = "amx",
                             .least_rows = 1,
                             .rows = 16,
                             .columns = 16,
                             .groups = 16,
                             .group_bytes = 4,
                             .registers = 8,
                             .lengths = {1, 2, 3},
                             .first_length = 2,
                             .packs_blocks = false};
  return unit;
}

const TileUnit& vector_tiles() {
  static const TileUnit unit{.name = "mmla",
                             .least_rows = 2,
                             .rows = 2,
                             .columns = 2,
                             .groups = 1,
                             .group_bytes = 8,
                             .registers = 32,
                             .lengths = {1, 2, 3, 4, 5, 6, 8},
                             .first_length = 4,
                             .packs_blocks = true};
  return unit;
}

const TileUnit& tile_unit(const Target& t) { return t.is_x86() ? amx_tiles() : vector_tiles(); }

int64_t TileUnit::packed_rows(const TileBlock& block) const {
  return packs_blocks ? block.rows * block.down : block.rows;
}

int64_t TileUnit::packed_columns(const TileBlock& block) const {
  return packs_blocks ? columns * block.across : columns;
}

std::vector<int64_t> TileUnit::rows_for(int64_t m) const {
  const int64_t equal = std::max(least_rows, ceil_div(m, ceil_div(m, rows))),
                full = std::clamp(m, least_rows, rows);
  return equal == full ? std::vector<int64_t>{full} : std::vector<int64_t>{equal, full};
}

TileUnit::FirstBlock TileUnit::first_block(int64_t down, int64_t across) const {
  const auto length = [&](int64_t at_most) {
    int64_t found = 1;
    for (const int64_t l : lengths)
      if (l <= std::min(at_most, first_length)) found = l;
    return found;
  };
  return {length(down), length(across)};
}

std::string tile_store(const TileUnit& unit, const Tensor& sums, const TileBlock& block) {
  return str(unit.name, ".store.", dtype_name(sums.buffer->dtype), ".", block.rows);
}

void sum_through_memory(Schedule& s, const TileUnit& unit, const Tensor& acc, const Tensor& a,
                        const Tensor& b, const TileBlock& block, const std::optional<NextPanel>& next) {
  const Tensor sums = s.cache_write(acc, MemoryScope::kFragment);
  sum_in_tiles(s, unit, sums, a, b, block, next);
  copy_tiles(s, acc, 2, {block.rows, unit.columns}, tile_store(unit, acc, block));
}

void sum_in_tiles(Schedule& s, const TileUnit& unit, const Tensor& sums, const Tensor& a, const Tensor& b,
                  const TileBlock& block, const std::optional<NextPanel>& next, const Tensor& carried) {
  if (s.refused()) return;
  const DType a_type = a.buffer->dtype, b_type = b.buffer->dtype;
  const int64_t group = unit.group(a_type);
  const std::vector<Axis> spatial = s.spatial_axes(sums);
  std::vector<Axis> order = s.reduce_axis_list(sums);
  if (s.refused()) return;
  const auto [step, in_step] = s.split(order.back(), unit.groups * group);
  order.back() = step;
  const Axis first = order.front();
  const auto [group_axis, element] = s.split(in_step, group);
  const auto [down, row] = s.split(spatial[spatial.size() - 2], block.rows);
  const auto [across, column] = s.split(spatial.back(), unit.columns);
  order.insert(order.end(), {down, across, row, group_axis, column, element});
  s.reorder(order);
  s.decompose_reduction(sums, first);
  if (carried.buffer != nullptr) {
    std::vector<Axis> loads = s.carry_sums(sums, carried);
    if (s.refused()) return;
    loads.erase(loads.begin(), loads.end() - 2);
    by_tiles(s, {}, loads, {block.rows, unit.columns},
             str(unit.name, ".load.", dtype_name(sums.buffer->dtype), ".", block.rows));
  }
  const Tensor a_tiles = s.cache_read(a, MemoryScope::kFragment, sums);
  const Tensor b_tiles = s.cache_read(b, MemoryScope::kFragment, sums);
  s.compute_at(a_tiles, step);
  s.compute_at(b_tiles, step);
  if (next && next->of_a) s.prefetch_next(a, a_tiles, next->panel, next->blocks, step);
  if (next && !next->of_a) s.prefetch_next(b, b_tiles, next->panel, next->blocks, step);
  s.unroll(down);
  s.unroll(across);
  s.tensorize(row, product_name(unit, a_type, b_type, block.rows));
  const bool in_panels = b.buffer->shape[b.buffer->shape.size() - 2] == unit.columns;
  copy_tiles(s, a_tiles, 2, {block.rows}, str(unit.name, ".load.", dtype_name(a_type), ".", block.rows));
  copy_tiles(s, b_tiles, 3,
             in_panels ? std::vector<int64_t>{} : std::vector<int64_t>{unit.groups, unit.columns},
             str(unit.name, ".groups.", dtype_name(b_type)));
}

void by_tiles(Schedule& s, std::vector<Axis> around, const std::vector<Axis>& axes,
              const std::vector<int64_t>& cut, const std::string& intrinsic) {
  std::vector<Axis> inside;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (d < cut.size()) {
      const SplitAxes parts = s.split(axes[d], cut[d]);
      around.push_back(parts.outer);
      inside.push_back(parts.inner);
    } else {
      inside.push_back(axes[d]);
    }
  }
  std::vector<Axis> order = around;
  order.insert(order.end(), inside.begin(), inside.end());
  s.reorder(order);
  for (const Axis& axis : around) s.unroll(axis);
  s.tensorize(inside.front(), intrinsic);
}

}  // namespace tuner::cpu
