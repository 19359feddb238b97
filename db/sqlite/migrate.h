// Brings a file to the schema that this program knows.
#pragma once

#include <span>

#include "compiler_core/base/status.h"
#include "db/sqlite/sqlite.h"

namespace tuner::db {

inline constexpr int64_t kApplicationId = 0x54554e52;  // "TUNR"
extern const int64_t kSchemaVersion;                   // the number of migrations plus one

// Turns version `from` into from + 1: runs `sql`, then the function if there is one. If you change schema.sql
// or record_fields.h, append a step to kMigrations (migrate.cpp) and give store_migration_test.cpp a file of
// the old version.
struct Migration {
  int64_t from;
  const char* sql = "";
  Status (*then)(Connection&) = nullptr;
};

struct SchemaPlan {
  const char* create_sql;
  int64_t version;
  std::span<const Migration> migrations;
};
const SchemaPlan& current_schema();

// Refuses a newer schema, or another program's database. Changes nothing.
Status refuse_foreign(Connection& connection, const SchemaPlan& plan);
// For the writer: creates the tables of an empty file or migrates an older one, all or nothing. Refuses a
// newer schema, or another program's database.
Status prepare_schema(Connection& connection, const SchemaPlan& plan);
// For readers: the file must have exactly this version.
Status check_schema(Connection& connection, const SchemaPlan& plan);

}  // namespace tuner::db
