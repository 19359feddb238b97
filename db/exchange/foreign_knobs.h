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

// The config of a T4 result as texts: "16", "0.5", "rows"; true is "1". InvalidArgument: a value that is no
// number, word or truth.
Result<std::map<std::string, std::string>> t4_config(const ForeignRecord& record);
// The device that a T4 result was measured on, as its document names it; empty: it does not.
std::string t4_device(const ForeignRecord& record);
// The record with this config of this template. What the file has stays beside it as "configuration_there".
ForeignRecord with_t4_config(const ForeignRecord& record, const std::string& template_name,
                             const std::map<std::string, int64_t>& values);

}  // namespace tuner::exchange
