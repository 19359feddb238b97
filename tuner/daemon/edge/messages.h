// The daemon's own values <-> messages: the edge of the coordinator, whose parts know no message. What other
// programs share, too, is in proto/convert.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "measure.pb.h"
#include "tuner/daemon/tables/jobs.h"
#include "tuner/daemon/tables/lease_table.h"
#include "tuner/daemon/tables/races.h"
#include "tuner/daemon/tables/work.h"
#include "tuner/daemon/tables/workers.h"
#include "tuning.pb.h"

namespace tuner {

inline constexpr uint64_t kInputSeed = 1;  // one for all trials, so that their times compare

// What a worker says of itself, and whether that can be (Workers::Offer::impossible). InvalidArgument: it has
// no name or target, or speaks another protocol.
Result<Workers::Offer> from_proto(const v1::RegisterRequest& request);
// Leases that a worker names.
std::vector<LeaseTable::Held> held_of(const google::protobuf::RepeatedPtrField<v1::HeldLease>& leases);
// A peer's text as it may stand in a log or an event: without control characters, at most 300 bytes.
std::string shown(std::string_view text);
// The result of that trial or race is on disk, or of no use: its worker may forget it.
void add_ack(const std::string& id, int attempt, v1::SyncReply* reply);
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
