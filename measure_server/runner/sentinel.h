// The sentinels: small fixed pieces of work, timed before and after each candidate. The same machine in the
// same state gives the same time; a longer one shows what slows the candidate beside it.
//
// The sentinel, about 100 us, is arithmetic and the core's own caches: it is kept with each time, as the
// state the machine was in. Which calls count is decided by pulses, which stand between them: calm_gate.h.
// The memory sentinel, 1 to 4 ms with what it does not time, reads the cache that cores share and the memory
// behind it: it shows a neighbour who streams through both. Kernels whose operands fit the core's own caches
// do not feel him.
#pragma once

#include <cstdint>

namespace tuner {

// Nanoseconds of one pass, the better of three. Runs on the calling thread.
double sentinel_ns();

// Nanoseconds to read a buffer that lies in the shared cache, and 1 MiB that does not: each the better of
// two, taken anew beside disturbed pulses, for 10 ms at most. The buffer is half as large again as L2, or an
// eighth of the shared cache where that is more, 16 MiB at most: who fills that cache leaves less of it to a
// kernel with as many weights. Seen: 1.3 ms became 3.5 for minutes, while 3 MB were read as fast as ever.
//
// Pushes what the core had in its own caches out of them: whoever is timed next has to warm up again. Runs on
// the calling thread.
double memory_sentinel_ns();

// What the core has to itself: the size of its L2, as the system tells it; 1 MiB where it does not.
int64_t own_cache_bytes();

}  // namespace tuner
