// The daemon's own values <-> messages: the edge of the coordinator, whose parts know no message. What other
// programs share, too, is in proto/convert.h.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "measure.pb.h"
#include "tuner/daemon/jobs.h"
#include "tuner/daemon/lease_table.h"
#include "tuner/daemon/races.h"
#include "tuner/daemon/work.h"
#include "tuner/daemon/workers.h"
#include "tuning.pb.h"

namespace tuner {

// What a worker says of itself. InvalidArgument: it has no name or target, or speaks another protocol.
Result<Workers::Offer> from_proto(const v1::RegisterRequest& request);
// The leases that the worker says it holds.
std::vector<LeaseTable::Held> held_of(const v1::SyncRequest& request);
RaceCourse from_proto(const v1::RaceCourse& course);
// A zero stays one: the worker's default.
RaceOptions from_proto(const v1::RaceOptions& options);

// With attempt and fencing token of the latest lease. best_ns is the caller's to fill.
void to_proto(const LeaseTable::Trial& trial, v1::Lease* out);
// Without the races, which are added one by one.
void to_proto(const JobReport& report, v1::Progress* out);
void to_proto(const Races::Race& race, v1::RaceProgress* out);
void to_proto(const Workers::Entry& worker, size_t leases, v1::WorkerSummary* out);

}  // namespace tuner
