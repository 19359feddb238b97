// What a GPU can do in a second. For estimates only (time_estimate.h). Where a target names no class of
// devices, or one that has no row, it is taken for the device of its architecture that is most used.
#pragma once

#include <cstdint>
#include <string_view>

#include "compiler_core/target.h"

namespace tuner::cuda {

struct DeviceRates {
  std::string_view arch;
  std::string_view device;     // whose numbers these are; its class is gpu_class() of it
  int64_t multiprocessors;     // SMs
  double clock_ghz;            // boost
  int64_t fp32_lanes;          // multiply-adds of an SM and clock
  int64_t cache_bytes_per_sm;  // L1 and shared memory together
  int64_t l2_bytes;
  double dram_gb_per_s;
  // Clocks in which the tensor cores of one scheduler multiply tiles, by mma.sync where nothing else is said:
  // what is reached, and what is never fewer.
  struct TileClocks {
    double halves;       // 16 x 8 x 16 of 16 bits, sums in float32
    double bytes;        // 16 x 8 x 32 of bytes, sums in int32
    double grouped = 4;  // 16 x 8 x 16 of 16 bits by wgmma; of sm_90a alone
  };
  TileClocks mma, least_mma;

  double dram_bytes_per_clock() const { return dram_gb_per_s / clock_ghz; }
};

// Dot products of four bytes (dp4a) of an SM and clock, of every device: assumed to be as many as 32-bit
// integer multiply-adds, of which the table "Arithmetic Instructions" has 64. The data sheet of the V100
// agrees: four times its float32 operations.
constexpr int64_t kDotLanes = 64;

// Requires a CUDA target; one that is not in the table is taken for an H200.
const DeviceRates& device_rates(const Target& target);

}  // namespace tuner::cuda
