#include "tuner/daemon/search/foreign_rows.h"

#include <algorithm>

#include "compiler_core/target.h"
#include "db/exchange/foreign_knobs.h"
#include "templates/workload/workload.h"

namespace tuner {
namespace {

// The config of a template's space that the values spell; nothing when one is missing.
std::optional<Config> config_of(const ConfigSpace& space, const std::map<std::string, int64_t>& values) {
  std::string text;
  for (const KnobInfo& knob : space.knobs()) {
    const auto value = values.find(knob.name);
    if (value == values.end()) return std::nullopt;
    text += str(text.empty() ? "" : " ", knob.name, "=", value->second);
  }
  Result<Config> config = config_from_text(text);
  if (!config) return std::nullopt;
  return *std::move(config);
}

bool is_spelled_as_here(const JobRow::Task& task) {
  const Result<Workload> workload = workload_from_key(task.workload_key);
  if (!workload || workload->key() != task.workload_key) return false;
  const Result<Target> target = parse_target(task.target);
  return target && target->name() == task.target;
}

}  // namespace

JobRow::Task task_of_foreign(const std::string& format, const std::string& task, const std::string& target) {
  return {exchange::foreign_workload(format, task), target, ""};
}

std::optional<PriorTask::Row> foreign_row(const ForeignRecord& record, const SearchSpace& space) {
  const exchange::ForeignKnobs knobs = exchange::foreign_knobs(record);
  std::optional<PriorTask::Row> found;
  for (const SearchSpace::Part& part : space.parts) {
    if (!knobs.template_name.empty() && knobs.template_name != part.template_name) continue;
    std::optional<Config> config = config_of(*part.space, knobs.values);
    if (!config) continue;
    if (found) return std::nullopt;  // of two templates with the same knobs it says nothing
    found = {part.template_name, *std::move(config), record.outcome == Outcome::kOk, record.time_ns};
  }
  return found;
}

const TaskSpace* ForeignMatcher::space_of(const JobRow::Task& task) {
  constexpr size_t kMostSpaces = 64;  // that are kept at once
  if (spaces_.size() >= kMostSpaces) spaces_.clear();
  const auto [at, fresh] = spaces_.try_emplace({task.workload_key, task.target});
  if (fresh && is_spelled_as_here(task)) {
    Result<TaskSpace> space = make_task_space(task);
    if (space) at->second = *std::move(space);
  }
  return at->second ? &*at->second : nullptr;
}

bool ForeignMatcher::matches(const ForeignRecord& record) {
  const TaskSpace* const space = space_of(task_of_foreign(record.format, record.task, record.target));
  if (space == nullptr) return false;
  const std::optional<PriorTask::Row> row = foreign_row(record, space->search);
  return row && std::ranges::any_of(space->search.parts, [&](const SearchSpace::Part& part) {
           return part.template_name == row->template_name && part.space->index_of(row->config).is_ok();
         });
}

}  // namespace tuner
