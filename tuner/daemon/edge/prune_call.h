// Pruning through a running daemon: it alone writes the database.
#pragma once

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuning.pb.h"

namespace tuner {

// Store::prune of one task, which need not be one that this program knows. InvalidArgument names the field.
Status prune_records(Store& store, const v1::PruneRequest& request, v1::PruneReply* reply);

}  // namespace tuner
