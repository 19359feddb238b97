// What the parts of the worker (worker.cpp, worker_build.cpp, worker_run.cpp) share.
#pragma once

#include <string>

#include "measure.pb.h"
#include "measure_server/runner/runner_protocol.h"
#include "measure_server/worker/builder_protocol.h"

namespace tuner {

inline constexpr int kInfrastructureTries = 3;  // of a run that failed through no fault of the candidate

// "wrong_answer" -> v1::WRONG_ANSWER; unspecified where the name is none.
v1::Outcome outcome_of(const std::string& name);
// Inputs and references belong to a workload and a seed.
std::string data_key(const v1::Lease& lease);
// What the answers of the trial's template may err: that depends on its algorithm. A trial of a template that
// is not known here does not build.
CheckSpec check_for(const v1::Lease& lease, const std::string& template_name, const BuildReply& data);

}  // namespace tuner
