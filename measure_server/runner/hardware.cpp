#include "measure_server/runner/hardware.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/status.h"
#include "compiler_core/runtime/bandwidth.h"
#include "compiler_core/runtime/dot_peak.h"
#include "compiler_core/runtime/flush.h"

namespace tuner {

namespace {

// What `rate` finds, with `threads` threads at the same time, each on a CPU of its own: the sum.
template <class Rate>
double on_each_cpu(const std::vector<int>& cpus, int threads, const Rate& rate) {
  std::vector<double> each(static_cast<size_t>(threads), 0);
  std::atomic<int> waiting{threads};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      use_cpus({cpus[static_cast<size_t>(t) % cpus.size()]});
      for (--waiting; waiting > 0;) std::this_thread::yield();
      each[static_cast<size_t>(t)] = rate();
    });
  }
  for (std::thread& t : running) t.join();
  return std::accumulate(each.begin(), each.end(), 0.0);
}

// G operations a second.
double measure_peak(const std::vector<int>& cpus, int threads, DType dtype, double milliseconds) {
  return on_each_cpu(cpus, threads, [&] { return measure_peak_gops(dtype, milliseconds); });
}

// Gigabytes a second of reading `bytes` again and again, or, when they are flushed before, from memory; the
// best of some passes.
double read_rate(int64_t bytes, bool flushed) {
  constexpr int kPasses = 6;
  const auto now_ns = [] {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  const int64_t size = std::max<int64_t>(bytes / 512, 1) * 512;
  std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(512, static_cast<size_t>(size)),
                                                     std::free);
  std::memset(memory.get(), 1, static_cast<size_t>(size));
  // A timed window is long against the clock's own 30 ns.
  const int64_t times = flushed ? 1 : std::max<int64_t>(1, (int64_t{2} << 20) / size);
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    if (flushed) flush_lines(memory.get(), size);
    const double begin = now_ns();
    for (int64_t i = 0; i < times; ++i) read_bytes(memory.get(), size);
    best = std::max(best, static_cast<double>(times * size) / (now_ns() - begin));
  }
  return best;
}

}  // namespace

CpuBandwidths measure_bandwidths(int max_threads) {
  constexpr int64_t kLargeProbe = int64_t{16} << 20;
  const std::vector<int> cpus = usable_cpus();
  const int most = max_threads == 0 ? static_cast<int>(cpus.size()) : max_threads;
  const CpuCaches c = cpu_caches();
  CpuBandwidths out;
  for (const int64_t bytes : {c.l1d_bytes, c.l2_bytes, c.l3_bytes})
    if (bytes > 0 && (out.levels.empty() || bytes > out.levels.back().capacity_bytes))
      out.levels.push_back({bytes, {}});
  out.levels.push_back({INT64_MAX, {}});  // memory
  for (size_t l = 0; l < out.levels.size(); ++l) {
    const bool memory = l + 1 == out.levels.size();
    // Well inside the level, and well beyond the one before it.
    const int64_t below = l == 0 ? 0 : out.levels[l - 1].capacity_bytes;
    const int64_t probe =
        memory ? kLargeProbe
               : std::min(out.levels[l].capacity_bytes * 2 / 3, std::max(3 * below, int64_t{32} << 10));
    for (int threads = 1; threads <= most; ++threads)
      out.levels[l].gbps.push_back(on_each_cpu(cpus, threads, [&] { return read_rate(probe, memory); }));
  }
  return out;
}

CpuPeaks measure_peaks(int max_threads) {
  const std::vector<int> cpus = usable_cpus();
  const int most = max_threads == 0 ? static_cast<int>(cpus.size()) : max_threads;
  CpuPeaks peaks;
  for (int threads = 1; threads <= most; ++threads) {
    peaks.float32.push_back(measure_peak(cpus, threads, DType::kFloat32, 50));
    peaks.bfloat16.push_back(measure_peak(cpus, threads, DType::kBFloat16, 25));
    peaks.int8.push_back(measure_peak(cpus, threads, DType::kInt8, 25));
  }
  return peaks;
}

}  // namespace tuner
