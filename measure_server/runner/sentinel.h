// The sentinels: small fixed pieces of work, timed before and after each candidate (where candidates follow
// each other, what came after one came before the next). The same machine in the same state takes the same
// time; a longer time shows what slows the candidate beside it.
//
// The sentinel takes about 100 us of arithmetic in the core's own caches. It is stored with each time as the
// state of the machine. (Which calls count is decided by the pulses between them: calm_gate.h.) The memory
// sentinel takes 1 to 4 ms with its untimed part. It reads the cache that cores share and the memory behind
// it, so it shows a neighbour who streams through both. Kernels whose operands fit the core's own caches do
// not feel such a neighbour.
#pragma once

#include <cstdint>
#include <vector>

namespace tuner {

// Returns the nanoseconds of one pass, the better of three. Runs on the calling thread.
double sentinel_ns();

// Returns the nanoseconds to read a buffer that lies in the shared cache, and 1 MiB that does not: each the
// better of two, repeated beside disturbed pulses, for 10 ms at most. The buffer is 1.5 times L2, or an
// eighth of the shared cache if that is more, and at most 16 MiB: a neighbour who fills that cache leaves
// less of it to a kernel with as many weights. Observed: 1.3 ms became 3.5 for minutes, while 3 MB were read
// as fast as ever.
//
// Evicts what the core had in its own caches, so the next timed code must warm up again. Runs on the calling
// thread.
double memory_sentinel_ns();

// Time the sentinel on the first of these CPUs, where the candidate runs. Empty: on the current CPU.
double sentinel_on(const std::vector<int>& cpus);
double memory_sentinel_on(const std::vector<int>& cpus);
// Return the latest such time if it is at most 20 ms old, else take a new one.
double recent_sentinel_on(const std::vector<int>& cpus);
double recent_memory_sentinel_on(const std::vector<int>& cpus);

// Returns the size of the core's L2, as the system tells it; 1 MiB if it does not.
int64_t own_cache_bytes();

}  // namespace tuner
