// attention_cpu: attention in tiles that stay in L2, on any CPU with vectors.
//
//   out[b, h, i, :] = (sum over s of exp(x[i, s] - max of row i) * v[s, :]) * (1 / sum of these exps)
//   x[i, s] = scale * (q[i, :] . k[s, :]) + mask + bias
//
//   keys in panels of NR places, [places/NR][size][NR]; values in panels of NE elements, or read as they lie
//
//   parallel batch, head of keys, head of queries, block of queries
//     scores, [block][keys]:     for panel of keys, tile of the block: sums over the size in registers
//     exps, [block][keys]:       for rows: maximum, exp(score - maximum)
//     1 / sum of each row
//     for panel of values, tile of the block: sums over the keys in registers; write them times 1 / sum
//
// The scores of a block and their exps stay in L2: they are never written out whole. Rows are divided by
// their sums at the end, where they have as many elements as a value. Heads that share keys share the panels.
// Panels are copied by head, or all of them ahead, which lets threads share blocks of one head.
//
// Declines types other than float32.
#include <algorithm>
#include <array>

#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_rows.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct AttentionKnobs {
  SplitKnob tile_i, tile_s, tile_e;
  ChoiceKnob block, unroll, rows, vectors;
  CategoryKnob copies;
  FlagKnob pack_values;
};
// What `copies` counts: panels of one head where it is used, or of all heads before.
enum { kCopiesByHead, kCopiesAhead };

