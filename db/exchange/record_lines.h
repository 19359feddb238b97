// The part of our JSON lines that record_fields.h tells: written and read by the description, both ways.
#pragma once

#include <nlohmann/json.hpp>

#include "db/exchange/json_fields.h"
#include "db/records.h"

namespace tuner::exchange {

// Append the fields to an object.
void add_record(nlohmann::ordered_json& out, const MeasureRecord& record);
void add_environment(nlohmann::ordered_json& out, const Environment& environment);
nlohmann::ordered_json options_value(const MeasureOptions& options);

// What is wrong is kept by `in`. A record's trial is the caller's.
MeasureRecord record_from(Fields& in);
Environment environment_from(Fields& in);
MeasureOptions options_from(Fields& parent);  // of its key "options"

int64_t time_from(Fields& in, const char* key);

}  // namespace tuner::exchange
