#include "db/superseded.h"

#include "db/sql.h"

namespace tuner::db {

bool same_environment(const Environment& a, const Environment& b) {
  return a.toolchain == b.toolchain && a.hardware == b.hardware && a.harness_abi == b.harness_abi;
}

Result<std::optional<StoredRecord>> superseding_record(Connection& c, const StoredRecord& best,
                                                       const StoredTrial& trial, const StoredRace& race,
                                                       const std::string& names) {
  const Environment& e = race.race.environment;
  if (race.race.id < best.record_id || same_environment(e, best.record.environment))
    return std::optional<StoredRecord>();
  ASSIGN_OR_RETURN(const SqlRow again,
                   c.one(kSameConfigInJob, {race.job_seq, int64_t{race.race.task_index},
                                            trial.trial.template_name, trial.trial.config}));
  if (again.empty()) return std::optional<StoredRecord>();
  ASSIGN_OR_RETURN(const SqlRow row, c.one(kBestRecordOfEnvironment, {best.task_id, e.toolchain, e.hardware,
                                                                      int64_t{e.harness_abi}, names, names}));
  if (row.empty()) return std::optional<StoredRecord>();
  ASSIGN_OR_RETURN(StoredRecord record, record_from_row(row));
  return std::optional(std::move(record));
}

}  // namespace tuner::db
