#include "measure_server/runner/sentinel.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/status.h"
#include "compiler_core/runtime/bandwidth.h"
#include "compiler_core/runtime/flush.h"
#include "measure_server/runner/calm_gate.h"
#include "measure_server/runner/hardware.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/runner/sampling.h"

namespace tuner {

namespace {

using Vector = float __attribute__((vector_size(16)));  // what every CPU of the architecture has

constexpr int kSmall = 4096 / sizeof(Vector);       // stays in the first cache
constexpr int kLarge = (1 << 20) / sizeof(Vector);  // does not
std::array<Vector, kSmall> small_data;
alignas(4096) std::array<Vector, kLarge> large_data;

// Of memory that only this process needs: a fork does not copy its page table. Without effect where pages are
// larger than that.
void keep_from_children(void* data, size_t bytes) { madvise(data, bytes, MADV_DONTFORK); }

void pass() {
  const Vector scale = {0.999f, 0.998f, 0.997f, 0.996f}, shift = {0.1f, 0.2f, 0.3f, 0.4f};
  for (int round = 0; round < 1000; ++round)
    for (Vector& x : small_data) x = x * scale + shift;
  Vector sum = {};
  for (int i = 0; i < kLarge; i += 4) sum += large_data[i];  // one of each cache line
  large_data[0] = sum * scale;
  asm volatile("" : : "r"(small_data.data()), "r"(large_data.data()) : "memory");
}

}  // namespace

double sentinel_ns() {
  static const bool kept = [] {
    keep_from_children(large_data.data(), sizeof large_data);
    return true;
  }();
  (void)kept;
  double best = 1e18;
  for (int i = 0; i < 3; ++i) {
    const double begin = monotonic_ns();
    pass();
    best = std::min(best, monotonic_ns() - begin);
  }
  return best;
}

int64_t own_cache_bytes() {
  static const int64_t bytes = cpu_caches().l2_bytes > 0 ? cpu_caches().l2_bytes : int64_t{1} << 20;
  return bytes;
}

double memory_sentinel_ns() {
  constexpr double kPatienceNs = 10e6;
  constexpr int64_t kMemory = int64_t{1} << 20, kMostShared = int64_t{16} << 20;
  static const int64_t shared =
      std::min(std::max(own_cache_bytes() * 3 / 2, cpu_caches().l3_bytes / 8), kMostShared) / 512 * 512;
  // Made once, at the first use, and never given back.
  static char* const data = [] {
    const auto bytes = static_cast<size_t>(shared + kMemory);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED) << "no memory for the sentinel";
    std::memset(memory, 1, bytes);
    keep_from_children(memory, bytes);
    return static_cast<char*>(memory);
  }();
  const auto read = [](int64_t offset, int64_t bytes, Sample& s) {
    const double begin = monotonic_ns();
    read_bytes(data + offset, bytes);
    s.run_ns = monotonic_ns() - begin;
    return true;
  };
  for (int i = 0; i < 2; ++i) read_bytes(data, shared);  // brings it back into the shared cache
  const auto read_shared = [&](int64_t, Sample& s) { return read(0, shared, s); };
  const auto read_memory = [&](int64_t, Sample& s) {
    flush_lines(data + shared, kMemory);
    return read(shared, kMemory, s);
  };
  // Somebody on the core's other hardware thread is not what this is to feel.
  static CalmGate gate(/*calm_ns=*/0, take_pulse);
  gate.be_patient(kPatienceNs);
  double best_shared = 1e18, best_memory = 1e18;
  for (int i = 0; i < 2; ++i) {
    Sample s;
    gate.take(1, read_shared, s);
    best_shared = std::min(best_shared, s.run_ns);
    gate.take(1, read_memory, s);
    best_memory = std::min(best_memory, s.run_ns);
  }
  return best_shared + best_memory;
}

namespace {

double on_first_cpu(const std::vector<int>& cpus, double (*time)()) {
  const OnCpus there(cpus.empty() ? cpus : std::vector{cpus[0]});
  return time();
}

// The latest of a sentinel. Candidates follow each other: what came after one came before the next.
class Latest {
 public:
  double take(const std::vector<int>& cpus, double (*time)()) {
    ns_ = on_first_cpu(cpus, time);
    at_ = std::chrono::steady_clock::now();
    cpus_ = cpus;
    return ns_;
  }
  double recent(const std::vector<int>& cpus, double (*time)()) {
    constexpr std::chrono::milliseconds kRecent{20};
    const bool is_recent = ns_ > 0 && cpus_ == cpus && std::chrono::steady_clock::now() - at_ < kRecent;
    return is_recent ? ns_ : take(cpus, time);
  }

 private:
  double ns_ = 0;
  std::chrono::steady_clock::time_point at_;
  std::vector<int> cpus_;
};
Latest latest, latest_memory;

}  // namespace

double sentinel_on(const std::vector<int>& cpus) { return latest.take(cpus, sentinel_ns); }
double memory_sentinel_on(const std::vector<int>& cpus) {
  return latest_memory.take(cpus, memory_sentinel_ns);
}
double recent_sentinel_on(const std::vector<int>& cpus) { return latest.recent(cpus, sentinel_ns); }
double recent_memory_sentinel_on(const std::vector<int>& cpus) {
  return latest_memory.recent(cpus, memory_sentinel_ns);
}

}  // namespace tuner
