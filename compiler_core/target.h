// Target: one device, described; parsed from and printed as text.
//
//   cpu, cpu -threads=N, cpu -threads=all    this host (resolved by resolve_target, backend.h)
//   llvm -mcpu=haswell -threads=2            a CPU by its LLVM name; others: -mtriple=... -mattr=+fp16
//   cuda -arch=sm_90a                        any GPU of an architecture
//   cuda -arch=sm_90a -device=h200           one class of its GPUs (base/gpu_class.h)
//
// The first word names the family, that is the back end (target_family.h). name() is canonical: one spelling
// for one device, options in the order -mcpu -mtriple -mattr -threads -emulated (or -arch -device -emulated),
// defaults left out except -threads. It is a key in the database. Hardware and toolchain fingerprints are not
// part of it. "-emulated" keeps times of emulated kernels apart from those of a device; their code is the
// same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "compiler_core/target_family.h"

namespace tuner {

const TargetFamily& cpu_family();   // codegen/cpu_family.cpp
const TargetFamily& cuda_family();  // codegen_cuda/cuda_family.cpp

struct Target {
  const TargetFamily* family = &cpu_family();  // never null; lives for ever
  std::string mcpu;                            // CPU: LLVM's name
  std::string mtriple;                         // CPU: empty means x86_64-linux-gnu
  std::vector<std::string> mattr;              // CPU: "+avx512f", sorted
  std::string arch;                            // GPU: sm_90a
  std::string device;                          // GPU: its class, h200; empty means any
  // GPU: measured as the emulator's CPU Programs (tuner pack --emulate). CPU: measured by a worker that
  // qemu-user runs (base/process_emulator.h).
  bool emulated = false;
  int threads = 1;                         // CPU threads a kernel is built for
  std::map<std::string, int64_t> numbers;  // options of other families

  // What templates ask. Filled by parse_target() from a table of CPUs (codegen/cpu_family.cpp; a CPU it does
  // not list keeps these defaults) and by host_target() from the CPU itself.
  int vector_bits = 128;        // widest useful vector
  int vector_registers_n = 16;  // architectural vector registers
  int64_t l1d_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 8 << 20;

  // GPU limits, of a multiprocessor (SM) unless said otherwise; from a table of architectures.
  int64_t shared_bytes_per_block = 0;  // dynamic, opted in
  int64_t shared_bytes_per_sm = 0;
  int64_t shared_bytes_reserved = 0;  // taken by the system from each block's share
  int64_t registers_per_sm = 0;       // 32-bit
  int64_t threads_per_sm = 0, blocks_per_sm = 0;

  // For templates and back ends; the rest of the system asks the family or the back end.
  bool is_cpu() const { return family == &cpu_family(); }
  bool is_x86() const { return is_cpu() && (mtriple.empty() || mtriple.starts_with("x86_64")); }
  bool is_cuda() const { return family == &cuda_family(); }
  // True if products of tiles of this type (AMX; i8mm and bf16 of AArch64) are among the CPU's instructions;
  // codegen/cpu_family.cpp.
  bool has_tiles(DType dtype) const;
  // True if dot products of bfloat16 are among its instructions (vdpbf16ps, bfdot).
  bool has_bfloat16_dots() const;
  // GPU: 80 of sm_80, 90 of sm_90a; else 0. codegen_cuda/cuda_family.cpp.
  int compute_capability() const;
  int64_t f32_lanes() const { return vector_bits / 32; }
  int64_t vector_registers() const { return vector_registers_n; }
  std::string name() const { return family->name(*this); }
};

// Parses any spelling above but `cpu` (which needs the host: resolve_target). The error names the word it
// stumbled on.
Result<Target> parse_target(std::string_view text);

// OK when `value` consists of letters, digits, and "-._+"; what an option's value must be.
Status check_target_word(std::string_view key, std::string_view value);
// `value` as a number in [low, high].
Result<int64_t> target_number(std::string_view key, std::string_view value, int64_t low, int64_t high);

}  // namespace tuner
