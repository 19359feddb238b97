// Intrinsics: operations that several threads do together in one instruction (or a few), described as data.
//
// A StmtKind::kIntrinsic names an entry of this registry. The entry says, for all users:
//   meaning   what it computes, as a small Program over its operands as complete logical tiles
//   layout    how each operand tile is spread over the threads: (lane, register) -> logical indices
//   text      what the CUDA printer writes
// The emulator derives everything from meaning and layout: it gathers the fragments of `threads` lanes into
// logical tiles, runs the meaning, and scatters what it wrote. So an intrinsic added here is emulated,
// printed and checked without other changes. mma, ldmatrix, stmatrix and wgmma fit this form.
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
  int64_t registers = 1;       // elements per lane, contiguous in its register buffer
  // Returns the logical indices of register `reg` of lane `lane`.
  std::vector<Expr> (*layout)(Expr lane, Expr reg) = nullptr;
};

struct Intrinsic {
  std::string name;
  int64_t threads = 32;  // threads that execute it together: 32 for a warp, 128 for a warpgroup; consecutive,
                         // starting at a multiple
  std::vector<IntrinsicOperand> operands;
  // Its arguments: for each operand that is read, in order, a kInput buffer of its shape and name; then for
  // each operand that is written, in order, a kOutput buffer named NAME.out. It writes every element of the
  // outputs.
  Program meaning;
  // CUDA statements; $0, $1... are the addresses of the first register of each operand. Ends in ";".
  std::string cuda;
};

// Finds an intrinsic by name; null if there is none.
//
//   warp_allreduce.OP.W    OP is sum, max or min; W is 2, 4, 8, 16 or 32. Operand x has one float32 per lane.
//                          In each group of W consecutive lanes, x of every lane becomes OP over the group.
const Intrinsic* find_intrinsic(std::string_view name);
// Returns "warp_allreduce.sum.32".
std::string warp_allreduce_name(ReduceOp op, int64_t width);

}  // namespace tuner
