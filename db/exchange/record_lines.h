// The part of our JSON lines that record_fields.h describes. One description drives both reading and writing.
#pragma once

#include <nlohmann/json.hpp>

#include "db/exchange/json_fields.h"
#include "db/records.h"

namespace tuner::exchange {

// These append the fields to an object.
void add_record(nlohmann::ordered_json& out, const MeasureRecord& record);
void add_environment(nlohmann::ordered_json& out, const Environment& environment);
nlohmann::ordered_json options_value(const MeasureOptions& options);

// Errors are kept by `in`. The caller sets the record's trial.
MeasureRecord record_from(Fields& in);
Environment environment_from(Fields& in);
MeasureOptions options_from(Fields& parent);  // reads the key "options" of the parent

// Reads a time of day as microseconds of Unix time.
int64_t time_from(Fields& in, const char* key);

}  // namespace tuner::exchange
