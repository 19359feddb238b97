// The pulse: about two microseconds of arithmetic, timed between calls of a kernel. It fills the core's issue
// slots and multipliers, so anyone who uses the core's other hardware thread about doubles it. Otherwise it
// shows the clock, to a few parts in a thousand. It works in registers only and leaves the caches as the
// kernel left them. So a pulse can stand between calls, where a sentinel (sentinel.h) cannot.
//
// Observed on a shared server CPU: a neighbour comes and goes within a millisecond and takes a third of a
// kernel's speed. Beside one AVX-512 kernel, pulses take 1.80 to 1.83 us without a neighbour, and the
// kernel's calls between two such pulses repeat within 1 %. With a neighbour, pulses take 1.9 to 4.5 us and
// calls up to 1.7 times as long. Beside kernels of less wide arithmetic the clock is higher: 1.36 to 1.75 us,
// in steps of 3 %.
#pragma once

namespace tuner {

// Returns the nanoseconds of one pulse on the calling thread; 0 on CPUs other than x86-64, which have none
// yet.
double pulse_ns();

// A pulse is disturbed above this multiple of the calm pulse beside kernels of the same task. Clock changes
// from minute to minute stay below it.
inline constexpr double kPulseDisturbed = 1.12;

}  // namespace tuner
