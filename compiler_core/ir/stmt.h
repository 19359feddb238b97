// Statements and Programs: a tree of loops over stores.
//
// Loops start at 0 and their extents are constants: shapes are known when a kernel is tuned, so analysis,
// feature extraction and code generation get exact answers. A tail is a guard (kIf), which lowering peels
// off.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/ir/expr.h"

namespace tuner {

enum class StmtKind : uint8_t { kFor, kSeq, kIf, kStore, kAllocate, kBarrier, kIntrinsic, kAsync };

// The way a loop runs.
//
// GPU axes keep the plain meaning of a loop: a Program with bound loops may be read, and interpreted, as if
// all loops were serial. A loop bound to a thread axis inside another loop bound to the same axis is
// *cooperative*: the same threads share its iterations (all threads of a block copy a tile into shared
// memory). A reduce loop bound to a thread axis is a cross-thread reduction. lower/gpu.h tells how these are
// lowered.
enum class LoopKind : uint8_t {
  kSerial,
  kParallel,    // CPU: iterations are shared among the threads of the host's pool; outermost only
  kVectorized,  // CPU: vector operations; innermost only. The lanes of a reduce axis are combined
  kVectorRows,  // directly around a vectorized loop; both form one tile of vectors. Where an access is
                // contiguous along this loop instead of along the lanes, vectors of this loop are loaded or
                // stored, and transposed in registers (codegen/emit_tile.cpp; on GPUs lower/gpu_copies.cpp)
  kDot,         // the innermost reduce loop, with 2 (bfloat16) or 4 (8 bits) products added to one lane. CPU:
                // one instruction if the target has it (codegen/emit_dot.cpp). GPU: 8 bits only, always one
                // instruction, of a word of each operand, which the code generator refuses where it is none
  kUnrolled,    // emitted once per iteration
  kBlockX,
  kBlockY,
  kBlockZ,  // GPU grid
  kThreadX,
  kThreadY,
  kThreadZ,        // GPU threads of a block
  kVirtualThread,  // GPU: each thread does all iterations. Lowering moves the loop inside shared-memory
                   // copies and serial loops, so a thread's tile consists of several strided parts
  kClusterX,
  kClusterY,  // GPU: blocks of a cluster
};
std::string_view loop_kind_name(LoopKind kind);

// The kind of an axis for the tensor computed under it. Spatial iterations are independent; reduce iterations
// may be reordered, but all add to the same element. Steps run one after the other: each may read what stages
// of earlier ones stored, so the axis stays where it is.
enum class AxisKind : uint8_t { kSpatial, kReduce, kStep };

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

  // kStore, if reduce is kNone:
  //         buffer[indices] = value
  //         otherwise:
  //         if (first) buffer[indices] = init;  buffer[indices] = buffer[indices] (op) value
  // `first` is true at the first iteration of all reduce axes around. An undefined `first` means that the
  // initialisation is elsewhere (decompose_reduction put it there).
  // kAllocate: buffer exists (uninitialised) while body runs.
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  ReduceOp reduce = ReduceOp::kNone;
  Expr init, first;

  // kFor, kIf, kAllocate
  Stmt body;
  Stmt else_body;           // kIf, may be null
  std::vector<Stmt> stmts;  // kSeq: one after the other

