// From a lease to a request of the runner, and from its reply to the record. No clocks, no processes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "measure_server/runner/runner_protocol.h"
#include "measure_server/worker/builder_protocol.h"
#include "measure_server/worker/worker_core.h"

namespace tuner {

// What the lease asks for, where it asks; all but the data, the tolerance, and what changes from try to try.
// Sampling is cut above cut_factor (2 where none is named; negative: never) times the best time of the task,
// and ends early above 1.1 times.
RunRequest request_for(const WorkerCore::Built& built);
// The same for the heats of a race of `finalists`: a heat may take each one's time.
RunRequest heat_request_for(const v1::Lease& lease, size_t finalists);
// Files of inputs and answers, and those that were kept back.
void take_data(const BuildReply& data, RunRequest& request);
// Puts what the runner found into the record. Returns the names of facts that no record has.
std::vector<std::string> take_reply(const RunReply& reply, v1::MeasureRecord& record);

// True if it is slower than the best by more than any disturbance explains: how slow it is exactly need not
// be known.
bool surely_slower(const RunReply& reply, double best_ns);

}  // namespace tuner
