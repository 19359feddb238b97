// Records of other tuners as rows of our config spaces, where they are: the workload is one of ours in our
// spelling, the target too, and every knob of a template that serves it has a value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "db/exchange/exchange_store.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

// The workload and target of a record, as our tables would name them. Nothing is checked.
JobRow::Task task_of_foreign(const std::string& format, const std::string& task, const std::string& target);

// The record as a row of one of the space's templates: of the one it names, or else of the only one all of
// whose knobs it has. Nothing when there is no such template. The config need not be valid in this space.
std::optional<PriorTask::Row> foreign_row(const ForeignRecord& record, const SearchSpace& space);

// Whether records can warm a search here: also the config is valid in the space of the record's own task.
class ForeignMatcher {
 public:
  bool matches(const ForeignRecord& record);

 private:
  const TaskSpace* space_of(const JobRow::Task& task);
  std::map<std::pair<std::string, std::string>, std::optional<TaskSpace>> spaces_;
};

}  // namespace tuner
