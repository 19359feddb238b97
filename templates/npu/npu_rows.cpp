#include "templates/npu/npu_rows.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "compiler_core/graph/operator.h"
#include "templates/npu/npu_tiles.h"

namespace tuner::npu_rows {
namespace {

constexpr int64_t kMostRowsOfTile = 1023, kMostColumns = 4064;

int64_t row_bytes(const RowShape& shape, const npu::Machine& m) {
  return round_up(shape.columns, m.bank_bytes);
}
// Beside the rows: exponentials, or a gain and an offset per column.
int64_t tables(const RowShape& shape, const npu::Machine& m) { return 1024 + 8 * row_bytes(shape, m); }

}  // namespace

std::optional<RowShape> rows_of_program(const ProgramWorkload& w, std::string_view op, std::string& why) {
  const graph::Graph& g = *w.fragment;
  if (g.nodes.size() != 1 || g.nodes[0].op != op) {
    why = str("serves programs of one ", op);
    return std::nullopt;
  }
  const graph::Use use(g, g.nodes[0]);
  if (use.shape(0).size() != 2 || g.inputs.empty() || g.nodes[0].inputs[0] != g.inputs[0]) {
    why = "needs a matrix as its first input";
    return std::nullopt;
  }
  return RowShape{use.shape(0)[0], use.shape(0)[1], use.dtype(0)};
}

Support serves_rows(const RowShape& shape, const Target& t) {
  const npu::Machine m = machine_of(t);
  if (std::min(shape.rows, shape.columns) < 2)
    return declined("needs 2 rows and columns, got ", shape.rows, " and ", shape.columns);
  if (shape.columns > kMostColumns || row_bytes(shape, m) > npu_tiles::kMostStride * m.bank_bytes)
    return declined("needs shorter rows, got ", shape.columns, " columns");
  const int64_t least = tables(shape, m) + 2 * row_bytes(shape, m);
  if (least > m.scratchpad_bytes) return declined("needs a scratchpad of ", least, " bytes");
  return supported();
}

RowKnobs declare_rows(ConfigSpace& space, const RowShape& shape, const Target& t) {
  const npu::Machine m = machine_of(t);
  const int64_t row = row_bytes(shape, m), room = m.scratchpad_bytes - tables(shape, m);
  const std::vector<int64_t> tiles =
      npu_tiles::equal_tiles(shape.rows, 1, std::min(kMostRowsOfTile, room / (2 * row)));
  const int64_t first =
      npu_tiles::at_most(tiles, std::max<int64_t>(1, std::min(room / (4 * row), 8192 / row)));
  RowKnobs k{
      // Rows that are loaded at once: few leave the vector unit waiting less, many cost fewer tables read.
      .tile = space.choice("tile", tiles).try_first(first),
      // Tiles on their way: more hide more of DRAM, for room.
      .stages = space.choice("stages", {1, 2, 3, 4})
                    .try_first(ceil_div(shape.rows, first) > 1 && 3 * first * row <= room ? 2 : 1),
  };
  space.require(k.stages <= ceil_div(shape.rows, k.tile));
  space.require(k.tile * row * (k.stages + 1) <= room);
  return k;
}

void schedule_rows(Schedule& s, const RowShape& shape, const Target& t,
                   std::initializer_list<const char*> in_registers, int64_t tile, int64_t stages) {
  const npu::Machine m = machine_of(t);
  const Tensor out = s.tensor("out"), y = s.tensor("y");
  const Tensor x = s.pack(s.tensor("in0"), {{0}, {1}});
  s.set_scope(x, MemoryScope::kShared);
  s.set_scope(y, MemoryScope::kShared);
  const auto [i, j] = s.axes<2>(out);
  const auto [row_tile, row] = s.split(i, tile);
  s.compute_at(y, row_tile);
  const std::vector<const char*> names(in_registers);
  for (size_t n = names.size(); n-- > 0;) {
    const Tensor value = s.tensor(names[n]);
    s.set_scope(value, MemoryScope::kRegister);
    s.compute_at(value, row_tile);
  }
  s.compute_at(x, row_tile);
  // Rows begin at words.
  const int64_t pad = row_bytes(shape, m) - shape.columns;
  for (const Tensor& rows : {x, y})
    if (pad > 0) s.set_layout(rows, str("pad:", pad));
  if (stages > 1) s.pipeline({x}, row_tile, stages);
}

}  // namespace tuner::npu_rows
