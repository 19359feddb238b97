// How fast the NPU's simulator is: multiply-adds of the array per second, on one core. Prints one line per
// case: what the simulated machine reached, and what simulating it cost (the best of five runs).
//
//   npu_speed             matmuls
//   npu_speed resnet50    the convolutions of ResNet-50 by one straight program, and what bounds each
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/tokens.h"
#include "tests/compiler_core/npu_conv.h"
#include "tests/compiler_core/npu_matmul.h"

namespace {

using namespace tuner::npu;
using tuner::npu::testing::ConvCase;
using tuner::npu::testing::ConvWriter;
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

// The share of the cycles in which the array has rows, DRAM's bus has bursts, and the array waits for
// banks. The largest of the first two is what bounds the layer.
bool report(const ConvCase& c, int64_t real_channels, double& log_sum) {
  const Machine machine;
  ConvWriter writer(machine, c);
  const Code straight = writer.code();
  const tuner::Result<Allocation> placed = allocate_scratchpad(machine, straight, writer.buffers());
  if (!placed.is_ok()) return std::fprintf(stderr, "%s\n", placed.message().c_str()), false;
  std::vector<uint8_t> dram(c.dram_bytes());
  const tuner::Result<Code> code = place_tokens(machine, placed->code, dram.size());
  if (!code.is_ok()) return std::fprintf(stderr, "%s\n", code.message().c_str()), false;
  const Simulated s = simulate(machine, *code, dram);
  if (s.fault) return std::fprintf(stderr, "%s\n", s.fault->message.c_str()), false;
  const double cycles = static_cast<double>(s.cycles);
  const double useful =
      s.utilization(machine) * static_cast<double>(real_channels) / static_cast<double>(c.channels);
  const double bus = static_cast<double>(s.queues[0].steps + s.queues[2].steps) / cycles;
  const double stalls = static_cast<double>(s.queues[1].bank_stalls) / cycles;
  const char* bound = bus > s.utilization(machine) ? "DRAM"
                      : real_channels < c.channels ? "unused rows"
                                                   : "array";
  std::printf(
      "%3lld^2 x %4lld -> %4lld  %lldx%lld / %lld  %9lld cycles  %.3f of peak   rows %.2f  bus %.2f  stalls "
      "%.2f  %s\n",
      static_cast<long long>(c.side), static_cast<long long>(real_channels),
      static_cast<long long>(c.out_channels), static_cast<long long>(c.kernel),
      static_cast<long long>(c.kernel), static_cast<long long>(c.stride), static_cast<long long>(s.cycles),
      useful, s.utilization(machine), bus, stalls, bound);
  log_sum += std::log(useful);
  return true;
}

// side, channels, out_channels, kernel, stride; each distinct convolution once (stride in the 3 x 3).
constexpr int kResnet50[][5] = {
    {224, 3, 64, 7, 2},     {56, 64, 64, 1, 1},    {56, 64, 64, 3, 1},    {56, 64, 256, 1, 1},
    {56, 256, 64, 1, 1},    {56, 256, 128, 1, 1},  {56, 128, 128, 3, 2},  {28, 128, 512, 1, 1},
    {56, 256, 512, 1, 2},   {28, 512, 128, 1, 1},  {28, 128, 128, 3, 1},  {28, 512, 256, 1, 1},
    {28, 256, 256, 3, 2},   {14, 256, 1024, 1, 1}, {28, 512, 1024, 1, 2}, {14, 1024, 256, 1, 1},
    {14, 256, 256, 3, 1},   {14, 1024, 512, 1, 1}, {14, 512, 512, 3, 2},  {7, 512, 2048, 1, 1},
    {14, 1024, 2048, 1, 2}, {7, 2048, 512, 1, 1},  {7, 512, 512, 3, 1}};

bool report_resnet50() {
  double log_sum = 0;
  for (const auto& row : kResnet50) {
    const int padded = (row[1] + 15) / 16 * 16;
    const ConvCase c{
        .side = row[0], .channels = padded, .out_channels = row[2], .kernel = row[3], .stride = row[4]};
    if (!report(c, row[1], log_sum)) return false;
  }
  std::printf("geometric mean %.3f of peak\n", std::exp(log_sum / static_cast<double>(std::size(kResnet50))));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "resnet50") return report_resnet50() ? 0 : 1;
  const bool small = report({});
  const bool wide = report({.m = 512, .n = 512, .k = 512, .tile_m = 128, .tile_n = 64, .tile_k = 128});
  const bool narrow = report({.m = 512, .n = 512, .k = 512, .tile_m = 16, .tile_n = 64, .tile_k = 128});
  return small && wide && narrow ? 0 : 1;
}