class AttentionCpu final : public ScheduleTemplate<AttentionWorkload, AttentionKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "attention_cpu"; }
  int version() const override { return 1; }

  Support supports(const AttentionWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    return supported();
  }

  AttentionKnobs declare(ConfigSpace& space, const AttentionWorkload& w, const Target& t) const override {
    const int64_t lanes = t.f32_lanes(), registers = t.vector_registers();
    const cpu::Columns in{lanes, lanes, cpu::broadcasts_of(t, /*side_by_side=*/false)};
    const cpu::Tile scores = cpu::first_tile(w.queries, w.keys, in, registers);
    const int64_t columns = first_columns(w.v_size, scores.rows, in, registers);
    const int64_t sums = scores.rows * std::max(scores.columns, columns) / lanes;
    const int64_t block = first_block(w, t, scores.rows), least = std::min(w.size, w.keys);
    const int64_t first_unroll = least >= 2 && sums * 2 <= cpu::kMaxBody ? 2 : 1;
    AttentionKnobs k{
        // Queries of a tile, of both products. More use each vector of keys more often; too many spill.
        .tile_i = space.split("tile_i", w.queries).at_most(registers).try_first(scores.rows),
        // Keys of a tile and of a panel: whole vectors.
        .tile_s =
            space.split("tile_s", w.keys).multiples_of(lanes).at_most(8 * lanes).try_first(scores.columns),
        // Elements of values of a tile and of a panel: whole vectors.
        .tile_e = space.split("tile_e", w.v_size).multiples_of(lanes).at_most(8 * lanes).try_first(columns),
        // Tiles of queries that are done together: panels are read once for all of them. Their scores and
        // exps are fastest in L1, and must stay in L2.
        .block = space.choice("block", {1, 2, 4, 8, 16, 32}).try_first(block),
        // Shares the loops' own instructions; the code grows.
        .unroll = space.choice("unroll", {1, 2, 4})
                      .at_most(least)
                      .try_first(std::max(first_unroll, cpu::first_unroll(in.broadcasts, sums, least))),
        // Rows that wait together for their maximum.
        .rows = space.choice("rows", {1, 2, 4})
                    .at_most(w.queries)
                    .try_first(scores.rows * block >= 4   ? 4
                               : scores.rows * block >= 2 ? 2
                                                          : 1),
        // Vectors of a step along a row.
        .vectors = cpu::declare_vectors(space, t, w.keys, 4),
        // By head: panels stay in L2 until their head is done, which one thread does. Whole: threads share
        // the queries of a head, too.
        .copies = space.category("copies", {"head", "whole"})
                      .try_first(w.batch * w.kv_heads >= t.threads ? "head" : "whole"),
        // No strided streams, for a copy of the values.
        .pack_values = space.flag("pack_values").try_first(w.queries >= 4 * scores.rows),
    };
    cpu::require_tile(space, k.tile_i, k.tile_s, in, registers, k.unroll);
    cpu::require_tile(space, k.tile_i, k.tile_e, in, registers, k.unroll);
    space.require(k.block == 1 || (k.block <= k.tile_i.outer() &&
                                   k.tile_i.inner() * k.block * block_row_bytes(w) <= t.l2_bytes));
    space.require(k.rows <= k.tile_i.inner() * k.block);
    return k;
  }

  Program compute(const AttentionWorkload& w) const override { return attention_of_copies(w); }

  void schedule(Schedule& s, const AttentionWorkload& w, const Target& t, const AttentionKnobs& k,
                const Config& c) const override {
    const int64_t lanes = t.f32_lanes(), wide = c[k.vectors] * lanes;
    const std::array unroll{int64_t{c[k.unroll]}};
    const Tensor row_max = s.tensor("row_max"), row_sum = s.tensor("row_sum"), out = s.tensor("out");
    const Tensor lane_max = cpu::sums_of_lanes(s, row_max, wide);
    const Tensor lane_sums = cpu::sums_of_lanes(s, row_sum, wide);
    const Tensor keys = copy_panels(s, "keys", 2, c[k.tile_s].inner);
    Tensor values;
    if (c[k.pack_values])
      values = copy_panels(s, "values", 3, c[k.tile_e].inner);
    else
      s.inline_compute(s.tensor("values"));
    if (s.refused()) return;

    std::vector<Axis> heads = head_axes(s, out, w);  // batch, head of keys, (head,) query, element
    const Axis element = heads.back(), query = heads[heads.size() - 2];
    heads.resize(heads.size() - 2);
    const auto [row_tile, row] = s.split(query, c[k.tile_i].inner);
    const auto [block, tile] = s.split(row_tile, c[k.block]);
    const auto [panel, column] = s.split(element, c[k.tile_e].inner);
    const auto [vector, lane] = s.split(column, lanes);
    s.reorder({block, panel, tile, row, vector, lane});
    cpu::sum_in_registers(s, s.tensor("sums"), tile, lanes, unroll);
    s.unroll(row);
    s.unroll(vector);
    s.vectorize(lane);

    s.compute_at(s.tensor("row_scale"), block);
    sum_rows(s, row_sum, lane_sums, block);
    exponentiate(s, row_max, lane_max, block, c[k.rows], wide);
    score(s, block, c[k.tile_i].inner, c[k.tile_s].inner, lanes, unroll);

    const bool whole = c[k.copies] == kCopiesAhead;
    const Axis head = heads[1];
    for (const auto& [panels, along] : {std::pair{keys, false}, {values, true}})
      if (panels.buffer != nullptr) lay_out(s, panels, along, whole, head, t);
    if (t.threads == 1) return;
    if (!whole) heads.resize(2);
    if (whole) heads.push_back(block);
    s.parallel(s.fuse(heads));
  }

 private:
  // Of a score and its exp.
  static int64_t block_row_bytes(const AttentionWorkload& w) { return w.keys * 2 * 4; }
  static int64_t first_block(const AttentionWorkload& w, const Target& t, int64_t rows) {
    int64_t first = 1;
    for (const int64_t block : {2, 4, 8, 16, 32})
      if (block <= ceil_div(w.queries, rows) && rows * block * block_row_bytes(w) <= t.l1d_bytes)
        first = block;
    return first;
  }
  // As many vectors of values as fit beside tiles of `rows`, in panels of one width.
  static int64_t first_columns(int64_t v_size, int64_t rows, cpu::Columns in, int64_t registers) {
    const int64_t units = ceil_div(v_size, in.unit);
    int64_t first = 1;
    for (int64_t width = 1; width <= std::min<int64_t>(units, 8); ++width)
      if (ceil_div(units, ceil_div(units, width)) == width &&
          rows * width + width + cpu::registers_of(in.broadcasts, rows) <= registers - 1)
        first = width;
    return first * in.unit;
  }

  static Tensor copy_panels(Schedule& s, const char* name, int blocked, int64_t block) {
    const Tensor whole = s.tensor(name);
    const Tensor panels = cpu::pack_blocks(s, whole, 2, blocked, block);
    s.inline_compute(whole);
    return panels;
  }

  // The loops of the result, heads outermost, whatever its layout.
  static std::vector<Axis> head_axes(Schedule& s, const Tensor& out, const AttentionWorkload& w) {
    std::vector<Axis> axes = s.axes(out);
    if (w.out_layout == "BHSD" || s.refused()) return axes;
    std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end() - 1);
    s.reorder(axes);
    return axes;
  }

  static void sum_rows(Schedule& s, const Tensor& row_sum, const Tensor& lane_sums, const Axis& block) {
    s.compute_at(row_sum, block);
    cpu::combine_lanes(s, row_sum);
    const std::vector<Axis> rows = s.spatial_axes(row_sum);
    if (!s.refused()) cpu::compute_lanes(s, lane_sums, rows.back());
  }

  static void exponentiate(Schedule& s, const Tensor& row_max, const Tensor& lane_max, const Axis& block,
                           int64_t rows, int64_t wide) {
    const Tensor exps = s.tensor("exps");
    s.compute_at(exps, block);
    const std::vector<Axis> axes = s.spatial_axes(exps);
    if (s.refused()) return;
    cpu::step_columns(s, axes.back(), wide);
    const Axis together = s.split(axes[axes.size() - 2], rows).outer;
    cpu::compute_total(s, row_max, lane_max, together);
  }

  static void score(Schedule& s, const Axis& block, int64_t rows, int64_t columns, int64_t lanes,
                    std::span<const int64_t> unroll) {
    const Tensor scores = s.tensor("scores");
    s.compute_at(scores, block);
    const std::vector<Axis> axes = s.spatial_axes(scores);
    if (s.refused()) return;
    const auto [tile, row] = s.split(axes[axes.size() - 2], rows);
    const auto [panel, column] = s.split(axes.back(), columns);
    const auto [vector, lane] = s.split(column, lanes);
    s.reorder({panel, tile, row, vector, lane});
    cpu::sum_in_registers(s, s.tensor("products"), tile, lanes, unroll);
    s.unroll(row);
    s.unroll(vector);
    s.vectorize(lane);
  }

  // The loops of a copy. `along_inside`: what lies side by side in the operand does so in the copy; else
  // vectors of a key are read, transposed, and written as vectors of places.
  static void lay_out(Schedule& s, const Tensor& panels, bool along_inside, bool whole, const Axis& head,
                      const Target& t) {
    if (!whole) s.compute_at(panels, head);
    const std::vector<Axis> axes = s.axes(panels);  // batch, head, panel, size or place, inside
    if (s.refused()) return;
    if (along_inside) {
      cpu::vectorize_by(s, axes.back(), t.f32_lanes());
    } else {
      const Axis part = s.split(axes[axes.size() - 2], t.f32_lanes()).inner;
      s.vectorize(axes.back());
      s.vectorize_rows(part);
    }
    if (whole && t.threads > 1) s.parallel(s.fuse({axes[0], axes[1], axes[2]}));
  }
};

}  // namespace

const AnyTemplate& attention_cpu() {
  static const AttentionCpu instance;
  return instance;
}

}  // namespace tuner
