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

std::vector<int64_t> RowMath::extents() const {
  std::vector<int64_t> all = rows();
  all.push_back(shape_.columns);
  return all;
}

Expr RowMath::element(te::Indices row, const Expr& column) const {
  row.push_back(column);
  return load(x_, std::move(row));
}

Buffer RowMath::per_row(const char* called, ReduceOp op,
                        const std::function<Expr(const te::Indices& row, const Expr& element)>& f) {
  return builder_.reduce(called, rows(), {{"c", shape_.columns}}, op,
                         [&](const te::Indices& i, const te::Indices& r) { return f(i, element(i, r[0])); });
}

Program RowMath::finish(
    const std::function<Expr(const te::Indices& row, const Expr& column, const Expr& element)>& f) {
  const std::vector<std::string> names =
      shape_.rows == 1 ? std::vector<std::string>{"j"} : std::vector<std::string>{"i", "j"};
  const Buffer y = builder_.compute(
      "y", extents(),
      [&](const te::Indices& i) {
        const te::Indices row(i.begin(), i.end() - 1);
        return f(row, i.back(), element(row, i.back()));
      },
      BufferRole::kIntermediate, names, shape_.dtype);
  builder_.compute(
      "out", extents(), [&](const te::Indices& i) { return load(y, i); }, BufferRole::kOutput, names);
  return builder_.finish();
}

RowShape RowTemplate::shape_of(const ProgramWorkload& w) {
  const graph::Use use(*w.fragment, w.fragment->nodes[0]);
  return {use.shape(0)[0], use.shape(0)[1], use.dtype(0)};
}

Support RowTemplate::supports(const ProgramWorkload& w, const Target& t) const {
  if (!is_npu(t)) return needs_target("an NPU", t);
  const graph::Graph& g = *w.fragment;
  if (g.nodes.size() != 1 || g.nodes[0].op != op_) return declined("serves programs of one ", op_);
  if (graph::Use(g, g.nodes[0]).shape(0).size() != 2 || g.inputs.empty() ||
      g.nodes[0].inputs[0] != g.inputs[0])
    return declined("needs a matrix as its first input");
  if (const std::string why = lacks(g); !why.empty()) return declined(why);
  const npu::Machine m = machine_of(t);
  const RowShape shape = shape_of(w);
  if (shape.columns < 2) return declined("needs 2 columns, got ", shape.columns);
  if (shape.columns > kMostColumns || row_bytes(shape, m) > npu_tiles::kMostStride * m.bank_bytes)
    return declined("needs shorter rows, got ", shape.columns, " columns");
  const int64_t least = tables(shape, m) + 2 * row_bytes(shape, m);
  if (least > m.scratchpad_bytes) return declined("needs a scratchpad of ", least, " bytes");
  return supported();
}

RowKnobs RowTemplate::declare(ConfigSpace& space, const ProgramWorkload& w, const Target& t) const {
  const npu::Machine m = machine_of(t);
  const RowShape shape = shape_of(w);
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

void RowTemplate::schedule(Schedule& s, const ProgramWorkload& w, const Target& t, const RowKnobs& k,
                           const Config& c) const {
  const npu::Machine m = machine_of(t);
  const RowShape shape = shape_of(w);
  const bool one_row = shape.rows == 1;
  const Tensor out = s.tensor("out"), y = s.tensor("y");
  const Tensor x = one_row ? s.pack(s.tensor("in0"), {{0}}) : s.pack(s.tensor("in0"), {{0}, {1}});
  s.set_scope(x, MemoryScope::kShared);
  s.set_scope(y, MemoryScope::kShared);
  Axis row_tile;
  if (!one_row) {
    row_tile = s.split(s.axes<2>(out)[0], c[k.tile]).outer;
    s.compute_at(y, row_tile);
  }
  for (size_t n = in_registers_.size(); n-- > 0;) {
    const Tensor value = s.tensor(in_registers_[n]);
    s.set_scope(value, MemoryScope::kRegister);
    if (!one_row) s.compute_at(value, row_tile);
  }
  if (!one_row) s.compute_at(x, row_tile);
  // Rows begin at words.
  const int64_t pad = one_row ? 0 : row_bytes(shape, m) - shape.columns;
  for (const Tensor& rows : {x, y})
    if (pad > 0) s.set_layout(rows, str("pad:", pad));
  if (c[k.stages] > 1) s.pipeline({x}, row_tile, c[k.stages]);
}

}  // namespace tuner::npu_rows
