// Brings a file to the schema that this program knows.
#pragma once

#include <iterator>
#include <span>

#include "compiler_core/base/status.h"
#include "db/sqlite/sqlite.h"

namespace tuner::db {

inline constexpr int64_t kApplicationId = 0x54554e52;  // "TUNR"
extern const int64_t kSchemaVersion;

// Turns version `from` into from + 1: runs `sql`, then the function if there is one. If you change schema.sql
// or record_fields.h, add a step to kMigrations (migrate.cpp), and give store_migration_test.cpp a file of
// the version before. Steps from versions that nobody has any more are removed, oldest first.
struct Migration {
  int64_t from;
  const char* sql = "";
  Status (*then)(Connection&) = nullptr;
};

struct SchemaPlan {
  const char* create_sql;
  int64_t version;
  std::span<const Migration> migrations;  // from each version from oldest() to version - 1

  int64_t oldest() const { return version - std::ssize(migrations); }
};
const SchemaPlan& current_schema();

// Refuses a schema that is newer or older than what can be opened, or another program's database. Changes
// nothing.
Status refuse_foreign(Connection& connection, const SchemaPlan& plan);
// For the writer: creates the tables of an empty file or migrates an older one, all or nothing. Refuses as
// refuse_foreign() does.
Status prepare_schema(Connection& connection, const SchemaPlan& plan);
// For readers: the file must have exactly this version.
Status check_schema(Connection& connection, const SchemaPlan& plan);

}  // namespace tuner::db
