// Facts of a database, read beside whoever writes it.
#pragma once

#include <memory>
#include <string>

#include "db/store.h"
#include "tuner/dashboard/fact_source.h"
#include "tuner/dashboard/live_daemon.h"

namespace tuner::dashboard {

// `store` is opened for reading. `live`: the daemon that works on it, for workers, speed and changes.
std::unique_ptr<FactSource> facts_of_store(std::shared_ptr<const Store> store,
                                           std::unique_ptr<LiveDaemon> live);

}  // namespace tuner::dashboard
