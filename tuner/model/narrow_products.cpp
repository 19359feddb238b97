#include "tuner/model/narrow_products.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tuner {
namespace {

using graph::ValueId;

// Bytes of memory: where a value that no step makes stands.
struct Stretch {
  ValueId root = graph::kNoValue;
  int64_t offset = 0, bytes = 0;
  friend auto operator<=>(const Stretch&, const Stretch&) = default;
};

class Narrower {
 public:
  Narrower(ModelSteps& model, DType dtype) : model_(model), dtype_(dtype) {}

  size_t run() {
    count_other_reads();
    for (ModelStep& step : model_.steps) {
      if (is_candidate(step)) narrow(step);
      steps_.push_back(std::move(step));
    }
    model_.steps = std::move(steps_);
    return changed_;
  }

 private:
  const graph::Graph& graph() const { return model_.graph; }

  bool is_candidate(const ModelStep& step) const {
    const auto* w = step.workload.get_if<MatmulWorkload>();
    return w != nullptr && !step.foreign && !step.accelerated && w->dtype == DType::kFloat32 &&
           !w->allow_tf32 && !w->accumulate && step.workload.is_constant("b") &&
           !step.workload.is_constant("a") && validate(narrowed(*w)).is_ok();
  }
  MatmulWorkload narrowed(MatmulWorkload w) const {
    w.dtype = dtype_;
    return w;
  }

  Stretch stretch_of(ValueId v) const {
    Stretch at{.root = v, .bytes = graph()[v].type.bytes()};
    for (; model_.aliases[at.root].source != at.root; at.root = model_.aliases[at.root].source)
      at.offset += model_.aliases[at.root].offset;
    return at;
  }

  // Who reads a value as float32, or a part of it.
  void count_other_reads() {
    read_as_float_.assign(graph().values.size(), false);
    const auto read = [&](ValueId v) { read_as_float_[stretch_of(v).root] = true; };
    for (const ModelStep& step : model_.steps)
      for (size_t i = 0; i < step.reads.size(); ++i) {
        const Stretch at = stretch_of(step.reads[i]);
        const bool is_whole = at.offset == 0 && at.bytes == graph()[at.root].type.bytes();
        if (i > 0 || !is_candidate(step) || !is_whole) read(step.reads[i]);
      }
    for (const ValueId v : graph().outputs) read(v);
  }

  ValueId add_value(std::string name, const graph::TensorType& like,
                    std::optional<graph::Constant> constant) {
    const ValueId made = graph().values.size();
    model_.graph.values.push_back({std::move(name), {dtype_, like.shape}, std::move(constant)});
    model_.aliases.push_back({made, 0});
    return made;
  }

  void narrow(ModelStep& step) {
    MatmulWorkload w = narrowed(*step.workload.get_if<MatmulWorkload>());
    const bool gives_narrow = !w.residual && !read_as_float_[step.writes];
    if (gives_narrow) w.narrow_out = dtype_;
    step.reads[0] = narrow_operand(step.reads[0]);
    step.reads[1] = narrow_weights(step.reads[1]);
    if (gives_narrow) {
      const Stretch whole = stretch_of(step.writes);
      step.writes = made_[whole] = add_value(name_of(step.writes), graph()[step.writes].type, std::nullopt);
      read_as_float_.resize(graph().values.size(), true);
    }
    step.workload = std::move(w);
    ++changed_;
  }

  std::string name_of(ValueId v) const { return str(graph()[v].name, " as ", dtype_name(dtype_)); }

  ValueId narrow_weights(ValueId v) {
    const auto [at, is_new] = weights_.emplace(v, graph().values.size());
    if (!is_new) return at->second;
    const graph::Value& wide = graph()[v];
    const std::vector<double> numbers = wide.constant->numbers(wide.type.dtype);
    return add_value(name_of(v), wide.type, graph::Constant::of(numbers, dtype_));
  }

  ValueId narrow_operand(ValueId v) {
    const auto [at, is_new] = made_.emplace(stretch_of(v), graph().values.size());
    if (!is_new) return at->second;
    const graph::TensorType& type = graph()[v].type;
    auto rounding =
        program_from_text(str("in=float32[", type.elements(), "] Cast(0){to=\"", dtype_name(dtype_), "\"}"));
    CHECK(rounding.is_ok()) << rounding.message();
    ModelStep step{.name = name_of(v), .workload = *std::move(rounding), .reads = {v}};
    step.writes = add_value(step.name, type, std::nullopt);
    steps_.push_back(std::move(step));
    return at->second;
  }

  ModelSteps& model_;
  DType dtype_;
  std::vector<bool> read_as_float_;     // of each value that is no part of another one
  std::map<Stretch, ValueId> made_;     // what has the same numbers in dtype_
  std::map<ValueId, ValueId> weights_;  // the same for constants
  std::vector<ModelStep> steps_;
  size_t changed_ = 0;
};

}  // namespace

Status check_has_unit(const Target& target, DType dtype) {
  const std::string option = str("--precision ", dtype_name(dtype), ": ");
  if (!target.family->in_process())
    return invalid_argument(option, "is for CPUs, found \"", target.name(), "\"; leave it out");
  if (target.has_tiles(dtype) || (dtype == DType::kBFloat16 && target.has_bfloat16_dots()))
    return Status::ok();
  return invalid_argument(option, "\"", target.name(), "\" multiplies no ", dtype_name(dtype),
                          " (expected AVX512-BF16, AMX, or bf16 of AArch64); leave it out");
}

size_t narrow_products(ModelSteps& model, DType dtype) { return Narrower(model, dtype).run(); }

bool is_narrowed(const ModelStep& step) {
  const auto* w = step.workload.get_if<MatmulWorkload>();
  return w != nullptr && w->dtype == DType::kBFloat16;
}

}  // namespace tuner
