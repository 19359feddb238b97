// amx_emulator: machine code with AMX instructions runs in a test, whatever CPU this is.
//
// Where the CPU has AMX and the system allows it, nothing is changed: the hardware runs it. Elsewhere each
// AMX instruction is illegal; a handler of SIGILL decodes it, does it on registers of its own (one set a
// thread) as Intel's manual says, and goes on behind it. What the hardware would not do ends the process with
// one line: a register that is not configured, shapes that do not fit, one register twice in a product.
//
// Exact: bfloat16 and float16 products with fused additions in single precision, even and odd elements of the
// groups apart, denormal results and bfloat16 inputs as zeros; bytes modulo 2^32.
#pragma once

#include <cstdint>
#include <string>

namespace tuner::testing {

// Makes AMX code run in this process. Returns how ("on the hardware", "emulated"); "" where this is no x86 of
// 64 bits. Call it at the start of a test; it may be called again.
std::string run_amx_here();

// Instructions that the emulator has done so far, in all threads; 0 on the hardware.
struct AmxCounts {
  int64_t configurations = 0, releases = 0, zeros = 0, loads = 0, stores = 0, products = 0;
};
AmxCounts amx_counts();

}  // namespace tuner::testing
