// Rebuilds a table for a migration with other columns. The checksum stays the last column, and indexes are
// kept.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/sqlite/sqlite.h"

namespace tuner::db {

// Rebuilds `table`; `columns` is its CREATE text from the opening parenthesis on. `remake` gets each old row
// and fills the new one, both without checksum. If it returns false, or the old row was damaged, the new row
// counts as damaged: copying must not repair anything. The first column is the key and stays.
using Remake = std::function<bool(const SqlRow& old, SqlRow& row)>;
Status rebuild_table(Connection& connection, std::string_view table, std::string_view columns,
                     const Remake& remake);

// Columns added before the checksum. Existing rows get 0 or "".
struct NewColumn {
  const char *name, *type;  // INTEGER, REAL or TEXT
};
Status add_columns(Connection& connection, std::string_view table, const std::vector<NewColumn>& added);

}  // namespace tuner::db
