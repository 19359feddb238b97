// A kernel for the NPU as a file: a program, and what the driver of the device has to know about it.
//
//   "NPUKERN\n", version, numbers, operands, patches, constants, packing, then a program (encoding.h)
//
// All numbers are little-endian. A file that reads well can be run: nothing in it points outside of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/npu/encoding.h"

namespace tuner::npu {

// An argument of the kernel: where it lies in DRAM.
struct KernelOperand {
  uint64_t dram = 0, bytes = 0;
  bool is_input = false, is_output = false;
  bool operator==(const KernelOperand&) const = default;
};

// A number of an instruction that the driver takes from an operand just before it starts a program: its first
// byte plus `add`, cut to what the field holds. Zero points come this way.
struct KernelPatch {
  enum class Field : uint8_t { kZero, kLow, kHigh };
  uint32_t instruction = 0, operand = 0;
  Field field = Field::kZero;
  int32_t add = 0;
  bool operator==(const KernelPatch&) const = default;
};

// Bytes that the host copies once, before all calls: constants in the order in which the program wants them.
// In a nest of loops, element by element; where one of the conditions fails the element becomes zeros.
struct PackCopy {
  struct Linear {  // base + sum of by[i] * (loop i)
    int64_t base = 0;
    std::vector<int64_t> by;
    bool operator==(const Linear&) const = default;
  };
  uint32_t from = 0, to = 0;  // numbers of arguments of the packing
  uint32_t element_bytes = 1;
  std::vector<int64_t> extents;  // of the loops, outermost first
  Linear source, target;         // in bytes
  std::vector<Linear> at_least_zero;
  bool operator==(const PackCopy&) const = default;
};

struct KernelFile {
  std::string machine;  // Machine::name()
  Code code;
  std::vector<KernelOperand> operands;  // in the order of arguments
  std::vector<KernelPatch> patches;
  // Bytes that the driver puts into DRAM beside the operands.
  uint64_t constants_at = 0;
  std::string constants;
  uint64_t dram_bytes = 0;
  std::vector<uint64_t> pack_bytes;  // of the arguments of the packing; empty: nothing is packed
  std::vector<PackCopy> packing;
};

inline constexpr uint32_t kKernelVersion = 1;
// No kernel has more DRAM than an address of it says.
inline constexpr uint64_t kMostDramBytes = uint64_t{1} << 32;

// Requires check() of each instruction.
std::string write_kernel(const KernelFile& kernel);
// Reads what write_kernel() wrote. Any other bytes give one line.
Result<KernelFile> read_kernel(std::string_view bytes);

// Packs. False: a copy would reach outside of an argument.
bool run_packing(const KernelFile& kernel, void* const* args);

}  // namespace tuner::npu
