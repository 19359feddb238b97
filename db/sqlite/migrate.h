// Bringing a file to the schema this program knows.
#pragma once

#include <span>

#include "compiler_core/base/status.h"
#include "db/sqlite/sqlite.h"

namespace tuner::db {

inline constexpr int64_t kApplicationId = 0x54554e52;  // "TUNR"
extern const int64_t kSchemaVersion;                   // one more than there are migrations

// Turns version `from` into from + 1: first the text, then the function, where there is one. To change
// schema.sql or record_fields.h append a step to kMigrations (migrate.cpp), and give the step a file of the
// old version in tests/db/store_migration_test.cpp.
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

// Refuses a newer schema and a database that is not ours. Changes nothing.
Status refuse_foreign(Connection& connection, const SchemaPlan& plan);
// For the writer: creates an empty file's tables or migrates an older file, all or nothing. Refuses a newer
// schema and a database that is not ours.
Status prepare_schema(Connection& connection, const SchemaPlan& plan);
// For readers: the file must have exactly this version.
Status check_schema(Connection& connection, const SchemaPlan& plan);

}  // namespace tuner::db
