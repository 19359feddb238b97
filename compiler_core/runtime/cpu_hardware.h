// What CPU this is: the hardware fingerprint of measure records. Times of two fingerprints are not compared.
#pragma once

#include <cstdint>
#include <string>

namespace tuner {

// "Intel(R) Xeon(R) Processor 6.167.1 microcode 0x1 | 2 cpus | L1d 48K L2 2048K L3 491520K | avx2 fma
// avx512f". Stable as long as the machine is: no frequencies, loads or host names. Parts the system does not
// tell are left out. Under an emulator it begins with "cortex-a72 emulated on ", the host's CPU behind it.
std::string hardware_fingerprint();

// Sizes of the first CPU's caches as the system tells them, in bytes; 0: it does not. L1d and L2 are one
// core's, L3 is what the system calls so, of which a guest on a shared host gets a part.
struct CpuCaches {
  int64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;
};
CpuCaches cpu_caches();

}  // namespace tuner
