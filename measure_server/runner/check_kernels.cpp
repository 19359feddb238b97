#include "measure_server/runner/check_kernels.h"

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr std::string_view kSource =
    R"(// Checks of a candidate's operands. Sums are in double, so their own rounding is nothing beside the tolerance.
typedef unsigned long long u64;

struct Half { unsigned short bits; };
struct Brain { unsigned short bits; };

__device__ double value(float x) { return x; }
__device__ double value(int x) { return x; }
__device__ double value(signed char x) { return x; }
__device__ double value(unsigned char x) { return x; }
__device__ double value(Brain x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ double value(Half x) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
  return f;
}

// A block adds up ROWS rows of COLUMNS columns: a thread has a column, a warp its part of each row.
template <class T>
__device__ void sums(const T* out, double* rows, double* columns, u64 count, u64 n_columns) {
  const u64 n_rows = (count + n_columns - 1) / n_columns;
  const u64 c = (u64)blockIdx.x * COLUMNS + threadIdx.x;
  const u64 first = (u64)blockIdx.y * ROWS;
  const u64 end = first + ROWS < n_rows ? first + ROWS : n_rows;
  double column = 0;
  for (u64 r = first; r < end; ++r) {
    const u64 i = r * n_columns + c;
    double x = c < n_columns && i < count ? value(out[i]) : 0.0;
    column += x;
    for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
    if (threadIdx.x % 32 == 0) atomicAdd(&rows[r], x);
  }
  if (c < n_columns) atomicAdd(&columns[c], column);
}

template <class T>
__device__ void samples(const T* out, const u64* indices, double* values, u64 n) {
  const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = value(out[indices[i]]);
}

extern "C" __global__ void tuner_check_equal(const unsigned char* a, const unsigned char* b, u64 bytes,
                                             unsigned* different) {
  // Operands begin at multiples of 16 bytes.
  const uint4 *wide_a = (const uint4*)a, *wide_b = (const uint4*)b;
  const u64 step = (u64)gridDim.x * blockDim.x;
  const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  bool same = true;
  for (u64 i = thread; i < bytes / 16; i += step) {
    const uint4 x = wide_a[i], y = wide_b[i];
    same = same && x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w;
  }
  for (u64 i = bytes / 16 * 16 + thread; i < bytes; i += step) same = same && a[i] == b[i];
  if (!same) *different = 1;
}

// Of each word and its place, mixed as splitmix64 does.
extern "C" __global__ void tuner_check_hash(const unsigned* a, u64 bytes, u64* hash) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  u64 sum = 0;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < (bytes + 3) / 4; i += step) {
    unsigned word = 0;
    if (4 * i + 4 <= bytes) {
      word = a[i];
    } else {
      const unsigned char* tail = (const unsigned char*)a;
      for (u64 b = 4 * i; b < bytes; ++b) word = word << 8 | tail[b];
    }
    u64 x = (i << 32 ^ word) + 0x9e3779b97f4a7c15ull * (i + 1);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    sum += x ^ x >> 31;
  }
  atomicAdd(hash, sum);
}

// Sixteen chains of multiply-adds a thread: more than the units are deep. The result is used, so none is left out.
__device__ float multiply_adds(float x, float y, u64 rounds) {
  float chain[16];
  for (int i = 0; i < 16; ++i) chain[i] = threadIdx.x + i;
  for (u64 r = 0; r < rounds; ++r) {
#pragma unroll
    for (int step = 0; step < 32; ++step) {
#pragma unroll
      for (int i = 0; i < 16; ++i) chain[i] = chain[i] * x + y;
    }
  }
  float sum = 0;
  for (int i = 0; i < 16; ++i) sum += chain[i];
  return sum;
}
extern "C" __global__ void tuner_probe_ffma(float* out, float x, float y, u64 rounds) {
  const float sum = multiply_adds(x, y, rounds);
  if (sum == x) out[0] = sum;
}

#if defined(__CUDA_ARCH__)
// From here to the end of this part: probes of one multiprocessor, which write the clocks that it took by its own clock.

// Between two barriers, so that the clocks are those of all warps.
extern "C" __global__ void tuner_clocks_ffma(u64* clocks, float x, u64 rounds) {
  __syncthreads();
  const u64 begin = clock64();
  const float sum = multiply_adds(x, 1 - x, rounds);
  if (sum == x) clocks[1] = 1;
  __syncthreads();
  if (threadIdx.x == 0) clocks[0] = clock64() - begin;
}

// Lane l of each warp loads 16 bytes from places[l], a multiple of 16 below 16384.
extern "C" __global__ void tuner_clocks_lds128(u64* clocks, const unsigned* places, u64 rounds) {
  __shared__ uint4 memory[1024];
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) memory[i] = make_uint4(i, i, i, i);
  const unsigned at = (unsigned)__cvta_generic_to_shared(memory) + places[threadIdx.x % 32];
  unsigned seen = 0;
  __syncthreads();
  const u64 begin = clock64();
#pragma unroll 1
  for (u64 r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      unsigned x, y, z, w;
      asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(at));
      seen ^= x ^ y ^ z ^ w;
    }
  }
  if (seen == 1) clocks[1] = 1;
  __syncthreads();
  if (threadIdx.x == 0) clocks[0] = clock64() - begin;
}

// Each line of 128 bytes holds the address of the next one, `stride` bytes on in a ring of `bytes`, a power of two.
// Every line is in the ring if `stride` is an odd number of lines.
extern "C" __global__ void tuner_links(char* memory, u64 bytes, u64 stride) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < bytes / 128; i += step)
    *(const char**)(memory + (i * stride & bytes - 1)) = memory + ((i + 1) * stride & bytes - 1);
}