  // kBarrier: all threads of `scope` pass it together (kShared: block, kRegister: warp, kGlobal: cluster).
  // kIntrinsic: the intrinsic `name` of the registry (ir/intrinsic.h), which has its meaning, fragment
  // layouts and text; `operands` are loads, one for each of its operands: of the first register of what lies
  // in lanes, of the first element of any other tile, whose dimensions are the last ones of the buffer.
  // kAsync: `name` is one of
  //   copy    body holds the stores to do asynchronously, by the threads that come by
  //   commit  the copies since the last one are a group
  //   wait    until at most operands[0] groups of this thread are under way
  // or, of copies that the device does by itself (TMA), which arrive at a barrier in shared memory, an
  // mbarrier. It is an element of an int64 buffer, operands[0]; it counts arrivals and bytes, phase after
  // phase:
  //   init    all barriers of the buffer begin their first phase; each phase is over with operands[1]
  //           arrivals and all bytes
  //   expect  arrives, and says that operands[1] bytes will
  //   fetch   a tile, whose bytes arrive. In a scheduled Program `body` holds the stores that it means.
  //           Lowered, one thread does it: to operands[1], the first element of the tile, a box of map
  //           `value` (GpuKernel::tensor_maps) of `buffer`, at coordinates `indices`, innermost first. Or,
  //           without a map, as it lies in memory (`value` undefined): operands[3] bytes from operands[2] on
  //   await   until the phase with parity operands[1] is over: the first phase has parity 0, the second 1,
  //           the third 0
  MemoryScope scope = MemoryScope::kShared;
  std::string name;
  std::vector<Expr> operands;
};

// Make statements.
Stmt make_for(Var var, int64_t extent, Stmt body, AxisKind axis = AxisKind::kSpatial,
              LoopKind loop = LoopKind::kSerial);
Stmt make_seq(std::vector<Stmt>
                  stmts);  // flattens nested sequences and drops nulls; a single statement stays itself, no
                           // statement gives null
Stmt make_if(Expr condition, Stmt body, Stmt else_body = nullptr);
Stmt make_store(const Buffer& buffer, std::vector<Expr> indices, Expr value);
Stmt make_reduce(const Buffer& buffer, std::vector<Expr> indices, ReduceOp op, Expr init, Expr value,
                 Expr first);
Stmt make_allocate(const Buffer& buffer, Stmt body);
Stmt make_barrier(MemoryScope scope);
// Asynchronous copies, which other threads of the block see behind the wait of the thread that did them and a
// barrier.
Stmt make_async_copy(Stmt body);          // the stores below it; null stays null
Stmt make_async_commit();                 // the copies since the last one are a group
Stmt make_async_wait(int64_t in_flight);  // until at most so many groups of this thread are under way
bool is_async(const StmtNode& s, std::string_view what);  // "copy", "commit", "wait"...
// Copies by the device itself; `barrier` is a load of an element of an int64 buffer in shared memory.
Stmt make_async_init(const Expr& barriers, int64_t arrivals);
Stmt make_async_expect(const Expr& barrier, int64_t bytes);
Stmt make_async_fetch(const Expr& barrier, Stmt body);  // undefined: none yet; null stays null
Stmt make_async_fetch(const Expr& barrier, const Expr& to, int64_t map, const Buffer& from,
                      std::vector<Expr> coordinates);
Stmt make_async_fetch(const Expr& barrier, const Expr& to, const Expr& from, int64_t bytes);
Stmt make_async_await(const Expr& barrier, const Expr& parity);
// Returns the same node with another body (or bodies). Rewrites use it all the time.
Stmt with_body(const Stmt& stmt, Stmt body);

// A complete computation: arguments in the order of the kernel's `args`, and what to do with them.
//
// `packing` is the second entry: it reads kConstant arguments and writes kPacked ones, once, outside the
// timed region. Its loops are in their own Program, whose `args` are [constants..., packed...]. The main
// Program then takes the packed buffers instead of the constants. A Program without packed operands has no
// `packing`.
struct Program {
  std::string name;          // name of the entry, a C identifier
  std::vector<Buffer> args;  // roles kInput, kConstant, kPacked, kOutput, kInOut
  Stmt body;
  std::shared_ptr<const Program> packing;
  int min_blocks = 0;  // GPU: blocks that should fit a multiprocessor at once (__launch_bounds__); 0: no
                       // preference
  // A user's text that computes the same; then there is no body and no packing (foreign_code.h).
  std::shared_ptr<const struct ForeignCode> foreign;
};

// Prints loops as text, one statement per line, two spaces per level. Tests compare it, and `tuner show --as
// loops` prints it.
std::string to_text(const Program& program);
std::string to_text(const Stmt& stmt);
std::string to_text(const Expr& expr);

}  // namespace tuner
