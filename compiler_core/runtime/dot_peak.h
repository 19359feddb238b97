// The most this CPU can do in products of small types: tiles, dot-product instructions or float32 vectors
// from registers, whichever does most.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"

namespace tuner {

// G operations a second of one thread (a product and its addition count 2), as measure_fma_peak_gflops(), of
// the fastest unit: bfloat16 by tdpbf16ps or vdpbf16ps, int8 by tdpbusd or vpdpbusd, float16 by tdpfp16ps, on
// AArch64 bfloat16 by bfmmla or bfdot and int8 by smmla or sdot, or float32 multiply-adds where they do more.
// Which is fastest is measured once a process, in some 10 ms. Any other type: the peak of float32.
double measure_peak_gops(DType dtype, double milliseconds = 50);

// Such a loop's work once, about 100 us of it, for a caller who keeps time himself; returns how many
// operations it was.
double peak_burst(DType dtype);

// What each loop of dot products that this CPU has for the type says it does in `steps`, and what its sums
// say it did: twice the products of the chain that has the fewest, times the chains. `steps` of at most
// 20,000. Without tiles.
struct CountedLoop {
  std::string_view instruction;
  int chains;  // of instructions that wait for nothing but the one before in their chain
  double operations, counted;
};
std::vector<CountedLoop> counted_dot_loops(DType dtype, int64_t steps);

}  // namespace tuner
