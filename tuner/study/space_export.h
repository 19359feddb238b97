// Recorded spaces: one row per config, as `tuner study simulate` reads them. A CSV file:
//
//   [template,]KNOB,...,time_ms,status,samples_ms
//   4,16,0,0.0317,ok,0.0318;0.0317;...
//
// Knobs have columns by name, one for each knob of any template. A field is empty if the template has no such
// knob; an inactive knob has its single value. `template` is present if there are several. time_ms is the
// median of the samples, in ms per call. status is ok, or how the config failed; time_ms and samples_ms are
// then empty.
#pragma once

#include <string>

#include "tuner/study/task_records.h"

namespace tuner {

// A row whose records were all cut short has no time and is left out.
std::string space_csv(const TaskRecords& records);

}  // namespace tuner
