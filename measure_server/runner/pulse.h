// The pulse: about two microseconds of arithmetic, timed between calls of a kernel. It fills the core's
// issue slots and multipliers, so whoever uses the core's other hardware thread about doubles it; else it
// shows the clock, to a few parts in a thousand. It works in registers alone: what a kernel finds in the
// caches is as it left it, which is why a pulse can stand where a sentinel (sentinel.h) cannot.
//
// Seen on a shared server CPU: a neighbour comes and goes within a millisecond and takes a third of a
// kernel's speed. Beside one kernel of AVX-512 pulses last 1.80 to 1.83 us without him, and its calls between
// two of these repeat within 1 %; with him they last 1.9 to 4.5, and calls up to 1.7 times as long. Beside
// others, of less wide arithmetic, the clock is higher: 1.36 to 1.75 us, in steps of 3 %.
#pragma once

namespace tuner {

// Nanoseconds of one, on the calling thread; 0 on CPUs other than x86-64, for which there is none yet.
double pulse_ns();

// A pulse above so many times what one took beside kernels for the same task on a calm machine: more than
// their clocks differ from minute to minute.
inline constexpr double kPulseDisturbed = 1.12;

}  // namespace tuner
