// Recorded spaces: a row a config, as `tuner simulate` reads them. A CSV file:
//
//   [template,]KNOB,...,time_ms,status,samples_ms
//   4,16,0,0.0317,ok,0.0318;0.0317;...
//
// Knobs by name, a column for each that some template has; the field is empty where the template has no such
// knob; a knob that is not active has its one value. `template` is there when there are several. time_ms is
// the median of the samples, ms a call. status is ok, or how the config failed; time_ms and samples_ms are
// empty then.
#pragma once

#include <string>

#include "tuner/study/task_records.h"

namespace tuner {

// Rows whose records were all cut short have no time and are left out.
std::string space_csv(const TaskRecords& records);

}  // namespace tuner
