#include "tests/bench/gpu/ceilings.h"

#include <algorithm>
#include <bit>

#include "measure_server/runner/check_kernels.h"
#include "tests/bench/common/statistics.h"
#include "tests/bench/gpu/device_case.h"

namespace tuner {

Result<Contestant> copy_contestant(DeviceBench& bench, int64_t bytes, int sets) {
  const int64_t half = std::max<int64_t>(bytes / 2, 1);
  const int64_t stride = (half + 255) / 256 * 256;  // as operands are aligned
  const auto from = std::make_shared<cuda::DeviceMemory>(), to = std::make_shared<cuda::DeviceMemory>();
  for (const auto& memory : {from, to}) {
    RETURN_IF_ERROR(driver_status(cuda::DeviceMemory::allocate(stride * sets, *memory)));
    RETURN_IF_ERROR(
        driver_status(cuda::fill_bytes(memory->address(), 0x3F, memory->bytes(), bench.stream())));
  }
  return Contestant{
      .name = "copy", .call = [&bench, from, to, half, stride](int set) {
        return driver_status(cuda::copy_on_device(to->address() + set * stride,
                                                  from->address() + set * stride, half, bench.stream()));
      }};
}

Result<double> copy_rate(DeviceBench& bench, double fill_ns) {
  constexpr int64_t kMostBytes = int64_t{2} << 30;
  const int64_t bytes = std::min(kMostBytes, bench.device().memory_bytes / 16);
  ASSIGN_OR_RETURN(Contestant copy, copy_contestant(bench, bytes, 1));
  std::vector<Contestant> contestants;
  contestants.push_back(std::move(copy));
  std::vector<std::string> states;
  RETURN_IF_ERROR(interleave(bench, {.rounds = 9, .fill_ns = fill_ns}, contestants, states));
  return static_cast<double>(bytes) / median(contestants[0].ns);
}

namespace {

struct ProbeKernel {
  const char* name;
  int64_t operations;  // of a thread in a round
  uint32_t x, y;       // its arguments, as bits
};

ProbeKernel kernel_of(Probe probe) {
  constexpr int64_t kWarp = 32;
  switch (probe) {
    case Probe::kBrainTiles:  // 1 and more, of both signs
      return {kMmaBrainKernel, 2 * kMmaBrainProducts * kMmaPerRound / kWarp, 0x3F803F80, 0x807F807F};
    case Probe::kTf32Tiles:  // likewise
      return {kMmaTf32Kernel, 2 * kMmaTf32Products * kMmaPerRound / kWarp, 0x3F800000, 0x807FE000};
    case Probe::kByteTiles:
      return {kMmaByteKernel, 2 * kMmaByteProducts * kMmaPerRound / kWarp, 0, 0xFFFFFFFF};
    default:
      return {kFfmaKernel, 2 * kFfmaPerRound, std::bit_cast<uint32_t>(0.999F),
              std::bit_cast<uint32_t>(0.001F)};
  }
}

}  // namespace

Result<double> probe_rate(DeviceBench& bench, const PackFile& pack, Probe probe, double fill_ns) {
  const ProbeKernel kernel = kernel_of(probe);
  ASSIGN_OR_RETURN(const std::string cubin, pack.checker(0));
  if (cubin.empty()) return failed("the pack has no kernel for it; pack again");
  cuda::DeviceModule module;
  cuda::Function function = nullptr;
  RETURN_IF_ERROR(driver_status(cuda::DeviceModule::load(cubin, module)));
  const cuda::CallStatus found = module.function(kernel.name, 0, function);
  if (found.code() == cuda::kNotFound) return failed("the pack has no kernel for it; pack again");
  RETURN_IF_ERROR(driver_status(found));
  constexpr int64_t kBlocksPerMultiprocessor = 8, kRounds = 256;
  const int64_t blocks = kBlocksPerMultiprocessor * bench.device().multiprocessors;
  const LaunchInfo info{.kernel = kernel.name, .grid = {blocks, 1, 1}, .block = {kCheckThreads, 1, 1}};
  cuda::DeviceMemory out;
  RETURN_IF_ERROR(driver_status(cuda::DeviceMemory::allocate(sizeof(float), out)));
  cuda::DevicePtr address = out.address();
  uint32_t x = kernel.x, y = kernel.y;
  uint64_t rounds = kRounds;
  void* params[] = {&address, &x, &y, &rounds};
  std::vector<Contestant> contestants(1);
  contestants[0].name = kernel.name;
  contestants[0].call = [&](int) {
    return driver_status(cuda::launch(function, info, params, bench.stream()));
  };
  std::vector<std::string> states;
  RETURN_IF_ERROR(interleave(bench, {.rounds = 9, .fill_ns = fill_ns}, contestants, states));
  const int64_t operations = kernel.operations * kRounds * kCheckThreads * blocks;
  return static_cast<double>(operations) / median(contestants[0].ns);
}

}  // namespace tuner
