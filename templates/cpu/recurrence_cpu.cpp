// recurrence_cpu: the steps of an LSTM, GRU or RNN (tuner.Recurrence), on any CPU with vectors.
//
//   for each direction, each step
//     prev = the state before
//     for panel of gate columns                      weights packed in panels: [D, columns / NR, K, NR]
//       for block of sequences
//         sums over the state in registers
//         write them: acc
//     cell, h: the functions of all gates, in vectors along the units
//   out = h at its places
//
// A step of one sequence reads each weight of its direction once, so it takes as long as L2 needs for them;
// the state stays in L1. Steps wait for each other, and one thread does them. Weights that are no constants
// are read as they lie.
#include <algorithm>
#include <array>

#include "compiler_core/graph/operators/recurrent.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct RecurrenceKnobs {
  SplitKnob tile_b, tile_n;
  ChoiceKnob unroll_k, prefetch, vectors;
};

// The node, if the fragment ends in one and what stands before it only moves its operands.
const graph::Node* node_of(const ProgramWorkload& w) {
  const graph::Node& last = w.fragment->nodes.back();
  return last.op == "tuner.Recurrence" ? &last : nullptr;
}

class RecurrenceCpu final : public ScheduleTemplate<ProgramWorkload, RecurrenceKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "recurrence_cpu"; }
  int version() const override { return 2; }

  Support supports(const ProgramWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (node_of(w) == nullptr) return declined("needs the steps of an LSTM, GRU or RNN");
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    return supported();
  }

  RecurrenceKnobs declare(ConfigSpace& space, const ProgramWorkload& w, const Target& t) const override {
    const graph::Recurrent form = form_of(w);
    const int64_t lanes = t.f32_lanes(), registers = t.vector_registers(), columns = columns_of(form);
    const cpu::Columns in{lanes, lanes, cpu::broadcasts_of(t, /*side_by_side=*/false)};
    const cpu::Tile first = cpu::first_tile(form.batch, columns, in, registers);
    RecurrenceKnobs k{
        // Sequences of a tile. More use each vector of weights more often; too many spill to the stack.
        .tile_b = space.split("tile_b", form.batch).at_most(registers).try_first(first.rows),
        // Gate columns of a tile and of a panel: whole vectors. More sums are under way at once.
        .tile_n =
            space.split("tile_n", columns).multiples_of(lanes).at_most(8 * lanes).try_first(first.columns),
        // Shares the loop's own instructions; the code grows.
        .unroll_k =
            space.choice("unroll_k", {1, 2, 4})
                .at_most(form.hidden)
                .try_first(cpu::first_unroll(in.broadcasts, first.rows * first.columns / lanes, form.hidden)),
        // How many terms ahead weights are asked for: they come from L2, a page after the other. The hardware
        // looks less far.
        .prefetch =
            space.choice("prefetch", {0, 8, 16, 32}).at_most(asks_ahead(w, form, t) ? 32 : 0).try_first(0),
        // Vectors of a step through the units: the functions of more gates are under way at once.
        .vectors = space.choice("vectors", {1, 2, 4}).try_first(1),
    };
    cpu::require_tile(space, k.tile_b, k.tile_n, in, registers, k.unroll_k);
    space.require(k.prefetch % k.unroll_k == 0);
    return k;
  }

  Program compute(const ProgramWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const ProgramWorkload& w, const Target& t, const RecurrenceKnobs& k,
                const Config& c) const override {
    const graph::Recurrent form = form_of(w);
    const int64_t rows = c[k.tile_b].inner, columns = c[k.tile_n].inner, lanes = t.f32_lanes();
    const bool resets_first = form.cell == graph::CellKind::kGru && !form.linear_before_reset;
    // A second product begins in the middle of the columns: panels begin there, too, or there are none.
    Tensor panels;
    if (!w.constant.empty() && (!resets_first || 2 * form.hidden % columns == 0))
      panels = cpu::pack_blocks(s, s.tensor(w.constant.front()), 1, 2, columns);
    for (const std::string_view name : {"out.acc", "out.more"}) {
      if (name != "out.acc" && !resets_first) continue;
      const auto [sum, terms] = sum_in_tiles(s, s.tensor(name), rows, columns, lanes, c[k.unroll_k]);
      if (c[k.prefetch] > 0 && panels.buffer != nullptr)
        s.prefetch(panels, sum, terms, c[k.prefetch] / c[k.unroll_k]);
    }
    std::vector<std::string_view> elements{"out.prev", "out"};
    if (reads_h(w)) elements.emplace_back("out.h");
    if (form.cell == graph::CellKind::kLstm) elements.insert(elements.end(), {"out.kept", "out.cell"});
    if (resets_first) elements.emplace_back("out.reset");
    for (const std::string_view name : elements) in_vectors(s, s.tensor(name), c[k.vectors] * lanes);
  }

 private:
  static graph::Recurrent form_of(const ProgramWorkload& w) {
    return *graph::recurrent_of(graph::Use(*w.fragment, *node_of(w)));
  }
  // Who asks for the cell alone, after one step, reads no h: the Program has none.
  static bool reads_h(const ProgramWorkload& w) {
    const std::vector<int64_t> results = graph::Use(*w.fragment, *node_of(w)).integers("results");
    return form_of(w).steps > 1 || results != std::vector<int64_t>{2};
  }
  // Of the product that all gates, or all that come first, share.
  static int64_t columns_of(const graph::Recurrent& form) {
    const bool resets_first = form.cell == graph::CellKind::kGru && !form.linear_before_reset;
    return (resets_first ? 2 : form.gates()) * form.hidden;
  }

  // Weights that lie in L1 need not be asked for.
  static bool asks_ahead(const ProgramWorkload& w, const graph::Recurrent& form, const Target& t) {
    return !w.constant.empty() && form.hidden * form.gates() * form.hidden * 4 > t.l1d_bytes;
  }

  struct Sum {
    Tensor tile;
    Axis terms;
  };
  static Sum sum_in_tiles(Schedule& s, const Tensor& product, int64_t rows, int64_t columns, int64_t lanes,
                          int64_t unroll_k) {
    const Tensor sum = s.cache_write(product, MemoryScope::kRegister);
    const auto [b, n] = s.axes<2>(product);
    const auto [block, row] = s.split(b, rows);
    const auto [panel, column] = s.split(n, columns);
    const auto [vector, lane] = s.split(column, lanes);
    s.reorder({panel, block, row, vector, lane});
    const Axis terms = cpu::sum_in_registers(s, sum, block, lanes, std::array{unroll_k});
    s.unroll(row);
    s.unroll(vector);
    s.vectorize(lane);
    return {sum, terms};
  }

  static void in_vectors(Schedule& s, const Tensor& t, int64_t wide) {
    const std::vector<Axis> axes = s.spatial_axes(t);
    if (s.refused() || axes.empty()) return;
    s.vectorize(s.split(axes.back(), std::min(wide, s.extent(axes.back()))).inner);
  }
};

}  // namespace

const AnyTemplate& recurrence_cpu() {
  static const RecurrenceCpu instance;
  return instance;
}

}  // namespace tuner
