// Intrinsics: what several threads do together in one instruction (or a few), as data.
//
// A StmtKind::kIntrinsic names an entry of this registry. The entry says, once and for all users:
//   meaning   what it computes, as a small Program over its operands as whole logical tiles
//   layout    how each operand tile is spread over the threads: (lane, register) -> logical indices
//   text      what the CUDA printer writes
// The emulator derives everything from meaning and layout: it gathers the fragments of `threads` lanes into
// logical tiles, runs the meaning, scatters what it wrote. So an intrinsic added here is emulated, printed
// and checked without a change elsewhere; mma, ldmatrix, stmatrix and wgmma are entries of this form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/ir/stmt.h"

namespace tuner {

struct IntrinsicOperand {
  std::string name;
  enum class Access : uint8_t { kRead, kWrite, kReadWrite } access = Access::kRead;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // of the logical tile
  int64_t registers = 1;       // elements each lane holds, contiguous in its register buffer
  // Logical indices of register `reg` of lane `lane`.
  std::vector<Expr> (*layout)(Expr lane, Expr reg) = nullptr;
};

struct Intrinsic {
  std::string name;
  int64_t threads = 32;  // that execute it together: 32 a warp, 128 a warpgroup; consecutive, from a multiple
  std::vector<IntrinsicOperand> operands;
  // Args: for each operand that is read, in order, a kInput buffer of its shape and name; then for each
  // operand that is written, in order, a kOutput buffer named NAME.out. Every element of the outputs is
  // written.
  Program meaning;
  // CUDA statements; $0, $1... stand for the address of the first register of each operand. Ends in ";".
  std::string cuda;
};

// Null when there is none of this name.
//
//   warp_allreduce.OP.W    OP sum, max or min, W in {2, 4, 8, 16, 32}: operand x, one float32 a lane. Each
//                          group of W consecutive lanes: x of every lane becomes OP over the group.
const Intrinsic* find_intrinsic(std::string_view name);
// "warp_allreduce.sum.32"
std::string warp_allreduce_name(ReduceOp op, int64_t width);

}  // namespace tuner
