// What a warp does together in tensor cores: ldmatrix, mma.sync. Every lane brings what it has, and takes
// from the others between two barriers of the warp. Who holds what is written by the tables of the PTX
// manual.
#include <math.h>
#include <string.h>

#include "state.h"
#include "units.h"

namespace host_cuda {

static const void* brought[2][kMostThreads];

void load_matrices(unsigned* to, const void* row, bool transposed, const char* file, int line) {
  const unsigned self = running->linear, warp = self / 32 * 32, lane = self % 32;
  const void* const pc = __builtin_return_address(0);
  if ((size_t)row % 16 != 0)
    report("aligned",
           thread_text(self, block_number) +
               " brings a row of a matrix from an address that is not a multiple of 16, at {1}",
           pc, nullptr);
  touch(row, 16, Access::kRead, pc);
  brought[0][self] = row;
  sync_warp(0xffffffffu, Op::kUnit, file, line);
  unsigned taken[4];
  for (int m = 0; m < 4; ++m) {
    const void* const* const rows = brought[0] + warp + (size_t)m * 8;
    if (transposed) {
      unsigned short pair[2];
      for (int i = 0; i < 2; ++i) pair[i] = ((const unsigned short*)rows[lane % 4 * 2 + i])[lane / 4];
      memcpy(&taken[m], pair, 4);
    } else {
      memcpy(&taken[m], (const char*)rows[lane / 4] + (size_t)lane % 4 * 4, 4);
    }
  }
  sync_warp(0xffffffffu, Op::kUnit, file, line);
  memcpy(to, taken, sizeof taken);
}

double element(const void* from, Type type, int at) {
  switch (type) {
    case Type::bf16:
      return bits_to_float((unsigned)((const unsigned short*)from)[at] << 16);
    case Type::f16:
      return float16_to_float(((const unsigned short*)from)[at]);
    case Type::tf32:
      return bits_to_float(((const unsigned*)from)[at] & ~0x1fffu);
    case Type::u8:
      return ((const unsigned char*)from)[at];
    case Type::s8:
      return ((const signed char*)from)[at];
  }
  return NAN;
}

template <class Sum>
static void multiply(Sum* c, const void* a, const void* b, Type a_type, Type b_type, const char* file,
                     int line) {
  const unsigned self = running->linear, warp = self / 32 * 32, lane = self % 32;
  const int each = a_type == Type::tf32                          ? 1
                   : a_type == Type::bf16 || a_type == Type::f16 ? 2
                                                                 : 4;  // of a register
  brought[0][self] = a;
  brought[1][self] = b;
  sync_warp(0xffffffffu, Op::kUnit, file, line);
  Sum sums[4];
  for (unsigned r = 0; r < 4; ++r) {
    const unsigned row = lane / 4 + r / 2 * 8, column = lane % 4 * 2 + r % 2;
    double sum = c[r];
    for (int k = 0; k < 8 * each; ++k) {
      const int place = k % (4 * each) / each, upper = k / (4 * each);
      sum += element(brought[0][warp + row % 8 * 4 + place], a_type,
                     ((int)row / 8 + upper * 2) * each + k % each) *
             element(brought[1][warp + column * 4 + place], b_type, upper * each + k % each);
    }
    sums[r] = (Sum)sum;
  }
  sync_warp(0xffffffffu, Op::kUnit, file, line);
  for (int r = 0; r < 4; ++r) c[r] = sums[r];
}
void multiply_tiles(float* c, const void* a, const void* b, Type a_type, Type b_type, const char* file,
                    int line) {
  multiply(c, a, b, a_type, b_type, file, line);
}
void multiply_tiles(int* c, const void* a, const void* b, Type a_type, Type b_type, const char* file,
                    int line) {
  multiply(c, a, b, a_type, b_type, file, line);
}

}  // namespace host_cuda
