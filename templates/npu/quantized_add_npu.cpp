// quantized_add_npu: the sum of two tensors of 8 bits with a scale each, on the NPU's vector unit: a program
// of one com.microsoft.QLinearAdd, whose scales and zero points are written out.
//
//   out[i] = T(clamp(round((a[i] - zero_a) * (scale_a / scale) + (b[i] - zero_b) * (scale_b / scale)) + zero))
//
//   for tile of elements                      `stages` of them on their way
//     load a, load b
//     add                                     one instruction
//     store the tile
//
// Declines sums that are broadcast, and of more than one dimension: who has such a tensor flattens it.
#include <algorithm>
#include <array>
#include <optional>

#include "compiler_core/base/int_math.h"
#include "compiler_core/base/integer_types.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/te/te.h"
#include "templates/npu/npu_templates.h"
#include "templates/npu/npu_tiles.h"

namespace tuner {
namespace {

constexpr int64_t kWidestTile = 1 << 15;

struct QuantizedAddKnobs {
  ChoiceKnob tile, stages;
};

struct AddNumbers {
  int64_t elements = 0;
  DType dtype = DType::kUInt8;
  float scale_a = 0, scale_b = 0, scale = 0;
  int64_t zero_a = 0, zero_b = 0, zero = 0;
};

// Nothing if the program is another one; `why` then says so.
std::optional<AddNumbers> numbers_of(const ProgramWorkload& w, std::string& why) {
  const graph::Graph& g = *w.fragment;
  if (g.nodes.size() != 1 || g.nodes[0].op != "com.microsoft.QLinearAdd") {
    why = "serves programs of one com.microsoft.QLinearAdd";
    return std::nullopt;
  }
  const graph::Use use(g, g.nodes[0]);
  const bool has_both =
      g.inputs.size() == 2 && g.nodes[0].inputs[0] == g.inputs[0] && g.nodes[0].inputs[3] == g.inputs[1];
  if (!has_both || use.shape(0).size() != 1 || use.shape(0) != use.shape(3)) {
    why = "needs two inputs of one dimension and equal extents, and all else written out";
    return std::nullopt;
  }
  AddNumbers n{.elements = use.shape(0)[0], .dtype = use.dtype(0)};
  const auto number = [&](size_t input) {
    if (!use.has(input)) return 0.0;
    const auto numbers = use.numbers(input);
    return numbers.is_ok() ? numbers->at(0) : 0.0;
  };
  n.scale_a = static_cast<float>(number(1)), n.scale_b = static_cast<float>(number(4));
  n.scale = static_cast<float>(number(6));
  n.zero_a = static_cast<int64_t>(number(2)), n.zero_b = static_cast<int64_t>(number(5));
  n.zero = static_cast<int64_t>(number(7));
  return n;
}

class QuantizedAddNpu final : public ScheduleTemplate<ProgramWorkload, QuantizedAddKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "quantized_add_npu"; }
  int version() const override { return 1; }

  Support supports(const ProgramWorkload& w, const Target& t) const override {
    if (!is_npu(t)) return needs_target("an NPU", t);
    std::string why;
    const std::optional<AddNumbers> n = numbers_of(w, why);
    if (!n) return declined(why);
    if (n->elements < 2) return declined("needs 2 elements, got ", n->elements);
    return supported();
  }

  QuantizedAddKnobs declare(ConfigSpace& space, const ProgramWorkload& w, const Target& t) const override {
    const npu::Machine m = machine_of(t);
    std::string why;
    const int64_t elements = numbers_of(w, why)->elements;
    const std::vector<int64_t> tiles =
        npu_tiles::equal_tiles(elements, m.bank_bytes, std::min(kWidestTile, m.scratchpad_bytes / 3));
    const int64_t first = npu_tiles::at_most(tiles, std::min<int64_t>(1 << 13, m.scratchpad_bytes / 5));
    QuantizedAddKnobs k{
        // Elements that are loaded at once: few leave the vector unit waiting less, many cost fewer starts.
        .tile = space.choice("tile", tiles).try_first(first),
        // Tiles on their way: more hide more of DRAM, for room.
        .stages = space.choice("stages", {1, 2, 3, 4}).try_first(ceil_div(elements, first) > 1 ? 2 : 1),
    };
    space.require(k.stages <= ceil_div(elements, k.tile));
    space.require(k.tile * (k.stages * 2 + 1) <= m.scratchpad_bytes);
    return k;
  }

  // As the operator has it, with numbers in the place of operands, and the sum as a stage of its own.
  Program compute(const ProgramWorkload& w) const override {
    std::string why;
    const AddNumbers n = *numbers_of(w, why);
    te::Builder b("program", n.dtype);
    const Buffer a = b.input("in0", {n.elements}), other = b.input("in1", {n.elements});
    const auto [least, most] = range_of(n.dtype);
    const auto real = [](double x) { return float_imm(x); };
    const Buffer sum = b.compute(
        "sum", {n.elements},
        [&, least = least, most = most](const te::Indices& i) {
          const auto whole = [&](const Buffer& from) { return cast(DType::kInt32, load(from, i)); };
          const auto zero_of_a = int_imm(n.zero_a, DType::kInt32),
                     zero_of_b = int_imm(n.zero_b, DType::kInt32);
          const Expr total = cast(DType::kFloat32, whole(a) - zero_of_a) * real(n.scale_a / n.scale) -
                             real(n.scale_b / n.scale) * cast(DType::kFloat32, zero_of_b - whole(other));
          const Expr moved = unary(UnaryOp::kRound, total) + real(static_cast<double>(n.zero));
          return cast(n.dtype, min(at_least(moved, real(static_cast<double>(least))),
                                   real(static_cast<double>(most))));
        },
        BufferRole::kIntermediate, {"i"}, n.dtype);
    b.compute("out", {n.elements}, [&](const te::Indices& i) { return load(sum, i); }, BufferRole::kOutput,
              {"i"});
    return b.finish();
  }

  void schedule(Schedule& s, const ProgramWorkload&, const Target&, const QuantizedAddKnobs& k,
                const Config& c) const override {
    const Tensor out = s.tensor("out");
    const Tensor sum = s.tensor("sum");
    s.set_scope(sum, MemoryScope::kShared);
    const Tensor a = s.cache_read(s.tensor("in0"), MemoryScope::kShared, sum),
                 b = s.cache_read(s.tensor("in1"), MemoryScope::kShared, sum);
    const auto [i] = s.axes<1>(out);
    const auto [tile, element] = s.split(i, c[k.tile]);
    s.compute_at(sum, tile);
    s.compute_at(a, tile);
    s.compute_at(b, tile);
    if (c[k.stages] > 1) s.pipeline({a, b}, tile, c[k.stages]);
  }
};

}  // namespace

const AnyTemplate& quantized_add_npu() {
  static const QuantizedAddNpu instance;
  return instance;
}

}  // namespace tuner
