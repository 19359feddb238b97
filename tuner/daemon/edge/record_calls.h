// Records and Races: single results, for those who have no database at hand (`tuner dashboard --daemon`).
#pragma once

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/daemon/tables/work.h"
#include "tuning.pb.h"

namespace tuner {

inline constexpr int32_t kMostResults = 2'000;  // of one call

// A page of results of a task or a job, a few MiB at most. Of a task only those of jobs in `scope`. The task
// need not be one that this program knows. NotFound: no such job in the scope. InvalidArgument names the
// field.
Status list_records(const Store& store, const v1::RecordsRequest& request, const Scope& scope,
                    v1::RecordsReply* reply);
// The races of a task or a job; of one its samples. NotFound: no such job or race in the scope.
Status list_races(const Store& store, const v1::RacesRequest& request, const Scope& scope,
                  v1::RacesReply* reply);

// A task as a database names it, whether or not this program knows it. InvalidArgument names the field.
Result<JobRow::Task> stored_task(const v1::TaskSpec& spec);

}  // namespace tuner
