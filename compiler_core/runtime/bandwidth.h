// How fast this CPU reads memory, level by level: what a kernel that does little arithmetic on much data is
// held against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/runtime/kernel.h"

namespace tuner {

// Where data live between two uses, by how many of them there are.
struct MemoryLevel {
  std::string name;            // "L1", "L2", "L3", "DRAM"
  int64_t capacity_bytes = 0;  // of one core's share; of DRAM: without end
  int64_t probe_bytes = 0;     // lies in this level and in none below it
};

// The levels of a CPU with these caches, smallest first.
std::vector<MemoryLevel> memory_levels(int64_t l1d_bytes, int64_t l2_bytes, int64_t l3_bytes);
// The first level that holds that many bytes.
const MemoryLevel& level_of(const std::vector<MemoryLevel>& levels, int64_t bytes);

// Reads `bytes`, a multiple of 512, at `data`, which is aligned to 64 bytes, with the widest vector loads
// known here. For callers who keep time themselves.
void read_bytes(const void* data, int64_t bytes);

// Gigabytes a second that one thread reads of this level, the best of several windows within about
// `milliseconds`. Runs on the calling thread. The first touch of the probe's memory comes on top.
double measure_read_gbps(const MemoryLevel& level, double milliseconds = 20);

}  // namespace tuner
