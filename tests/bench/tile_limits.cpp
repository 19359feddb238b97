// tile_limits: what share of their peak the tiles of this CPU (AMX, bfloat16) can reach in a product, whoever
// writes it: by how many terms are summed before sums leave the registers, and where operands lie. No code of
// ours is timed.
//
//   tile_limits          a table; a CPU without tiles: one line, exit status 1
//
// A block is 32 x 32 sums, four tiles. A step loads two tiles of a and two of b and makes four products.
// `terms` are those of one visit; b's panel of them is used again by each block of rows; rows of a are in L1
// (one block of rows) or in L2 (more than fit L1). "plain": sums begin with zero and are stored side by side;
// "carried": they are loaded first; "strided": they are stored in rows of 4 KB.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compiler_core/runtime/dot_peak.h"
#include "compiler_core/runtime/tuner_runtime.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace {

constexpr int64_t kRowBytes = 64, kTileBytes = 16 * kRowBytes, kStepTerms = 32, kBlock = 32, kOperations = 2;

struct TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// a: two tiles a step; b: a tile a step in each of two panels; c: rows of `stride` bytes.
__attribute__((target("amx-tile,amx-bf16"))) void block_of_tiles(const char* a, const char* b, int64_t steps,
                                                                 char* c, int64_t stride, bool carried) {
  const char* const next_panel = b + steps * kTileBytes;
  char* const below = c + 16 * stride;
  if (carried) {
    _tile_loadd(0, c, stride);
    _tile_loadd(1, c + kRowBytes, stride);
    _tile_loadd(2, below, stride);
    _tile_loadd(3, below + kRowBytes, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t s = 0; s < steps; ++s) {
    _tile_loadd(4, a + s * 2 * kTileBytes, kRowBytes);
    _tile_loadd(5, a + (s * 2 + 1) * kTileBytes, kRowBytes);
    _tile_loadd(6, b + s * kTileBytes, kRowBytes);
    _tile_loadd(7, next_panel + s * kTileBytes, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, stride);
  _tile_stored(1, c + kRowBytes, stride);
  _tile_stored(2, below, stride);
  _tile_stored(3, below + kRowBytes, stride);
}

__attribute__((target("amx-tile"))) void configure() {
  static constexpr TileConfig config;
  _tile_loadconfig(&config);
}

char* zeros(int64_t bytes) {
  constexpr int64_t kHugePage = 2 << 20;
  const int64_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  char* memory = static_cast<char*>(std::aligned_alloc(kHugePage, static_cast<size_t>(whole)));
  if (memory == nullptr) std::abort();
  madvise(memory, static_cast<size_t>(whole), MADV_HUGEPAGE);
  return static_cast<char*>(std::memset(memory, 0, static_cast<size_t>(whole)));
}

// G operations a second: the fastest of many passes over `rows` blocks of rows.
double gops(int64_t rows, int64_t terms, int64_t stride, bool carried) {
  static char *const a = zeros(8 << 20), *const b = zeros(1 << 20), *const c = zeros(8 << 20);
  const int64_t steps = terms / kStepTerms;
  const double operations = static_cast<double>(kOperations * rows * kBlock * kBlock * terms);
  const int64_t repeats = 1 + static_cast<int64_t>(4e7 / operations);
  double best = 1e300;
  for (int pass = 0; pass < 40; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t r = 0; r < repeats; ++r)
      for (int64_t m = 0; m < rows; ++m)
        block_of_tiles(a + m * steps * 2 * kTileBytes, b, steps, c + m * kBlock * stride, stride, carried);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / static_cast<double>(repeats));
  }
  return operations / best;
}

}  // namespace

int main() {
  if ((tuner_tiles() & TUNER_TILES_BFLOAT16) == 0) {
    std::fprintf(stderr, "tile_limits: this CPU, or Linux on it, has no tiles of bfloat16\n");
    return 1;
  }
  configure();
  constexpr int64_t kSideBySide = 128, kApart = 4096;
  std::printf("%% of the peak (%.0f GFLOP/s)\n%5s %12s %12s %12s %12s\n",
              tuner::measure_peak_gops(tuner::DType::kBFloat16), "terms", "L1, plain", "L2, plain",
              "L2, carried", "L2, strided");
  configure();
  for (const int64_t terms : {64, 128, 256, 384, 512, 768, 1024}) {
    constexpr int64_t kRows = 16;
    const double peak = tuner::measure_peak_gops(tuner::DType::kBFloat16, 5);
    configure();
    std::printf(
        "%5lld %12.0f %12.0f %12.0f %12.0f\n", static_cast<long long>(terms),
        100 * gops(1, terms, kSideBySide, false) / peak, 100 * gops(kRows, terms, kSideBySide, false) / peak,
        100 * gops(kRows, terms, kSideBySide, true) / peak, 100 * gops(kRows, terms, kApart, false) / peak);
  }
  return 0;
}
#else
int main() {
  std::fprintf(stderr, "tile_limits: tiles (AMX) are of x86 CPUs\n");
  return 1;
}
#endif
