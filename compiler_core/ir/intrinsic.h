// Intrinsics: operations on whole tiles in one instruction (or a few), described as data.
//
// A StmtKind::kIntrinsic names an entry of this registry. The entry says, for all users:
//   meaning   what it computes, as a small Program over its operands as complete logical tiles
//   place     where each operand lies: in registers of each lane, in a fragment, in memory
//   layout    how an operand in lanes is spread over the threads: (lane, register) -> logical indices
//   text      what the CUDA printer writes, or which LLVM intrinsic the CPU's code generator calls
// Everything else follows. `Schedule::tensorize` matches loops against the meaning; the oracle and every
// analysis run the meaning in the place of the statement (arith/meaning.h); so does a CPU without the
// instruction. The GPU emulator gathers fragments by their layout, runs the meaning, and scatters what it
// wrote. So an intrinsic added here is matched, proved, emulated and compiled without other changes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/ir/stmt.h"

namespace tuner {

struct IntrinsicOperand {
  // kAccumulate: read, added to and written in place.
  enum class Access : uint8_t { kRead, kWrite, kReadWrite, kAccumulate };
  enum class Place : uint8_t {
    kLanes,  // GPU: registers of each lane (kRegister), spread by `layout`
    // A tile of a kFragment buffer: a tile register or a vector of a CPU (Intrinsic::Fragments); on a GPU
    // spread over the lanes of a warp by `layout`, and lowered to kLanes (lower/gpu_fragments.cpp).
    kFragment,
    kMemory,  // kGlobal: rows (first dimension) at any distance, each row without gaps
    // The same in kShared, each lane going to the elements that `layout` gives it, or a unit to all
    // (`unit_place`).
    kShared,
  };

