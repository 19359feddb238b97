// Target: one device, described; parsed from and printed as text.
//
//   cpu, cpu -threads=N, cpu -threads=all    this host (resolved by resolve_target, codegen/compile.h)
//   llvm -mcpu=haswell -threads=2            a CPU by its LLVM name; others: -mtriple=... -mattr=+fp16
//   cuda -arch=sm_90a                        a GPU by its architecture
//
// name() is canonical: one spelling for one device, options in the order -mcpu -mtriple -mattr -threads (or
// -arch -emulated), defaults left out except -threads. It is a key in the database. Hardware and toolchain
// fingerprints are not part of it. "-emulated" keeps times of emulated kernels apart from those of a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

enum class DeviceKind : uint8_t { kCpu, kCuda };

struct Target {
  DeviceKind kind = DeviceKind::kCpu;
  std::string mcpu;                // CPU: LLVM's name
  std::string mtriple;             // CPU: empty means x86_64-linux-gnu
  std::vector<std::string> mattr;  // CPU: "+avx512f", sorted
  std::string arch;                // GPU: sm_90a
  bool emulated = false;           // GPU: measured as the emulator's CPU Programs (tuner pack --emulate)
  int threads = 1;                 // CPU threads a kernel is built for

  // What templates ask. Filled by parse_target() from a table of CPUs (target.cpp; a CPU it does not list
  // keeps these defaults) and by host_target() from the CPU itself.
  int vector_bits = 128;        // widest useful vector
  int vector_registers_n = 16;  // architectural vector registers
  int64_t l1d_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 8 << 20;

  // GPU limits, of a multiprocessor (SM) unless said otherwise; from a table of architectures.
  int64_t shared_bytes_per_block = 0;  // dynamic, opted in
  int64_t shared_bytes_per_sm = 0;
  int64_t shared_bytes_reserved = 0;  // taken by the system from each block's share
  int64_t registers_per_sm = 0;       // 32-bit
  int64_t threads_per_sm = 0, blocks_per_sm = 0;

  bool is_cpu() const { return kind == DeviceKind::kCpu; }
  bool is_x86() const { return is_cpu() && (mtriple.empty() || mtriple.starts_with("x86_64")); }
  bool is_cuda() const { return kind == DeviceKind::kCuda; }
  int64_t f32_lanes() const { return vector_bits / 32; }
  int64_t vector_registers() const { return vector_registers_n; }
  std::string name() const;
};

// Parses any spelling above but `cpu` (which needs the host: resolve_target). The error names the word it
// stumbled on.
Result<Target> parse_target(std::string_view text);

}  // namespace tuner