// One thread follows the links: each load waits for the one before it.
struct CachedInL1 {
  static __device__ void follow(u64& at) { asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(at)); }
};
struct CachedInL2 {
  static __device__ void follow(u64& at) { asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(at)); }
};
template <class Load>
__device__ void chase(u64* clocks, u64 at, u64 rounds) {
  const u64 begin = clock64();
#pragma unroll 1
  for (u64 r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) Load::follow(at);
  }
  // The last load has arrived when its result is known.
  if (at == 1) clocks[1] = 1;
  clocks[0] = clock64() - begin;
}
extern "C" __global__ void tuner_clocks_l1(u64* clocks, u64 first, u64 rounds) {
  chase<CachedInL1>(clocks, first, rounds);
}
extern "C" __global__ void tuner_clocks_l2(u64* clocks, u64 first, u64 rounds) {
  chase<CachedInL2>(clocks, first, rounds);
}
// The same in shared memory; `first` is not read.
extern "C" __global__ void tuner_clocks_shared(u64* clocks, u64 first, u64 rounds) {
  __shared__ unsigned ring[1024];
  const unsigned base = (unsigned)__cvta_generic_to_shared(ring);
  for (unsigned i = 0; i < 1024; ++i) ring[i] = base + (i + 33) % 1024 * 4;
  unsigned at = base;
  const u64 begin = clock64();
#pragma unroll 1
  for (u64 r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) asm volatile("ld.volatile.shared.u32 %0, [%0];" : "+r"(at));
  }
  if (at == 1) clocks[1] = 1;
  clocks[0] = clock64() - begin;
}
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
struct Brains {
  static __device__ void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
struct Tf32s {
  static __device__ void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
struct Bytes {
  static __device__ void multiply_add(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

// Eight tiles of sums a warp, each multiplied into 16 times a round, all out of registers. Operands are no zeros, which
// would take less power and so run at a higher clock.
template <class Tiles, class Sum>
__device__ void probe_mma(Sum* out, unsigned x, unsigned y, u64 rounds) {
  unsigned a[4], b[2];
  Sum sums[8][4];
  for (int i = 0; i < 4; ++i) a[i] = x ^ (threadIdx.x * 6 + i + 1) * 0x9e3779b9u & y;
  for (int i = 0; i < 2; ++i) b[i] = x ^ (threadIdx.x * 6 + i + 5) * 0x9e3779b9u & y;
  for (int tile = 0; tile < 8; ++tile)
    for (int i = 0; i < 4; ++i) sums[tile][i] = threadIdx.x + tile;
#pragma unroll 1
  for (u64 r = 0; r < rounds; ++r) {
#pragma unroll
    for (int step = 0; step < 16; ++step) {
#pragma unroll
      for (int tile = 0; tile < 8; ++tile) Tiles::multiply_add(sums[tile], a, b);
    }
  }
  Sum sum = 0;
  for (int tile = 0; tile < 8; ++tile)
    for (int i = 0; i < 4; ++i) sum += sums[tile][i];
  if (sum == (Sum)123456789) out[0] = sum;
}
extern "C" __global__ void tuner_probe_mma_bf16(float* out, unsigned x, unsigned y, u64 rounds) {
  probe_mma<Brains>(out, x, y, rounds);
}
extern "C" __global__ void tuner_probe_mma_tf32(float* out, unsigned x, unsigned y, u64 rounds) {
  probe_mma<Tf32s>(out, x, y, rounds);
}
extern "C" __global__ void tuner_probe_mma_u8s8(int* out, unsigned x, unsigned y, u64 rounds) {
  probe_mma<Bytes>(out, x, y, rounds);
}
#endif
)";

struct Element {
  DType dtype;
  std::string_view type, name;
};
constexpr Element kElements[] = {
    {DType::kFloat32, "float", "f32"},     {DType::kFloat16, "Half", "f16"},
    {DType::kBFloat16, "Brain", "bf16"},   {DType::kInt32, "int", "i32"},
    {DType::kInt8, "signed char", "i8"},   {DType::kUInt8, "unsigned char", "u8"},
    {DType::kBool, "unsigned char", "u8"},
};

std::string kernel_of(std::string_view what, DType dtype) {
  for (const Element& e : kElements)
    if (e.dtype == dtype) return str("tuner_check_", what, "_", e.name);
  return {};
}

}  // namespace

std::string sums_kernel(DType dtype) { return kernel_of("sums", dtype); }
std::string samples_kernel(DType dtype) { return kernel_of("samples", dtype); }

std::string check_kernels_source() {
  std::string text = str("#define ROWS ", kSumsRows, "\n#define COLUMNS ", kSumsColumns, "\n#define LOADS ",
                         kClockedLoads, "\n", std::string(kSource));
  for (const Element& e : kElements) {
    if (e.dtype == DType::kBool) continue;  // read as bytes
    text += str("extern \"C\" __global__ void ", sums_kernel(e.dtype), "(const ", e.type,
                "* out, double* rows, double* columns, u64 count, u64 n_columns) {\n"
                "  sums(out, rows, columns, count, n_columns);\n}\n");
    text += str("extern \"C\" __global__ void ", samples_kernel(e.dtype), "(const ", e.type,
                "* out, const u64* indices, double* values, u64 n) {\n"
                "  samples(out, indices, values, n);\n}\n");
  }
  return text;
}

}  // namespace tuner
