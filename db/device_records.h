// Whose records answer for a target that names a class of devices, or leaves it open
// (TargetFamily::any_device).
//
//   asked for                        answered by records
//   cuda -arch=sm_90a -device=h200   of that name, and those of "cuda -arch=sm_90a" whose hardware was an
//                                    H200: before there were classes, all stood under that name
//   cuda -arch=sm_90a                of that name, which means any device; where it has no right one, of the
//                                    names with a class
//
// Nothing is stored for it: the class of a record is in its hardware fingerprint. Jobs, searches, races and
// lists keep to one name (Store::best): this is for whoever needs a config.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "db/store.h"

namespace tuner {

struct Target;

// A task whose records count for another, too.
struct RecordsElsewhere {
  JobRow::Task task;
  std::string device_class;  // of those that count; empty: all
};
// For `task`; none for a target that has nothing to do with classes. `has_own`: it has a right record under
// its own name.
Result<std::vector<RecordsElsewhere>> records_elsewhere(const Store& store, const JobRow::Task& task,
                                                        bool has_own);

// Store::best() of the task's records under each name. A later answer goes before one of another compiler or
// machine state whose config was measured again for it; a certified one before others; then the fastest.
// TunedConfig::target is the name that it stands under; trials and outcomes are those of that name.
Result<TunedConfig> best_on_device(const Store& store, const JobRow::Task& task,
                                   const std::vector<std::string>& templates = {}, bool counted = true);

// True if a record of that hardware counts for the class; an empty class is any.
bool is_of_class(const TargetFamily& family, std::string_view device_class, std::string_view hardware);

// How tasks of `there` count for `asked`: as its own, those of the class that it names, or not at all.
enum class CountsFor : uint8_t { kNothing, kClass, kAll };
CountsFor counts_for(const Target& asked, std::string_view there);

}  // namespace tuner
