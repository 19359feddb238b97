// The most this CPU can do in products of small types: dot-product instructions from registers.
#pragma once

#include "compiler_core/base/dtype.h"

namespace tuner {

// G operations a second of one thread (a product and its addition count 2), as measure_fma_peak_gflops():
// bfloat16 by vdpbf16ps, int8 by vpdpbusd, in the widest vectors this CPU has them for. Where it has none,
// and for any other type, the peak of float32: the instructions that stand in for them do no more.
double measure_peak_gops(DType dtype, double milliseconds = 50);

// Such a loop's work once, about 100 us of it, for a caller who keeps time himself; returns how many
// operations it was.
double peak_burst(DType dtype);

}  // namespace tuner
