// Reads config and workload out of another tuner's record. Our own records look like this after a trip
// through another tuner's format. The caller decides whether the words mean anything here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "db/exchange/exchange_store.h"

namespace tuner::exchange {

// Returns the part of the task's name that holds our workload key: AutoTVM's single argument, or else the
// whole name.
std::string foreign_workload(std::string_view format, std::string_view task);

struct ForeignKnobs {
  std::string template_name;              // empty: the record names none
  std::map<std::string, int64_t> values;  // integers only, like all our knobs
};
// Returns what can be read; empty if the record has no config in a form known here.
ForeignKnobs foreign_knobs(const ForeignRecord& record);

}  // namespace tuner::exchange
