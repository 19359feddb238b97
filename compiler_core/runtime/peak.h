// The most this CPU can do: single-precision fused multiply-adds from registers, in the widest vectors it
// has.
#pragma once

namespace tuner {

// GFLOP/s of one thread (a fused multiply-add counts 2), the best of several windows within about
// `milliseconds`. Runs on the calling thread; call it on several at once for the peak of several. 0 when the
// CPU has no vector FMA known here.
double measure_fma_peak_gflops(double milliseconds = 50);

// Does that loop's work once, about 100 us of it, for a caller who keeps time himself; returns how many
// operations it was. 0 when the CPU has no vector FMA known here.
double fma_peak_burst();

// Bits of the vectors it used: 512, 256, 128; 0 when none.
int fma_peak_vector_bits();

}  // namespace tuner
