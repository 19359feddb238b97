// What printed kernels ask of the units beside a thread's own: asynchronous copies, tensor cores, the copy
// engine. The calls stand where the kernel has inline PTX (printed_ptx.h); their names are those that it has.
// All is written by the words of the PTX manual, a second time beside ir/intrinsics and the emulator.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "numbers.h"

#define HOST_CUDA_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// Where shared memory begins does not matter, as long as it is a multiple of 1024.
size_t __cvta_generic_to_shared(const void* at);  // NOLINT(bugprone-reserved-identifier): CUDA's name

namespace host_cuda {

// --- cp.async: what is copied is not there before the wait ---

// `read` 0: writes zeros and reads nothing.
void copy_async(void* to, const void* from, int bytes, int read);
void commit_copies();
void wait_copies(size_t in_flight);

// --- ldmatrix, mma.sync: all lanes of a warp ---

enum class Type { bf16, f16, tf32, u8, s8 };
// Element `at` of registers, or of memory.
double element(const void* from, Type type, int at);
// Lane l brings the address of a row of 16 bytes: row l % 8 of matrix l / 8.
void load_matrices(unsigned* to, const void* row, bool transposed, HOST_CUDA_PLACE);
// m16n8kK.row.col: C[16, 8] += A[16, K] * B[K, 8]; `c` has four sums of a lane.
void multiply_tiles(float* c, const void* a, const void* b, Type a_type, Type b_type, HOST_CUDA_PLACE);
void multiply_tiles(int* c, const void* a, const void* b, Type a_type, Type b_type, HOST_CUDA_PLACE);

// --- wgmma: all threads of a warpgroup ---

void fence_async();
void begin_products();
// m64nCOLUMNSk16; `a`, `b`: descriptors. "Across k" is what PTX calls transposed.
void multiply_group(float* sums, int columns, unsigned long long a, unsigned long long b, Type type,
                    bool a_across_k, bool b_across_k, HOST_CUDA_PLACE);
void commit_products();
void wait_products(size_t in_flight);

// --- mbarrier, copies by TMA ---

void begin_barrier(const void* barrier, int arrivals);
void show_barriers();
void expect_bytes(const void* barrier, int64_t bytes);
// 1 in one lane of a warp.
unsigned elect();
void fetch(const void* map, const int* coordinates, int rank, const void* to, const void* barrier);
void fetch_bytes(const void* to, const void* from, int64_t bytes, const void* barrier);
// One try of a wait. In vain it lets the others go on.
unsigned phase_is_over(const void* barrier, unsigned parity);

}  // namespace host_cuda

// The parameters of the printed functions that fetch a box.
#define HOST_COORDINATES_1 c0
#define HOST_COORDINATES_2 c0, c1
#define HOST_COORDINATES_3 c0, c1, c2
#define HOST_COORDINATES_4 c0, c1, c2, c3
#define HOST_COORDINATES_5 c0, c1, c2, c3, c4
