// What was computed from records.
#include "compiler_core/base/clock.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

Status SqliteStore::add_learned(LearnedRow& row) {
  if (row.kind.empty()) return invalid_argument("a learned document needs a kind");
  LearnedRow added;
  RETURN_IF_ERROR(write([&](Connection& c) -> Status {
    added = row;
    added.id = next_seq();
    if (added.made_at_us == 0) added.made_at_us = wall_time_us();
    static const std::string kInsert =
        str("INSERT INTO learned (", kLearnedColumns, ") VALUES (", placeholders(kLearnedColumns), ")");
    return c.run(kInsert, to_row(added));
  }));
  row = std::move(added);
  return Status::ok();
}

Result<LearnedRow> SqliteStore::learned(std::string_view kind, std::string_view op,
                                        std::string_view target) const {
  return read([&](Connection& c) -> Result<LearnedRow> {
    ASSIGN_OR_RETURN(const SqlRow row,
                     c.one(kLearnedNewest, {std::string(kind), std::string(op), std::string(target)}));
    if (row.empty())
      return not_found("nothing of kind \"", kind, "\" was learned of op \"", op, "\" on \"", target, "\"");
    return learned_from_row(row);
  });
}

}  // namespace tuner::db
