// A matmul for the NPU, written by hand: out = int8((a * b) * scale), a [m, k], b [k, n], out [m, n], all
// int8 and row-major in DRAM. It has no tokens: place_tokens() gives it some.
//
//   for mt, nt                     tiles of tile_m x tile_n sums, two sets of accumulators in turn
//     for kt                       two buffers of a and of b in turn, each in a bank of its own
//       load b, load a             ahead of the products by as much as the buffers allow
//       for kb, nb                 weights of 16 x 16; the next ones are filled beside the rows of these
//         matmul tile_m rows
//     store_sums                   by rows of tile_n bytes
//
// With `own_buffers` each tile has words of its own, as before allocate_scratchpad(), which then finds the
// two.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/npu/allocate.h"
#include "compiler_core/npu/instruction.h"
#include "compiler_core/npu/machine.h"

namespace tuner::npu::testing {

struct MatmulCase {
  int64_t m = 64, n = 64, k = 64;  // multiples of their tiles
  int64_t tile_m = 32, tile_n = 64, tile_k = 64;
  float scale = 0x1p-9f;

  // Places in DRAM.
  uint64_t a() const { return 0; }
  uint64_t b() const { return static_cast<uint64_t>(m * k); }
  uint64_t out() const { return b() + static_cast<uint64_t>(k * n); }
  uint64_t tables() const { return out() + static_cast<uint64_t>(m * n); }  // bias 0 and the scale, one tile
  uint64_t dram_bytes() const { return tables() + static_cast<uint64_t>(8 * tile_n); }
  int64_t macs() const { return m * n * k; }
};

class MatmulWriter {
 public:
  MatmulWriter(const Machine& machine, const MatmulCase& c, bool own_buffers = false)
      : m_(machine), c_(c), own_buffers_(own_buffers) {
    CHECK(m_.array_rows == m_.bank_bytes && m_.array_columns == m_.bank_bytes && m_.banks == 4)
        << "written for an array whose rows fill a word, and four banks";
    CHECK(c_.tile_m * c_.tile_k <= m_.scratchpad_bytes / 4 && 2 * accumulator_rows() <= m_.accumulator_rows())
        << "a tile does not fit";
  }

  // What allocate_scratchpad() places: the tables, then a and b of each tile.
  std::vector<ScratchpadBuffer> buffers() const {
    std::vector<ScratchpadBuffer> found = {{tables_at(), words(8 * c_.tile_n)}};
    for (int64_t t = 0; t < tiles(); ++t) {
      found.push_back({a_at(t), words(c_.tile_m * c_.tile_k)});
      found.push_back({b_at(t), words(c_.tile_k * c_.tile_n)});
    }
    return found;
  }

  Code code() {
    uint32_t sums = 0;
    begin();
    const int64_t k_tiles = c_.k / c_.tile_k;
    load_tile(0);
    fill_first();
    for (int64_t t = 0; t < tiles(); ++t) {
      if (t + 1 < tiles()) load_tile(t + 1);
      products(t, sums, t + 1 < tiles());
      if ((t + 1) % k_tiles != 0) continue;
      store(t / k_tiles, sums);
      sums ^= 1;
    }
    return code_;
  }

 private:
  uint32_t bank(int64_t b) const { return static_cast<uint32_t>(b * m_.words_per_bank()); }
  int64_t accumulator_rows() const { return c_.tile_m * c_.tile_n / m_.array_columns; }
  uint32_t words(int64_t bytes) const { return static_cast<uint32_t>(bytes / m_.bank_bytes); }
  int64_t tiles() const { return c_.m / c_.tile_m * (c_.n / c_.tile_n) * (c_.k / c_.tile_k); }
  uint32_t own_words() const { return words((c_.tile_m + c_.tile_n) * c_.tile_k); }
  uint32_t a_at(int64_t t) const {
    return own_buffers_ ? bank(4) + static_cast<uint32_t>(t) * own_words() : bank(t % 2);
  }
  uint32_t b_at(int64_t t) const {
    return own_buffers_ ? a_at(t) + words(c_.tile_m * c_.tile_k) : bank(2 + t % 2);
  }
  // The scales stand at the end of the last bank.
  uint32_t tables_at() const { return bank(4) - words(8 * c_.tile_n); }

  void begin() {
    code_.push_back({.op = Op::kLoad,
                     .dram = static_cast<uint32_t>(c_.tables()),
                     .target = tables_at(),
                     .rows = 1,
                     .bytes = static_cast<uint32_t>(8 * c_.tile_n)});
    code_.push_back({.op = Op::kSetStore, .dram_stride = static_cast<uint32_t>(c_.n)});
    code_.push_back({.op = Op::kStoreScales,
                     .source = tables_at(),
                     .blocks = static_cast<uint32_t>(c_.tile_n / m_.array_columns),
                     .low = -128,
                     .high = 127});
  }

