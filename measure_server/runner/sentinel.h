// The sentinel: a small fixed mix of arithmetic and memory, about 100 us, timed before and after each
// candidate. The same machine in the same state gives the same time; a noisy neighbour, a lowered clock or a
// hot package shows as a longer one.
#pragma once

namespace tuner {

// Nanoseconds of one pass, the better of three. Runs on the calling thread.
double sentinel_ns();

}  // namespace tuner
