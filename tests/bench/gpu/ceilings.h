// What the device can do at most, measured in the same run: copies, and arithmetic that touches no memory.
#pragma once

#include "measure_server/runner/pack_file.h"
#include "tests/bench/gpu/interleave.h"

namespace tuner {

// A copy on the device, of which `bytes` are read and written together.
Result<Contestant> copy_contestant(DeviceBench& bench, int64_t bytes, int sets);

// Gigabytes per second, read and written together, of a copy far larger than L2, in batches that
// take `fill_ns`. Unavailable: the device failed.
Result<double> copy_rate(DeviceBench& bench, double fill_ns);

// A kernel of check_kernels.h that only computes.
enum class Probe : uint8_t {
  kMultiplyAdds,  // of float32
  kBrainTiles,    // products of tiles of bfloat16, sums in float32, by mma.sync
  kTf32Tiles,     // products of tiles of float32, of which 10 bits of fraction count, by mma.sync
  kByteTiles,     // products of tiles of uint8 and int8, sums in int32, by mma.sync
};
// 10^9 operations per second of it, a multiplication and an addition being two. Failed, saying why: the pack
// has no such kernel (packs of before, packs for CPUs or for GPUs without it). Unavailable: the device
// failed.
Result<double> probe_rate(DeviceBench& bench, const PackFile& pack, Probe probe, double fill_ns);

}  // namespace tuner