  void load_tile(int64_t t) {
    const int64_t k_tiles = c_.k / c_.tile_k, n_tiles = c_.n / c_.tile_n;
    const int64_t kt = t % k_tiles, nt = t / k_tiles % n_tiles, mt = t / k_tiles / n_tiles;
    code_.push_back(
        {.op = Op::kSetLoad, .dram_stride = static_cast<uint32_t>(c_.n), .stride = words(c_.tile_n)});
    code_.push_back({.op = Op::kLoad,
                     .dram = static_cast<uint32_t>(c_.b() + kt * c_.tile_k * c_.n + nt * c_.tile_n),
                     .target = b_at(t),
                     .rows = static_cast<uint32_t>(c_.tile_k),
                     .bytes = static_cast<uint32_t>(c_.tile_n)});
    code_.push_back(
        {.op = Op::kSetLoad, .dram_stride = static_cast<uint32_t>(c_.k), .stride = words(c_.tile_k)});
    code_.push_back({.op = Op::kLoad,
                     .dram = static_cast<uint32_t>(c_.a() + mt * c_.tile_m * c_.k + kt * c_.tile_k),
                     .target = a_at(t),
                     .rows = static_cast<uint32_t>(c_.tile_m),
                     .bytes = static_cast<uint32_t>(c_.tile_k)});
  }

  uint32_t weights(int64_t t, int64_t kb, int64_t nb) const {
    return b_at(t) + static_cast<uint32_t>(kb * m_.array_rows * words(c_.tile_n) + nb);
  }
  void fill_first() {
    code_.push_back(
        {.op = Op::kMatmul, .fill = true, .source2 = weights(0, 0, 0), .stride2 = words(c_.tile_n)});
  }

  // All products of one tile of a and b; the last of them fills the first weights of the next tile.
  void products(int64_t t, uint32_t sums, bool more) {
    const int64_t k_blocks = c_.tile_k / m_.array_rows, n_blocks = c_.tile_n / m_.array_columns;
    const int64_t blocks = k_blocks * n_blocks;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t kb = block / n_blocks, nb = block % n_blocks;
      Instruction i{.op = Op::kMatmul,
                    .accumulate = kb > 0 || t % (c_.k / c_.tile_k) > 0,
                    .swap = true,
                    .source = a_at(t) + static_cast<uint32_t>(kb),
                    .sums = static_cast<uint32_t>(sums * accumulator_rows() + nb * c_.tile_m),
                    .rows = static_cast<uint32_t>(c_.tile_m),
                    .outer = 1,
                    .stride = words(c_.tile_k)};
      const bool here = block + 1 < blocks;
      if (here || more) {
        i.fill = true;
        i.source2 = here ? weights(t, (block + 1) / n_blocks, (block + 1) % n_blocks) : weights(t + 1, 0, 0);
        i.stride2 = words(c_.tile_n);
      }
      code_.push_back(i);
    }
  }

  void store(int64_t tile, uint32_t sums) {
    const int64_t n_tiles = c_.n / c_.tile_n, nt = tile % n_tiles, mt = tile / n_tiles;
    code_.push_back({.op = Op::kStoreSums,
                     .dram = static_cast<uint32_t>(c_.out() + mt * c_.tile_m * c_.n + nt * c_.tile_n),
                     .sums = static_cast<uint32_t>(sums * accumulator_rows()),
                     .rows = static_cast<uint32_t>(c_.tile_m),
                     .bytes = static_cast<uint32_t>(c_.tile_n),
                     .outer_stride = static_cast<uint32_t>(c_.tile_m)});
  }

  const Machine m_;
  const MatmulCase c_;
  const bool own_buffers_;
  Code code_;
};

// DRAM with these operands, drawn from a simple sequence, the tables, and an output of zeros.
inline std::vector<uint8_t> matmul_dram(const MatmulCase& c) {
  std::vector<uint8_t> dram(c.dram_bytes());
  uint32_t x = 12345;
  for (uint64_t at = 0; at < c.out(); ++at) {
    x = x * 1664525 + 1013904223;
    dram[at] = static_cast<uint8_t>(x >> 24);
  }
  for (int64_t block = 0; block < c.tile_n / 16; ++block)
    for (int64_t column = 0; column < 16; ++column)
      std::memcpy(&dram[c.tables() + static_cast<uint64_t>(block * 128 + 64 + 4 * column)], &c.scale, 4);
  return dram;
}

}  // namespace tuner::npu::testing
