// Statements and Programs: a tree of loops over stores.
//
// Loop extents are constants and loops start at 0: shapes are known when a kernel is tuned, and everything
// that analysis, feature extraction and code generation ask then has an exact answer. A tail is a guard
// (kIf), and lowering peels it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/ir/expr.h"

namespace tuner {

enum class StmtKind : uint8_t { kFor, kSeq, kIf, kStore, kAllocate, kBarrier, kIntrinsic, kAsync };

// How a loop runs.
//
// GPU axes keep the plain meaning of a loop: a Program with bound loops may be read, and interpreted, as if
// all were serial. A loop bound to a thread axis inside another loop bound to the same axis is *cooperative*:
// it runs over the same threads, which share its iterations (the copy of a tile into shared memory by all
// threads of a block). A reduce loop bound to a thread axis is a cross-thread reduction. lower/gpu.h says
// what becomes of them.
enum class LoopKind : uint8_t {
  kSerial,
  kParallel,    // CPU: iterations are shared among the threads of the host's pool; outermost only
  kVectorized,  // CPU: vector operations; innermost only. A reduce axis: its lanes are combined, too
  kVectorRows,  // CPU: directly around a vectorized loop: both are one tile of vectors. Where an access is
                // contiguous along this loop instead of along the lanes, vectors of this loop are loaded or
                // stored and transposed in registers (codegen/emit_tile.cpp)
  kDot,         // CPU: the innermost reduce loop, 2 (bfloat16) or 4 (int8) products added to one lane: one
                // instruction where the target has it (codegen/emit_dot.cpp)
  kUnrolled,    // emitted once per iteration
  kBlockX,
  kBlockY,
  kBlockZ,  // GPU grid
  kThreadX,
  kThreadY,
  kThreadZ,        // GPU threads of a block
  kVirtualThread,  // GPU: each thread does all iterations, pushed inside by lowering past shared memory and
                   // serial loops: the tile of a thread comes in several strided parts
  kClusterX,
  kClusterY,  // GPU: blocks of a cluster
};
std::string_view loop_kind_name(LoopKind kind);

// What an axis is to the tensor computed under it. Spatial iterations are independent; reduce iterations may
// be reordered but all add to the same element.
enum class AxisKind : uint8_t { kSpatial, kReduce };

enum class ReduceOp : uint8_t { kNone, kSum, kMax, kMin };

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;

struct StmtNode {
  StmtKind kind;

  // kFor: for var in 0..extent { body }
  Var var;
  int64_t extent = 0;
  LoopKind loop = LoopKind::kSerial;
  AxisKind axis = AxisKind::kSpatial;

  // kIf: if (condition) body else else_body
  Expr condition;

  // kStore: buffer[indices] = value                                                            when reduce is
  // kNone
  //         if (first) buffer[indices] = init;  buffer[indices] = buffer[indices] (op) value   otherwise
  // `first` is true at the first iteration of all reduce axes around; an undefined `first` means the
  // initialisation stands elsewhere (decompose_reduction put it there). kAllocate: buffer exists
  // (uninitialised) while body runs.
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  ReduceOp reduce = ReduceOp::kNone;
  Expr init, first;

  // kFor, kIf, kAllocate
  Stmt body;
  Stmt else_body;           // kIf, may be null
  std::vector<Stmt> stmts;  // kSeq: one after the other

  // kBarrier: all threads of `scope` (kShared: block, kRegister: warp, kGlobal: cluster) pass together.
  // kIntrinsic: a registered intrinsic by name (ir/intrinsic.h): meaning, fragment layouts and text stand in
  //             its registry entry; `operands` are loads of the first register of each of its fragments.
  // kAsync: `name` is copy (body = the stores to be done asynchronously), commit or wait (operands[0] =
  // groups left in flight).
  MemoryScope scope = MemoryScope::kShared;
  std::string name;
  std::vector<Expr> operands;
};

// Makers.
Stmt make_for(Var var, int64_t extent, Stmt body, AxisKind axis = AxisKind::kSpatial,
              LoopKind loop = LoopKind::kSerial);
Stmt make_seq(std::vector<Stmt>
                  stmts);  // flattens nested sequences, drops nulls; one statement stays itself, none is null
Stmt make_if(Expr condition, Stmt body, Stmt else_body = nullptr);
Stmt make_store(const Buffer& buffer, std::vector<Expr> indices, Expr value);
Stmt make_reduce(const Buffer& buffer, std::vector<Expr> indices, ReduceOp op, Expr init, Expr value,
                 Expr first);
Stmt make_allocate(const Buffer& buffer, Stmt body);
Stmt make_barrier(MemoryScope scope);
// The same node with another body (or bodies): what a rewrite does all day.
Stmt with_body(const Stmt& stmt, Stmt body);

// A computation, whole: arguments in the order of the kernel's `args`, and what to do with them.
//
// `packing` is the second entry: it reads kConstant arguments and writes kPacked ones, once, outside the
// timed region. Its loops stand in a Program of their own whose `args` are [constants..., packed...]. The
// main Program then takes the packed buffers in place of the constants. A Program without packed operands has
// none.
struct Program {
  std::string name;          // of the entry: a C identifier
  std::vector<Buffer> args;  // roles kInput, kConstant, kPacked, kOutput
  Stmt body;
  std::shared_ptr<const Program> packing;
  int min_blocks = 0;  // GPU: blocks that should fit a multiprocessor at once (__launch_bounds__); 0: no wish
};

// Loops as text, one statement a line, two spaces a level; what tests compare and `tuner show --as loops`
// prints.
std::string to_text(const Program& program);
std::string to_text(const Stmt& stmt);
std::string to_text(const Expr& expr);

}  // namespace tuner
