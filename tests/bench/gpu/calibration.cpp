#include "tests/bench/gpu/calibration.h"

#include <array>
#include <bit>

#include "measure_server/runner/check_kernels.h"
#include "tests/bench/common/statistics.h"
#include "tests/bench/gpu/device_case.h"
#include "tests/bench/gpu/lane_patterns.h"

namespace tuner {
namespace {

constexpr int kRuns = 5;  // of each probe, after one that is not counted; the median counts
constexpr int64_t kWarps = kCheckThreads / 32;
// Far more than the caches hold, and lines far apart: the next one is on another page of memory.
constexpr int64_t kL1Ring = int64_t{16} << 10, kL2Ring = int64_t{2} << 20, kMostRing = int64_t{1} << 30;
constexpr int64_t kStride = 12'289 * kLineBytes;  // an odd number of lines

class Probes {
 public:
  explicit Probes(DeviceBench& bench) : bench_(bench) {}

  Status load(const PackFile& pack) {
    ASSIGN_OR_RETURN(const std::string cubin, pack.checker(0));
    if (cubin.empty()) return failed("the pack has no kernels to calibrate with; pack again");
    RETURN_IF_ERROR(driver_status(cuda::DeviceModule::load(cubin, module_)));
    return driver_status(cuda::DeviceMemory::allocate(2 * sizeof(uint64_t), clocks_));
  }

  // Clocks that the rounds took, and nanoseconds of the launch.
  struct Taken {
    double clocks = 0, ns = 0;
  };
  Result<Taken> run_once(const char* kernel, int64_t threads, const void* argument, uint64_t rounds) {
    cuda::Function function = nullptr;
    RETURN_IF_ERROR(find(kernel, function));
    cuda::DevicePtr out = clocks_.address();
    std::array<uint64_t, 2> found{};
    RETURN_IF_ERROR(driver_status(cuda::copy_to_device(out, found.data(), sizeof found)));
    void* params[] = {&out, const_cast<void*>(argument), &rounds};
    const LaunchInfo info{.kernel = kernel, .grid = {1, 1, 1}, .block = {threads, 1, 1}};
    RETURN_IF_ERROR(driver_status(bench_.begin()));
    RETURN_IF_ERROR(driver_status(cuda::launch(function, info, params, bench_.stream())));
    RETURN_IF_ERROR(driver_status(bench_.end()));
    Taken taken;
    RETURN_IF_ERROR(driver_status(bench_.elapsed_ns(taken.ns)));
    RETURN_IF_ERROR(driver_status(cuda::copy_to_host(found.data(), out, sizeof found)));
    if (found[0] == 0) return unavailable(kernel, ": the clock of the multiprocessor stands still");
    taken.clocks = static_cast<double>(found[0]);
    return taken;
  }
  // Medians of the runs after the first.
  Result<Taken> run(const char* kernel, int64_t threads, const void* argument, uint64_t rounds) {
    std::vector<double> clocks, ns;
    for (int i = 0; i <= kRuns; ++i) {
      ASSIGN_OR_RETURN(const Taken taken, run_once(kernel, threads, argument, rounds));
      if (i == 0) continue;
      clocks.push_back(taken.clocks);
      ns.push_back(taken.ns);
    }
    return Taken{median(clocks), median(ns)};
  }

  Status link(const cuda::DeviceMemory& memory) {
    cuda::Function function = nullptr;
    RETURN_IF_ERROR(find(kLinksKernel, function));
    cuda::DevicePtr address = memory.address();
    auto bytes = static_cast<uint64_t>(memory.bytes());
    auto stride = static_cast<uint64_t>(kStride);
    void* params[] = {&address, &bytes, &stride};
    const LaunchInfo info{.kernel = kLinksKernel,
                          .grid = {8 * bench_.device().multiprocessors, 1, 1},
                          .block = {kCheckThreads, 1, 1}};
    RETURN_IF_ERROR(driver_status(cuda::launch(function, info, params, bench_.stream())));
    return driver_status(bench_.stream().synchronize());
  }

