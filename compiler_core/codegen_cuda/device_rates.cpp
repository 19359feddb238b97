#include "compiler_core/codegen_cuda/device_rates.h"

namespace tuner::cuda {
namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;

// Multiprocessors, boost clock, L2 and memory: the vendor's data sheets. The H200's L2 and memory rate are
// measured ones (a copy, both directions counted). Lanes and the size of L1: "Technical Specifications" and
// "Arithmetic Instructions" of the CUDA C++ Programming Guide. Tensor cores: the data sheets' rates with float32 sums by
// multiprocessors and clock; of an H200 mma.sync reaches 0.63 (published microbenchmarks: the rest takes wgmma); of sm_70, sm_75,
// sm_100 and sm_103 assumed.
constexpr DeviceRates kDevices[] = {
    {"sm_70", "V100", 80, 1.53, 64, 128 * kKiB, 6 * kMiB, 900, 16},
    {"sm_75", "T4", 40, 1.59, 64, 96 * kKiB, 4 * kMiB, 320, 16},
    {"sm_80", "A100", 108, 1.41, 64, 192 * kKiB, 40 * kMiB, 2039, 8},
    {"sm_86", "RTX 3090", 82, 1.70, 128, 128 * kKiB, 6 * kMiB, 936, 32},
    {"sm_87", "Orin", 16, 1.30, 128, 192 * kKiB, 4 * kMiB, 204, 8},
    {"sm_89", "RTX 4090", 128, 2.52, 128, 128 * kKiB, 72 * kMiB, 1008, 32},
    {"sm_90", "H200", 132, 1.98, 128, 256 * kKiB, 60 * kMiB, 4300, 6.5},
    {"sm_100", "B200", 148, 1.97, 128, 256 * kKiB, 126 * kMiB, 8000, 8},
    {"sm_103", "B300", 148, 1.92, 128, 256 * kKiB, 126 * kMiB, 8000, 8},
    {"sm_120", "RTX 5090", 170, 2.41, 128, 128 * kKiB, 96 * kMiB, 1792, 32},
};

}  // namespace

const DeviceRates& device_rates(const Target& target) {
  const std::string_view arch = target.arch;
  const std::string_view base = arch.substr(0, arch.find_last_of("0123456789") + 1);
  const DeviceRates* usual = nullptr;
  for (const DeviceRates& row : kDevices) {
    if (row.arch == base) return row;
    if (row.arch == "sm_90") usual = &row;
  }
  return *usual;
}

}  // namespace tuner::cuda
