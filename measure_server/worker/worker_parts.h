// What worker.cpp, worker_build.cpp and worker_run.cpp share.
#pragma once

#include <string>

#include "compiler_core/base/outcome.h"
#include "compiler_core/base/status.h"
#include "measure.pb.h"

namespace tuner {

inline constexpr int kInfrastructureTries = 3;  // tries of a run that failed through no fault of the
                                                // candidate

inline constexpr int kMostReturns = 3;  // times that a trial is given back; then it is device_lost

// True if the error says by itself that the disk is full or broken, or may not be written.
bool is_disk_trouble(const Status& why);

inline v1::Outcome outcome_of(Outcome outcome) { return static_cast<v1::Outcome>(outcome); }
// Returns the key of a lease's inputs and references: its workload and seed.
std::string data_key(const v1::Lease& lease);

}  // namespace tuner
