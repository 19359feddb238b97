// How fast the NPU's simulator is: multiply-adds of the array per second, on one core. Prints one line per
// case: what the simulated machine reached, and what simulating it cost (the best of five runs).
//
//   npu_speed
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/tokens.h"
#include "tests/compiler_core/npu_matmul.h"

namespace {

using namespace tuner::npu;
using tuner::npu::testing::MatmulCase;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool report(const MatmulCase& c) {
  const Machine machine;
  const std::vector<uint8_t> operands = tuner::npu::testing::matmul_dram(c);
  const Code straight = tuner::npu::testing::MatmulWriter(machine, c).code();
  Simulated result;
  double simulating = 1e9, placing = 1e9;
  for (int round = 0; round < 5; ++round) {
    std::vector<uint8_t> dram = operands;
    auto start = std::chrono::steady_clock::now();
    const tuner::Result<Code> code = place_tokens(machine, straight, dram.size());
    placing = std::min(placing, seconds_since(start));
    start = std::chrono::steady_clock::now();
    if (code.is_ok()) result = simulate(machine, *code, dram);
    simulating = std::min(simulating, seconds_since(start));
    if (!code.is_ok() || result.fault) {
      std::fprintf(stderr, "%s\n", code.is_ok() ? result.fault->message.c_str() : code.message().c_str());
      return false;
    }
  }
  std::printf(
      "%4lld x %lld x %lld  %8lld cycles  %.3f of peak   simulated at %.2f GMAC/s   tokens placed in %.1f "
      "ms\n",
      static_cast<long long>(c.m), static_cast<long long>(c.n), static_cast<long long>(c.k),
      static_cast<long long>(result.cycles), result.utilization(machine),
      static_cast<double>(result.macs) / simulating * 1e-9, placing * 1e3);
  return true;
}

}  // namespace

int main() {
  const bool small = report({});
  const bool wide = report({.m = 512, .n = 512, .k = 512, .tile_m = 128, .tile_n = 64, .tile_k = 128});
  const bool narrow = report({.m = 512, .n = 512, .k = 512, .tile_m = 16, .tile_n = 64, .tile_k = 128});
  return small && wide && narrow ? 0 : 1;
}
