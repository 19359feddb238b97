// Facts of a daemon on another host, by the calls that every client makes.
//
// It tells jobs, answers and workers. It does not give out single records and races: those are on its own
// host, as the errors say. A curve is what was seen of a job's progress since somebody looked.
#pragma once

#include <memory>
#include <string>

#include "tuner/dashboard/fact_source.h"
#include "tuner/dashboard/live_daemon.h"

namespace tuner::dashboard {

std::unique_ptr<FactSource> facts_of_daemon(const std::string& name, std::unique_ptr<LiveDaemon> daemon);

}  // namespace tuner::dashboard
