#include "tuner/model/model_table.h"

#include <cstddef>

#include "tuner/model/table_writer.h"

namespace tuner {
namespace {

// Structs of tuner_model.h have the same layout on every CPU that libraries are made for: 64 bits,
// little-endian.
static_assert(sizeof(void*) == 8 && sizeof(tuner_place) == 16 && sizeof(tuner_guard) == 24 &&
              sizeof(tuner_step) == 56 && offsetof(tuner_model_cpus, cpus) == sizeof(tuner_model) + 8);

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

ConstantTable model_table(std::span<const ModelToPack> models, std::span<const PlacedModel> placed) {
  TableWriter table(table_symbol(models.front().name));
  const auto fill_in = [&](size_t m, size_t at, size_t steps) {
    point_head(table, models[m], placed[m], at);
    table.point(at + offsetof(tuner_model, steps), steps);
  };
  if (models.size() == 1) {
    const tuner_model head = table_head(models[0], placed[0]);
    table.put(&head, 1);
    fill_in(0, 0, put_steps(table, models[0], placed[0]));
    return table.finish();
  }
  const size_t last = models.size() - 1;
  tuner_model_cpus all{};
  all.model = table_head(models[last], placed[last]);
  all.model.version = TUNER_MODEL_CPUS_VERSION;
  all.num_cpus = static_cast<int32_t>(models.size());
  table.put(&all, 1);
  std::vector<tuner_model> heads;
  for (size_t m = 0; m < models.size(); ++m) heads.push_back(table_head(models[m], placed[m]));
  const size_t begin = table.put(heads.data(), heads.size());
  table.point(offsetof(tuner_model_cpus, cpus), begin);
  for (size_t m = 0; m < models.size(); ++m) {
    const size_t steps = put_steps(table, models[m], placed[m]);
    fill_in(m, begin + m * sizeof(tuner_model), steps);
    if (m == last) fill_in(m, 0, steps);
  }
  return table.finish();
}

}  // namespace tuner
