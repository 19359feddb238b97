#include "tests/bench/cpu/probes.h"

#include <cstring>
#include <memory>

#include "compiler_core/runtime/dot_peak.h"
#include "compiler_core/runtime/peak.h"

namespace tuner {
namespace {

struct PerThread {
  std::function<void(int thread)> body;
};

void run_share(void* closure, int32_t begin, int32_t end, int32_t) {
  for (int32_t i = begin; i < end; ++i) static_cast<PerThread*>(closure)->body(i);
}

// `body` once on each thread.
void on_all(ThreadPool& pool, const std::function<void(int)>& body) {
  PerThread work{body};
  pool.parallel_for(pool.threads(), run_share, &work);
}

}  // namespace

Contestant fma_probe(ThreadPool& pool) {
  return {.name = pool.threads() == 1 ? "FMA peak of one core" : "FMA peak of all cores",
          .kind = ContestantKind::kProbe,
          .call = [&pool](int) { on_all(pool, [](int) { fma_peak_burst(); }); },
          .work = fma_peak_burst() * pool.threads()};
}

Contestant dot_probe(DType dtype, ThreadPool& pool) {
  return {.name = str(dtype, pool.threads() == 1 ? " peak of one core" : " peak of all cores"),
          .kind = ContestantKind::kProbe,
          .call = [dtype, &pool](int) { on_all(pool, [dtype](int) { peak_burst(dtype); }); },
          .work = peak_burst(dtype) * pool.threads()};
}

Contestant read_probe(const MemoryLevel& level, ThreadPool& pool) {
  const auto memory = std::make_shared<std::vector<AlignedBuffer>>();
  // Memory of a level below DRAM is read several times a call: a call should take some microseconds at least.
  const int64_t times = std::max<int64_t>(1, (int64_t{1} << 20) / level.probe_bytes);
  for (int t = 0; t < pool.threads(); ++t) {
    memory->emplace_back(level.probe_bytes / (level.name == "L3" ? pool.threads() : 1) / 512 * 512);
    std::memset(memory->back().data(), 1, static_cast<size_t>(memory->back().bytes()));
  }
  return {.name = str("read ", level.name),
          .kind = ContestantKind::kProbe,
          .call =
              [&pool, memory, times](int) {
                on_all(pool, [&](int thread) {
                  for (int64_t i = 0; i < times; ++i)
                    read_bytes((*memory)[thread].data(), (*memory)[thread].bytes());
                });
              },
          .work = static_cast<double>(times * memory->front().bytes() * pool.threads())};
}

}  // namespace tuner
