// config_space_bench: what a config space costs: CPU time to seal it, to draw a first batch, and peak memory,
// on spaces whose products are 1e12 and more, tied by the constraints that templates write.
//
//   config_space_bench [NAME...]        all of them, or those named
//
// Each space runs in a process of its own, so that its peak memory is its own.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "tests/templates/large_spaces.h"

namespace tuner::testing {
namespace {

// CPU time, so that a busy machine does not show.
double cpu_ms() { return 1000 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
double ms_since(double begin) { return cpu_ms() - begin; }

// Of this process, MiB.
double peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int play(const LargeSpace& large) {
  const double before = peak_memory();
  const double begin = cpu_ms();
  Declared declared;
  large.declare(declared);
  ConfigSpace& space = declared.space;
  if (const Status sealed = space.seal(); !sealed) {
    std::printf("%-18s %s (%.0f ms)\n", large.name, sealed.message().c_str(), ms_since(begin));
    return 1;
  }
  const double seal_ms = ms_since(begin);
  std::mt19937_64 rng(1);
  std::vector<ConfigIndex> batch;
  for (int i = 0; i < 16; ++i) batch.push_back(space.sample(rng));
  for (ConfigIndex& index : batch) CHECK(*space.index_of(space.at(index)) == index);
  const double first_ms = ms_since(begin);
  const double moving = cpu_ms();
  constexpr int kMoves = 2000;
  for (int i = 0; i < kMoves; ++i) batch[i % 16] = space.mutate(batch[i % 16], rng);
  const double move_us = 1000 * ms_since(moving) / kMoves;
  const double near = cpu_ms();
  size_t neighbours = 0;
  for (const ConfigIndex index : batch) neighbours += space.neighbours(index).size();
  const double near_us = 1000 * ms_since(near) / static_cast<double>(batch.size());
  double product = 1;
  for (const KnobInfo& knob : space.knobs()) product *= static_cast<double>(knob.candidates.size());
  std::printf("%-18s %9.2g %9.3g %9.1f %9.1f %9.1f %9.2f %9.1f\n", large.name, product,
              static_cast<double>(space.size()), seal_ms, first_ms, peak_memory() - before, move_us, near_us);
  return 0;
}

int run(int argc, char** argv) {
  std::printf("%-18s %9s %9s %9s %9s %9s %9s %9s\n", "space", "product", "valid", "seal ms", "batch ms",
              "MiB", "mutate us", "near us");
  std::fflush(stdout);
  int failures = 0;
  for (const LargeSpace& large : large_spaces()) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], large.name) == 0;
    if (!wanted) continue;
    const pid_t child = fork();
    if (child == 0) {
      const int code = play(large);
      std::fflush(stdout);
      _exit(code);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failures += status != 0 ? 1 : 0;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tuner::testing

int main(int argc, char** argv) { return tuner::testing::run(argc, argv); }
