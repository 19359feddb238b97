// Buffers that the runner shares with its candidates (outputs, reports), kept from one candidate to the next
// of the same sizes.
//
// Fresh shared pages have to be asked for, zeroed and found by a fault; on some hypervisors that costs
// microseconds a page.
#pragma once

#include <cstdint>
#include <map>

#include "measure_server/runner/guarded_memory.h"

namespace tuner {

class SharedBuffers {
 public:
  // Keeps at most this many bytes that nobody uses; 0: none.
  explicit SharedBuffers(int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // Returns a buffer as GuardedBuffer::create(bytes, kShared) makes it, but that it may hold anything: an
  // earlier candidate's answer, for instance. Whoever takes it writes all of it before the next one is
  // forked. `where`: as there. Failed: the system has none.
  Result<GuardedBuffer> take(int64_t bytes, void* where = nullptr);

  // Takes back a buffer that no living process but this one has.
  void give_back(GuardedBuffer buffer);

 private:
  const int64_t capacity_bytes_;
  int64_t kept_bytes_ = 0;
  std::multimap<int64_t, GuardedBuffer> kept_;  // by size
};

}  // namespace tuner