 private:
  Status find(const char* kernel, cuda::Function& function) const {
    const cuda::CallStatus found = module_.function(kernel, 0, function);
    if (found.code() == cuda::kNotFound)
      return failed("the pack has no kernels to calibrate with; pack again");
    return driver_status(found);
  }
  DeviceBench& bench_;
  cuda::DeviceModule module_;
  cuda::DeviceMemory clocks_;
};

// Loads of one thread, each at the address that the one before it found.
Result<double> latency(Probes& probes, const char* kernel, int64_t ring, bool is_warm) {
  constexpr uint64_t kRounds = 2048;
  cuda::DeviceMemory memory;
  RETURN_IF_ERROR(driver_status(cuda::DeviceMemory::allocate(ring, memory)));
  RETURN_IF_ERROR(probes.link(memory));
  cuda::DevicePtr first = memory.address();
  // Cold: lines that were written first have left L2 since, and a second run would find what the first one
  // read.
  ASSIGN_OR_RETURN(const Probes::Taken taken, is_warm ? probes.run(kernel, 1, &first, kRounds)
                                                      : probes.run_once(kernel, 1, &first, kRounds));
  return taken.clocks / static_cast<double>(kRounds * kClockedLoads);
}

// A power of two, four times L2 and more.
Result<int64_t> dram_ring(const CudaDevice& device) {
  const auto wanted = static_cast<int64_t>(std::bit_ceil(4 * static_cast<uint64_t>(device.l2_bytes)));
  if (wanted > kMostRing || wanted > device.memory_bytes / 2)
    return failed("its L2 of ", device.l2_bytes, " bytes is too large for a ring that leaves it");
  return wanted;
}

}  // namespace

Result<Calibration> calibrate(DeviceBench& bench, const PackFile& pack) {
  Probes probes(bench);
  RETURN_IF_ERROR(probes.load(pack));
  Calibration found;

  constexpr uint64_t kFfmaRounds = 4096, kLoadRounds = 4096;
  constexpr int64_t kFullBlock = 1024;
  const float factor = 0.999F;
  ASSIGN_OR_RETURN(const Probes::Taken ffma, probes.run(kClocksFfma, kFullBlock, &factor, kFfmaRounds));
  found.ffma_a_clock = static_cast<double>(kFfmaPerRound * kFfmaRounds * kFullBlock) / ffma.clocks;
  found.clock_mhz = ffma.clocks / ffma.ns * 1000;

  for (const LanePattern& lanes : lane_patterns()) {
    cuda::DeviceMemory places;
    constexpr auto kBytes = static_cast<int64_t>(sizeof lanes.bytes);
    RETURN_IF_ERROR(driver_status(cuda::DeviceMemory::allocate(kBytes, places)));
    RETURN_IF_ERROR(driver_status(cuda::copy_to_device(places.address(), lanes.bytes.data(), kBytes)));
    const cuda::DevicePtr address = places.address();
    ASSIGN_OR_RETURN(const Probes::Taken taken,
                     probes.run(kClocksLds128, kCheckThreads, &address, kLoadRounds));
    found.shared_loads.push_back(
        {lanes.name, lanes.passes, taken.clocks / static_cast<double>(kWarps * kClockedLoads * kLoadRounds)});
  }
  ASSIGN_OR_RETURN(found.shared_clocks, latency(probes, kClocksShared, kL1Ring, /*is_warm=*/true));
  ASSIGN_OR_RETURN(found.l1_clocks, latency(probes, kClocksL1, kL1Ring, /*is_warm=*/true));
  ASSIGN_OR_RETURN(found.l2_clocks, latency(probes, kClocksL2, kL2Ring, /*is_warm=*/true));
  ASSIGN_OR_RETURN(const int64_t ring, dram_ring(bench.device()));
  ASSIGN_OR_RETURN(found.dram_clocks, latency(probes, kClocksL2, ring, /*is_warm=*/false));
  return found;
}

}  // namespace tuner
