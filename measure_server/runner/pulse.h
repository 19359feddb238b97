// The pulse: about two microseconds of arithmetic, timed between calls of a kernel. It fills the core's issue
// slots and multipliers, so anyone who uses the core's other hardware thread about doubles it. Otherwise it
// shows the clock, to a few parts in a thousand. It works in registers only and leaves the caches as the
// kernel left them. So a pulse can stand between calls, where a sentinel (sentinel.h) cannot.
//
// A kernel changes the clock, and the clock recovers within the pulses behind it: beside wide arithmetic on a
// server CPU of 2023 they took 1.2 to 1.4 us, beside none 1.08, and each change stops the core for a
// microsecond or two. Before and behind a pulse stands a chain of multiplications, each of which waits for
// the one before. Its time depends on the clock alone, because it leaves nearly all slots to a neighbour. The
// pulse over the chain is the same at every clock, within 2 %: who is there shows in it.
//
// Observed on a shared server CPU: a neighbour comes and goes within a millisecond and takes a third of a
// kernel's speed. Beside one AVX-512 kernel, pulses take 1.80 to 1.83 us without a neighbour, and the
// kernel's calls between two such pulses repeat within 1 %. With a neighbour, pulses take 1.9 to 4.5 us and
// calls up to 1.7 times as long.
#pragma once

namespace tuner {

struct Pulse {
  double ns = 0;       // 0: CPUs other than x86-64 have none yet
  double even_ns = 0;  // what it takes at a clock of 2.88 GHz (where a multiplication takes three cycles)
};

// On the calling thread.
Pulse take_pulse();

// A pulse is disturbed above this multiple of the calm pulse beside kernels of the same task, both at an even
// clock.
inline constexpr double kPulseDisturbed = 1.12;

}  // namespace tuner
