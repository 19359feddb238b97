#include "tuner/model/model_table.h"

#include <cstddef>

#include "tuner/model/table_writer.h"

namespace tuner {
namespace {

// Structs of tuner_model.h have the same layout on every CPU that libraries are made for: 64 bits,
// little-endian.
static_assert(sizeof(void*) == 8 && sizeof(tuner_place) == 16 && sizeof(tuner_guard) == 24 &&
              sizeof(tuner_step) == 56);

size_t put_steps(TableWriter& table, const ModelToPack& model, const PlacedModel& placed) {
  std::vector<tuner_step> steps(placed.steps.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    steps[s].num_args = static_cast<int32_t>(placed.steps[s].args.size());
    steps[s].kernel = static_cast<int32_t>(model.kernel_of_step[s]);
    steps[s].num_guards = static_cast<int32_t>(placed.steps[s].guards.size());
  }
  const size_t begin = table.put(steps.data(), steps.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    const size_t at = begin + s * sizeof(tuner_step);
    const BundleKernel& kernel = model.kernels[model.kernel_of_step[s]];
    const std::vector<tuner_place>& args = placed.steps[s].args;
    table.text(at + offsetof(tuner_step, name), model.model.steps[s].name);
    table.text(at + offsetof(tuner_step, workload), kernel.task.key);
    table.point(at + offsetof(tuner_step, entry), placed.steps[s].entry);
    table.point(at + offsetof(tuner_step, args), table.put(args.data(), args.size()));
    std::vector<tuner_guard> guards;
    for (const PlacedGuard& guard : placed.steps[s].guards)
      guards.push_back({guard.condition.place, guard.wanted ? 1 : 0, 0});
    if (!guards.empty())
      table.point(at + offsetof(tuner_step, guards), table.put(guards.data(), guards.size()));
  }
  return begin;
}

}  // namespace

ConstantTable model_table(const ModelToPack& model, const PlacedModel& placed) {
  TableWriter table(table_symbol(model.name));
  const tuner_model head = table_head(model, placed);
  table.put(&head, 1);
  point_head(table, model, placed);
  table.point(offsetof(tuner_model, steps), put_steps(table, model, placed));
  return table.finish();
}

}  // namespace tuner
