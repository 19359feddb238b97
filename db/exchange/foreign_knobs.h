// What a record of another tuner says of config and workload, in its words. Records of ours that went through
// another tuner's format come back so; whether the words mean something here is for others to say.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "db/exchange/exchange_store.h"

namespace tuner::exchange {

// Where our workload's key stands in the name of a task: of AutoTVM in its one argument, else it is the name.
std::string foreign_workload(std::string_view format, std::string_view task);

struct ForeignKnobs {
  std::string template_name;              // empty: the record names none
  std::map<std::string, int64_t> values;  // only integers, as every knob of ours is one
};
ForeignKnobs foreign_knobs(const ForeignRecord& record);

}  // namespace tuner::exchange
