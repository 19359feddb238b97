#include "compiler_core/codegen_cuda/device_rates.h"

#include "compiler_core/base/gpu_class.h"

namespace tuner::cuda {
namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;

// Multiprocessors, boost clock, L2 and memory: the vendor's data sheets. The H200's L2 and memory rate are
// measured ones (a copy, both directions counted). Lanes and the size of L1: "Technical Specifications" and
// "Arithmetic Instructions" of the CUDA C++ Programming Guide.
//
// Tensor cores: the data sheets' dense rates (16-bit floats with float32 sums; int8) by multiprocessors, four
// schedulers and clock. An A100 does 312 TFLOP/s and 624 TOP/s: 8 clocks for either tile. A GeForce sums
// float32 at half the rate of float16, bytes at full rate: an RTX 3090 does 71 and 284, an RTX 4090 165 and
// 661, an RTX 5090 210 and 838, so 32 and 16 clocks. An H200 does 989 and 1979: 4 clocks, by wgmma; mma.sync
// reaches 0.63 of it (Luo et al. 2024, "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
// Microbenchmarking"), which is 6.4 clocks, and is taken for never below 6. By wgmma a product of ours whose
// loop copied nothing reached 843 TFLOP/s, 5.1 clocks. Blackwell's data center GPUs do 2250 and 4500 by
// tcgen05, 2 clocks: what mma.sync reaches there is assumed. V100 (no bytes) and T4: 16.
constexpr DeviceRates kDevices[] = {
    {"sm_70", "V100", 80, 1.53, 64, 128 * kKiB, 6 * kMiB, 900, {16, 16}, {16, 16}},
    {"sm_75", "T4", 40, 1.59, 64, 96 * kKiB, 4 * kMiB, 320, {16, 16}, {16, 16}},
    {"sm_80", "A100", 108, 1.41, 64, 192 * kKiB, 40 * kMiB, 2039, {8, 8}, {8, 8}},
    {"sm_86", "RTX 3090", 82, 1.70, 128, 128 * kKiB, 6 * kMiB, 936, {32, 16}, {32, 16}},
    {"sm_87", "Orin", 16, 1.30, 128, 192 * kKiB, 4 * kMiB, 204, {8, 8}, {8, 8}},
    {"sm_89", "RTX 4090", 128, 2.52, 128, 128 * kKiB, 72 * kMiB, 1008, {32, 16}, {32, 16}},
    {"sm_90", "H200", 132, 1.98, 128, 256 * kKiB, 60 * kMiB, 4300, {6.5, 6.5, 5.1}, {6, 6, 4}},
    {"sm_90", "H100", 132, 1.98, 128, 256 * kKiB, 50 * kMiB, 3350, {6.5, 6.5, 5.1}, {6, 6, 4}},
    {"sm_90", "H100 PCIe", 114, 1.76, 128, 256 * kKiB, 50 * kMiB, 2000, {6.5, 6.5, 5.1}, {6, 6, 4}},
    {"sm_90", "GH200", 132, 1.98, 128, 256 * kKiB, 50 * kMiB, 4000, {6.5, 6.5, 5.1}, {6, 6, 4}},
    {"sm_100", "B200", 148, 1.97, 128, 256 * kKiB, 126 * kMiB, 8000, {8, 8}, {2, 2}},
    {"sm_103", "B300", 148, 1.92, 128, 256 * kKiB, 126 * kMiB, 8000, {8, 8}, {2, 2}},
    {"sm_120", "RTX 5090", 170, 2.41, 128, 128 * kKiB, 96 * kMiB, 1792, {32, 16}, {32, 16}},
};

}  // namespace

const DeviceRates& device_rates(const Target& target) {
  const std::string_view arch = target.arch;
  const std::string_view base = arch.substr(0, arch.find_last_of("0123456789") + 1);
  const DeviceRates* usual = nullptr;
  for (const DeviceRates& row : kDevices) {
    if (row.arch == base && gpu_class(row.device) == target.device) return row;
    if (row.arch == base && (usual == nullptr || usual->arch != base)) usual = &row;
    if (row.arch == "sm_90" && usual == nullptr) usual = &row;
  }
  return *usual;
}

}  // namespace tuner::cuda
