// Tables made anew by a migration: other columns, the checksum last as ever, indexes and damage as before.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/sqlite/sqlite.h"

namespace tuner::db {

// Makes `table` anew with these columns: `columns` is its CREATE text from the opening parenthesis on.
// `remake` is given each old row without its checksum and fills the new one likewise. Where it returns false,
// or the old row was damaged, the new one counts as damaged: nothing becomes right by being copied. The first
// column is the key and stays.
using Remake = std::function<bool(const SqlRow& old, SqlRow& row)>;
Status rebuild_table(Connection& connection, std::string_view table, std::string_view columns,
                     const Remake& remake);

// Columns that come before the checksum. Rows there are get 0 or "".
struct NewColumn {
  const char *name, *type;  // INTEGER, REAL or TEXT
};
Status add_columns(Connection& connection, std::string_view table, const std::vector<NewColumn>& added);

}  // namespace tuner::db
