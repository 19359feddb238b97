#include "tuner/pack/known_configs.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "db/device_records.h"
#include "templates/schedule_template.h"
#include "tuner/study/task_records.h"

namespace tuner {

Result<std::vector<KnownPick>> known_configs(const Store& store, const JobRow::Task& task,
                                             const std::vector<std::string>& templates,
                                             const std::string& hardware) {
  const auto may_use = [&](const std::string& name) {
    return find_template(name) != nullptr && (templates.empty() || std::ranges::count(templates, name) > 0);
  };
  ASSIGN_OR_RETURN(TaskRecords records, records_of_task(store, task, hardware));
  ASSIGN_OR_RETURN(const std::vector<RecordsElsewhere> elsewhere,
                   records_elsewhere(store, task, !records.rows.empty()));
  for (const RecordsElsewhere& other : elsewhere) {
    ASSIGN_OR_RETURN(TaskRecords more, records_of_task(store, other.task, hardware, other.device_class));
    std::ranges::move(more.rows, std::back_inserter(records.rows));
  }
  std::erase_if(records.rows,
                [&](const TaskRecords::Row& row) { return !row.is_timed() || !may_use(row.template_name); });
  std::ranges::stable_sort(records.rows, {}, &TaskRecords::Row::time_ns);
  const Result<TunedConfig> answer = best_on_device(store, task, templates, /*counted=*/false);
  if (answer.is_ok()) {
    const auto at = std::ranges::find_if(records.rows, [&](const TaskRecords::Row& row) {
      return row.template_name == answer->template_name && row.config.to_text() == answer->config;
    });
    if (at != records.rows.end()) std::rotate(records.rows.begin(), at, at + 1);
  } else if (answer.status().code() != StatusCode::kNotFound) {
    return answer.status();
  }
  std::vector<KnownPick> known;
  std::set<std::pair<std::string, std::string>> seen;  // a config may be known under two names of a target
  for (const TaskRecords::Row& row : records.rows)
    if (seen.emplace(row.template_name, row.config.to_text()).second)
      known.push_back({row.template_name, row.config});
  return known;
}

}  // namespace tuner
