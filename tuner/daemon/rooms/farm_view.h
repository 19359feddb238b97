// What is shown of a farm: jobs, workers, and figures of the moment, as free functions over its state. From
// memory alone: it is asked every second, beside thousands of Syncs. `now_ms`: monotonic.
#pragma once

#include <cstdint>

#include "db/blobs/blob_store.h"
#include "tuner/daemon/edge/metrics.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/tables/work.h"
#include "tuning.pb.h"

namespace tuner {

// `blobs`: null if nothing that builders made is kept.
DaemonNow now_of(const FarmState& farm, const BlobStore* blobs, int64_t now_ms);

// The jobs and tenants that the caller may see, and the daemon. `results`: stored since it has started.
void list_known(const FarmState& farm, const Scope& scope, const DaemonNow& now, uint64_t results,
                v1::ListReply* reply);

void list_workers(const FarmState& farm, int64_t now_ms, v1::ListWorkersReply* reply);

}  // namespace tuner
