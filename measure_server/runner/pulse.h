// The pulse: about two microseconds of arithmetic, timed between calls of a kernel. It fills the core's
// issue slots and multipliers, so whoever uses the core's other hardware thread about doubles it; else it
// shows the clock, to a few parts in a thousand. It works in registers alone: what a kernel finds in the
// caches is as it left it, which is why a pulse can stand where a sentinel (sentinel.h) cannot.
//
// Seen on a shared server CPU: a neighbour comes and goes within a millisecond and takes a third of a
// kernel's speed. Pulses last 1.41 to 1.81 us without him, in steps as the clock has them, and 2.3 to 4.5
// with him; calls of a matrix product between two of the first kind repeat within 1 %, all calls within 60 %.
#pragma once

namespace tuner {

// Nanoseconds of one, on the calling thread; 0 on CPUs other than x86-64, for which there is none yet.
double pulse_ns();

// A pulse above so many times the fastest says that somebody was there: more than clocks differ, less than he
// makes it.
inline constexpr double kPulseDisturbed = 1.35;

}  // namespace tuner