  std::string name;
  Access access = Access::kRead;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // of the logical tile
  Place place = Place::kLanes;
  // Of a lane: elements in its register buffer, without gaps (kLanes, kFragment); elements of memory
  // (kShared), in runs of `run` that lie side by side at a multiple of their bytes.
  int64_t registers = 1;
  int64_t run = 1;
  // Returns the logical indices of element `reg` of lane `lane`. Null: not of a GPU.
  std::vector<Expr> (*layout)(const Expr& lane, const Expr& reg) = nullptr;
  // kShared: returns the byte, counted from the tile's first element, at which a unit that fetches the whole
  // tile by itself expects an element; its first one lies at a multiple of `unit_alignment` bytes. The
  // buffer's layout must agree, which lowering checks element by element. Null: lanes bring the addresses of
  // their elements.
  int64_t (*unit_place)(std::span<const int64_t> indices) = nullptr;
  int64_t unit_alignment = 16;
  // CUDA: the function that makes of the address of its first element what the statements take. The result
  // may be added to: 1 is `unit_step` bytes further.
  const char* unit_address = "";
  int64_t unit_step = 16;
};

struct Intrinsic {
  std::string name;
  int64_t threads = 1;  // threads that execute it together: 1 on a CPU, 32 for a warp, 128 for a warpgroup;
                        // consecutive, starting at a multiple
  std::vector<IntrinsicOperand> operands;
  // One nest of loops around one store. Its arguments: for each operand that is read, in order, a kInput
  // buffer of its shape and name; then for each operand that is written, in order, a kOutput buffer named
  // NAME.out. It writes every element of the outputs. An operand that is accumulated, or that is written but
  // lies in no lanes, is one kOutput buffer NAME.
  Program meaning;
  // CUDA statements; $0, $1... are the addresses of the first element of each operand in this lane, $1:4 that
  // of its element 4 (kShared). Ends in ";".
  std::string cuda;
  std::string cuda_helper;         // a function that the statements call, printed once; "" if none
  std::string cuda_shared_helper;  // functions that the helpers of a family call, printed once before them
  // Of a unit that works by itself: what stands before the first and behind the last of several statements
  // that follow each other with nothing between. "": nothing.
  std::string cuda_begin, cuda_end;
  // CPU: where its fragments are.
  enum class Fragments : uint8_t {
    kTileRegisters,  // numbered ones, in one configuration for a kernel
    kVectors,        // a vector register each, as the compiler gives them
  };
  Fragments fragments = Fragments::kTileRegisters;
  // CPU: the LLVM intrinsic that does it, and the features it takes, in LLVM's words. On tile registers its
  // arguments are, in the order of the operands, the number of a register (kFragment), or a pointer and the
  // bytes from row to row (kMemory). On vectors they are the operands' values, and its result is that of the
  // first; "" is a copy between a vector and the rows of memory, or zeros.
  std::string llvm;
  std::vector<std::string> features;
  // GPU: the one architecture that has it ("sm_90a"); "": those that have tiles of a warp.
  std::string gpu_arch;
  // The intrinsic that sets the accumulated operand to 0; "" if there is none.
  std::string zero;
  // Of a unit that works by itself.
  enum class Way : uint8_t {
    kWhole,  // the product is there when the statement is done
    // It goes on behind it: until a statement that lands it nobody overwrites its operands in memory, and
    // only more of these touch the sums. Its meaning is the product, so a Program says what comes out as
    // ever.
    kStarts,
    kLands,  // products of these operands that were started are done, as are all others; the meaning adds 0
    kLandsBefore,  // the same for all but those of the latest group, statements with nothing between
  };
  Way way = Way::kWhole;
  // Only waits for products that were started.
  bool lands() const { return way == Way::kLands || way == Way::kLandsBefore; }
  // The same product as kStarts; and, of that one, its kLands and kLandsBefore.
  std::string started, landed, landed_before;
  // For estimates of time, of what accumulates on a GPU: products of its two tiles that the statement makes,
  // and its instructions, as far as other statements do not share them.
  int64_t products = 1, instructions = 1;
};

// Finds an intrinsic by name; null if there is none. Each family is a file of ir/intrinsics/.
const Intrinsic* find_intrinsic(std::string_view name);

// --- warp_allreduce.cpp ---
//   warp_allreduce.OP.W    OP is sum, max or min; W is 2, 4, 8, 16 or 32. Operand x has one float32 per lane.
//                          In each group of W consecutive lanes, x of every lane becomes OP over the group.
std::vector<Intrinsic> warp_allreduce_intrinsics();
// Returns "warp_allreduce.sum.32".
std::string warp_allreduce_name(ReduceOp op, int64_t width);

// --- amx.cpp: tiles of x86 CPUs. R rows, 1 to 16 ---
//   amx.bfloat16.R                C[R, 16] += A[R, 32] * B[16, 16, 2]: a group of B is two along k; sums
//                                 float32
//   amx.int8.int8.R ...           C[R, 16] += A[R, 64] * B[16, 16, 4]: int8 or uint8 each; sums int32
//   amx.zero.T.R                  C[R, 16] = 0
//   amx.load.T.R, amx.groups.T    a tile of A, of B out of memory
//   amx.store.T.R                 a tile of C into memory
std::vector<Intrinsic> amx_intrinsics();

// --- amx_fp16.cpp: the same of float16 ---
//   amx.float16.R, amx.load.float16.R, amx.groups.float16
std::vector<Intrinsic> amx_fp16_intrinsics();

// --- mmla.cpp: matrices of 2 x 2 sums in vectors of AArch64 CPUs ---
//   mmla.int8.int8.2, mmla.uint8.uint8.2, mmla.uint8.int8.2     C[2, 2] += A[2, 8] * B[1, 2, 8]; sums int32
//   mmla.bfloat16.2                                             C[2, 2] += A[2, 4] * B[1, 2, 4]; sums float32
//   mmla.zero.T.2, mmla.load.T.2, mmla.groups.T, mmla.store.T.2 as those of amx
std::vector<Intrinsic> mmla_intrinsics();

// --- mma.cpp: tensor cores of NVIDIA GPUs, sm_80 and later ---
// T is bfloat16 or float16, with float32 sums:
//   mma.T.mk.kn                  C[16, 8] += A[16, 16] * B[16, 8]. Of .km A is [k, m], of .nk B is [n, k]:
//                                all four
//   mma.zero, mma.store          C[16, 8] = 0; a tile of C into shared memory
//   ldmatrix.T.mk, ldmatrix.T.km     a tile of A out of shared memory
//   ldmatrix.T.kn, ldmatrix.T.nk     two tiles of B side by side: [16, 16], of k and n, of n and k
// Of bytes, S and U each uint8 or int8 (the name of both once if they are the same), with int32 sums:
//   mma.S.U.mk.nk                C[16, 8] += A[16, 32] * B[8, 32]
//   mma.zero.int32, mma.store.int32, ldmatrix.S.mk, ldmatrix.S.nk
// Of float32, of which the tensor cores take the first 19 bits (UnaryOp::kTf32), with float32 sums:
//   mma.tf32.mk.kn               C[16, 8] += A[16, 16] * B[16, 8], and .km, .nk: all four
//   mma.tf32x3.mk.kn ...         the same by three products, which keep 22 of the 24 bits of each number
//   ldmatrix.float32.mk, ldmatrix.float32.nk       a tile of A, of B out of shared memory
//   mma.load.float32.km, mma.load.float32.kn       the same where k does not lie along the rows
std::vector<Intrinsic> mma_intrinsics();
// --- wgmma.cpp: tensor cores of Hopper GPUs, sm_90a, by warpgroups. Operands lie in shared memory, in pieces
// of 64 x 64 --- T is bfloat16 or float16, with float32 sums; N is 64, 128, 192 or 256:
//   wgmma.T.N.mk.nk        C[64, N] += A[64, 64] * B[N / 64, 64, 64]. Of .km A is [k, m]; a piece of B is [n,
//                          k], of .kn [k, n]
//   wgmma.start.T.N ...    the same, going on behind the statement, until
//   wgmma.landed.T.N ...   all products have landed; wgmma.landed_before.T.N ...: all but those of the latest
//                          group
//   wgmma.zero.N           C[64, N] = 0
//   wgmma.store            a tile [64, 8] of C into shared memory
std::vector<Intrinsic> wgmma_intrinsics();

// Returns what mma.tf32 and mma.tf32x3 add for the numbers a and b: by 1 term tf32(a) * tf32(b); by 3 terms,
// where x is tf32(x) and a rest of 13 bits, rest(a) * tf32(b) + tf32(a) * rest(b) + tf32(a) * tf32(b), each
// rest in 11 bits.
Expr tf32_product(const Expr& a, const Expr& b, int terms);

}  // namespace tuner
