// Times of several contestants on one device, taken in turn: A, B, A, B, ... What changes slowly (clocks,
// heat, a neighbour) changes for all of them.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "measure_server/runner/device_candidate.h"

namespace tuner {

struct Contestant {
  std::string name;
  // Queues one call on set `set` of its operands, on the bench's stream.
  std::function<Status(int set)> call;

  int64_t calls = 0;       // in a batch, as many as fill InterleaveOptions::fill_ns
  std::vector<double> ns;  // per call, one per round
  int64_t next_set = 0;
  // A batch's calls, recorded: record_graphs(). Not recorded: they are queued one by one.
  cuda::DeviceGraph graph;
  int64_t graph_calls = 0;  // in the graph; a batch launches it calls / graph_calls times
};

struct InterleaveOptions {
  int rounds = 40;
  double fill_ns = 1e6;  // a batch takes at least this long on the device's clock
  int sets = 1;          // of operands: calls take turns on them
  // No round is begun after this.
  std::chrono::steady_clock::time_point stop_at = std::chrono::steady_clock::time_point::max();
};

// Records a batch of each contestant as a CUDA graph, which interleave() then launches: so the time that the
// host takes to queue a call counts for nobody. Failed, naming whose calls cannot be recorded and why: then
// no contestant has a graph. Unavailable: the device failed.
Status record_graphs(DeviceBench& bench, const InterleaveOptions& options,
                     std::vector<Contestant>& contestants);

// Fills `calls` (where there is no graph) and `ns` of each contestant: every one has as many samples as
// rounds were whole. `states` gets what NVML says while batches run: in the first round, in the middle one,
// in the last. Unavailable: the device failed, and its context with it.
Status interleave(DeviceBench& bench, const InterleaveOptions& options, std::vector<Contestant>& contestants,
                  std::vector<std::string>& states);

}  // namespace tuner
