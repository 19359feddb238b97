// What a kernel of ours is held against: a product or convolution of NVIDIA's libraries, or a copy.
#pragma once

#include "tests/bench/gpu/interleave.h"
#include "tests/bench/gpu/peer_sources.h"
#include "tests/bench/gpu/report.h"

namespace tuner {

struct PeerOptions {
  // Of the rounds that follow; no rounds: nothing is timed, a few ways are run and compared.
  InterleaveOptions interleave;
  double seconds = 5;  // of search, for a task; its questions share them
};

// Searches the peer of the task, and adds it to `contestants`; then the `report.also` that are told beside
// it, in that order. Of the ways that are right, the fastest few take turns with ours for some rounds, and
// the fastest is the peer. A library that is not there or is wrong is told in `report`, and no failure: ours
// is timed all the same. Unavailable: the device failed. All but `report` outlive the contestants.
Status add_peer(DeviceBench& bench, const Libraries& libraries, const PeerOptions& options, DeviceCase& ours,
                PeerReport& report, std::vector<Contestant>& contestants);

}  // namespace tuner
