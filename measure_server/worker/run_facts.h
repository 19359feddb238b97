// Numbers that the runner says of a run and a record holds: from the one to the other by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "record.pb.h"

namespace tuner {

// Sets the fields of the record that have these names. Only those marked of_run in record.proto: a
// candidate's process, which these numbers come from, has no say in anything else. Returns the names that
// were passed over.
std::vector<std::string> add_facts(const std::map<std::string, double>& facts, v1::MeasureRecord& record);

}  // namespace tuner
