// Copies numbers that the runner reports about a run into the record, by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "record.pb.h"

namespace tuner {

// Sets the record's fields with these names, but only those marked of_run in record.proto: the numbers come
// from the candidate's process, which must not set anything else. Returns the names that were ignored.
std::vector<std::string> add_facts(const std::map<std::string, double>& facts, v1::MeasureRecord& record);

}  // namespace tuner
