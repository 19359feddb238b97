// A result that cannot be, as it is stored: who claimed what of which trial, and why nobody believes it. It
// is kept for people. Nothing is decided from it: no search, answer, race or export sees it.
#pragma once

#include <cstdint>
#include <string>

namespace tuner {

struct QuarantineRow {
  int64_t id = 0;
  std::string lease_id;  // a trial ("t12") or a race ("race j1/2 @...")
  int attempt = 0;
  std::string worker_id, worker_incarnation, host;
  double claimed_ns =
      0;            // the time a call would take: the median of a trial's samples, the winner's of a race
  std::string why;  // one line for people, with the bound that it breaks
  int64_t received_at_us = 0;  // Unix time, UTC, daemon's clock
};

}  // namespace tuner
