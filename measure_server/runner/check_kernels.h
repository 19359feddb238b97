// Kernels that check a candidate's operands where they lie, in the GPU's memory: bringing 256 MiB back to
// compare them takes a hundred times as long as the candidate. `tuner pack` compiles the text below into a
// pack; the device child loads and launches the kernels (device_checks.h).
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/base/dtype.h"

namespace tuner {

// CUDA C++. Needs an architecture with atomic additions of doubles (sm_60).
std::string check_kernels_source();

// The kernels, by the type of the elements where that matters; empty: there is none for the type.
//
//   sums     (out, rows, columns, count, n_columns)   adds the elements to the sums of their row and column
//   samples  (out, indices, values, n)                values[i] = out[indices[i]]
//   equal    (a, b, bytes, different)                 different = 1 unless the bytes are the same
//   hash     (a, bytes, hash)                         adds up a hash of the bytes, which has no order
//   ffma     (out, x, y, rounds)                      only computes: the peak that bench_gpu holds others against
//   mma      (out, x, y, rounds)                      the same of products of tiles on tensor cores, of bfloat16, of
//                                                     TF32 and of bytes; from sm_80 on. x, y: bits of operands, which
//                                                     differ from thread to thread in the bits that are set in y
//   clocks   (clocks, argument, rounds)               the same of one multiprocessor, timed by its own clock: clocks[0] is
//                                                     what the rounds took; it needs room for two. The argument is a
//                                                     factor (ffma), places of lanes (lds128), or the address of a line
//   links    (memory, bytes, stride)                  writes the ring of lines that `l1` and `l2` of clocks follow
std::string sums_kernel(DType dtype);
std::string samples_kernel(DType dtype);
inline constexpr char kEqualKernel[] = "tuner_check_equal", kHashKernel[] = "tuner_check_hash",
                      kFfmaKernel[] = "tuner_probe_ffma", kMmaBrainKernel[] = "tuner_probe_mma_bf16",
                      kMmaTf32Kernel[] = "tuner_probe_mma_tf32", kMmaByteKernel[] = "tuner_probe_mma_u8s8";
// Multiply-adds of a thread in one round of `ffma`.
inline constexpr int64_t kFfmaPerRound = int64_t{16} * 32;
// Products of tiles of a warp in one round of `mma`, and multiply-adds of one of them.
inline constexpr int64_t kMmaPerRound = int64_t{8} * 16, kMmaBrainProducts = int64_t{16} * 8 * 16,
                         kMmaTf32Products = int64_t{16} * 8 * 8, kMmaByteProducts = int64_t{16} * 8 * 32;

inline constexpr char kClocksFfma[] = "tuner_clocks_ffma", kClocksLds128[] = "tuner_clocks_lds128",
                      kClocksShared[] = "tuner_clocks_shared", kClocksL1[] = "tuner_clocks_l1",
                      kClocksL2[] = "tuner_clocks_l2", kLinksKernel[] = "tuner_links";
inline constexpr int64_t kClockedLoads = 16;  // of a thread in one round of those that load
inline constexpr int64_t kLineBytes = 128;    // of `links`

// How they are launched: threads of a block; rows and columns of a block of `sums`.
inline constexpr int64_t kCheckThreads = 256, kSumsColumns = kCheckThreads, kSumsRows = 64;

}  // namespace tuner
