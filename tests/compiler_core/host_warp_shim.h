// What a warp does together, for the host: asynchronous copies, ldmatrix, mma.sync. Part of host_cuda_shim.h.
// Who holds what is written here by the tables of the PTX manual, a second time beside ir/intrinsics/mma.cpp.
#pragma once

#include <deque>

namespace host_cuda {

// --- cp.async: what is copied is not there before the wait, and nobody may read what was there ---

struct Copy {
  void* to;
  const void* from;  // null: zeros
  int bytes;
};
struct Copies {
  std::vector<Copy> open;                // since the last commit
  std::deque<std::vector<Copy>> groups;  // under way, the oldest first
};
static Copies copies[1024];  // of each thread of the block
static bool misaligned = false;
static void landed();  // host_group_shim.h

static void copy_async(void* to, const void* from, int bytes, int read) {
  misaligned |=
      reinterpret_cast<size_t>(to) % bytes != 0 || (read != 0 && reinterpret_cast<size_t>(from) % bytes != 0);
  memset(to, 0xff, bytes);
  copies[running->linear].open.push_back({to, read != 0 ? from : nullptr, bytes});
}
static void commit_copies() {
  Copies& own = copies[running->linear];
  own.groups.push_back(std::move(own.open));
  own.open.clear();
}
static void wait_copies(size_t in_flight) {
  Copies& own = copies[running->linear];
  if (own.groups.size() > in_flight) landed();
  for (; own.groups.size() > in_flight; own.groups.pop_front())
    for (const Copy& c : own.groups.front()) {
      if (c.from != nullptr)
        memcpy(c.to, c.from, c.bytes);
      else
        memset(c.to, 0, c.bytes);
    }
}

// --- numbers of few bits ---

static float bits_to_float(unsigned bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static unsigned float_to_bits(float value) {
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static float float16_to_float(unsigned short bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 0    ? ldexpf((float)fraction, -24)
                     : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                      : ldexpf((float)(fraction + 1024), exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}
// To the nearest, ties to even.
static unsigned short float_to_bfloat16(float value) {
  const unsigned bits = float_to_bits(value);
  if (value != value) return 0x7fff;
  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static unsigned short float_to_float16(float value) {
  const unsigned short sign = float_to_bits(value) >> 31 << 15;
  const float size = fabsf(value);
  if (value != value) return 0x7fff;
  if (size >= 65520) return sign | 0x7c00;
  if (size < ldexpf(1, -14)) return sign | (unsigned short)nearbyintf(ldexpf(size, 24));
  int exponent;
  const float fraction = frexpf(size, &exponent);                       // in [0.5, 1)
  const unsigned rounded = (unsigned)nearbyintf(ldexpf(fraction, 11));  // 1024 .. 2048
  return sign | (unsigned short)((exponent + 13) * 1024 + rounded);     // 2048 carries into the exponent
}

// --- collectives: every lane brings what it has, and takes from the others between two barriers of the warp
// ---

static const void* brought[3][1024];

// Lane l brings the address of a row of 16 bytes: row l % 8 of matrix l / 8.
static void load_matrices(unsigned* to, const void* row, bool transposed) {
  const int self = running->linear, warp = self / 32 * 32, lane = self % 32;
  misaligned |= reinterpret_cast<size_t>(row) % 16 != 0;
  brought[0][self] = row;
  wait_for(Wait::kWarp);
  unsigned taken[4];
  for (int m = 0; m < 4; ++m) {
    const void* const* const rows = brought[0] + warp + m * 8;
    if (transposed) {
      unsigned short pair[2];
      for (int i = 0; i < 2; ++i) pair[i] = ((const unsigned short*)rows[lane % 4 * 2 + i])[lane / 4];
      memcpy(&taken[m], pair, 4);
    } else {
      memcpy(&taken[m], (const char*)rows[lane / 4] + lane % 4 * 4, 4);
    }
  }
  wait_for(Wait::kWarp);
  memcpy(to, taken, sizeof taken);
}

enum class Type { bf16, f16, tf32, u8, s8 };

// Element `at` of the registers of a lane.
static double element(const void* registers, Type type, int at) {
  switch (type) {
    case Type::bf16:
      return bits_to_float((unsigned)((const unsigned short*)registers)[at] << 16);
    case Type::f16:
      return float16_to_float(((const unsigned short*)registers)[at]);
    case Type::tf32:
      return bits_to_float(((const unsigned*)registers)[at] & ~0x1fffu);
    case Type::u8:
      return ((const unsigned char*)registers)[at];
    case Type::s8:
      return ((const signed char*)registers)[at];
  }
  return NAN;
}

// mma.sync.m16n8kK.row.col: C[16, 8] += A[16, K] * B[K, 8].
template <class Sum>
static void multiply_tiles(Sum* c, const void* a, const void* b, Type a_type, Type b_type) {
  const int self = running->linear, warp = self / 32 * 32, lane = self % 32;
  const int each = a_type == Type::tf32                          ? 1
                   : a_type == Type::bf16 || a_type == Type::f16 ? 2
                                                                 : 4;  // of a register
  brought[0][self] = a;
  brought[1][self] = b;
  wait_for(Wait::kWarp);
  Sum sums[4];
  for (int r = 0; r < 4; ++r) {
    const int row = lane / 4 + r / 2 * 8, column = lane % 4 * 2 + r % 2;
    double sum = c[r];
    for (int k = 0; k < 8 * each; ++k) {
      const int place = k % (4 * each) / each, upper = k / (4 * each);
      sum +=
          element(brought[0][warp + row % 8 * 4 + place], a_type, (row / 8 + upper * 2) * each + k % each) *
          element(brought[1][warp + column * 4 + place], b_type, upper * each + k % each);
    }
    sums[r] = (Sum)sum;
  }
  wait_for(Wait::kWarp);
  for (int r = 0; r < 4; ++r) c[r] = sums[r];
}

}  // namespace host_cuda
