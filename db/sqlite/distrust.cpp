// What is not believed: results in quarantine, and the poison ledger.
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

Status SqliteStore::add_quarantine(QuarantineRow& row) {
  if (row.lease_id.empty()) return invalid_argument("a result in quarantine needs its trial or race");
  QuarantineRow added;
  RETURN_IF_ERROR(write([&](Connection& c) -> Status {
    added = row;
    added.id = next_seq();
    static const std::string kInsert = str("INSERT INTO quarantine (", kQuarantineColumns, ") VALUES (",
                                           placeholders(kQuarantineColumns), ")");
    return c.run(kInsert, to_row(added));
  }));
  row = std::move(added);
  return Status::ok();
}

Result<std::vector<QuarantineRow>> SqliteStore::quarantine(std::string_view lease_id) const {
  return read([&](Connection& c) -> Result<std::vector<QuarantineRow>> {
    const bool all = lease_id.empty();
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows,
                     all ? c.all("SELECT * FROM quarantine ORDER BY quarantine_id")
                         : c.all(kQuarantineOfLease, {std::string(lease_id)}));
    std::vector<QuarantineRow> out;
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(out.emplace_back(), quarantine_from_row(row));
    }
    return out;
  });
}

Status SqliteStore::add_deaths(std::vector<DeathRow>& rows) {
  std::vector<DeathRow> added;
  RETURN_IF_ERROR(write([&](Connection& c) -> Status {
    added = rows;
    for (DeathRow& row : added) {
      row.id = next_seq();
      static const std::string kInsert =
          str("INSERT INTO poison (", kPoisonColumns, ") VALUES (", placeholders(kPoisonColumns), ")");
      RETURN_IF_ERROR(c.run(kInsert, to_row(row)));
    }
    return Status::ok();
  }));
  rows = std::move(added);
  return Status::ok();
}

Result<std::vector<DeathRow>> SqliteStore::deaths() const {
  return read([&](Connection& c) -> Result<std::vector<DeathRow>> {
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all("SELECT * FROM poison ORDER BY poison_id"));
    std::vector<DeathRow> out;
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(out.emplace_back(), death_from_row(row));
    }
    return out;
  });
}

}  // namespace tuner::db
