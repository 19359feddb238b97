// Emitter: one lowered Program -> LLVM IR in a module. Private to codegen.
//
// Shape of the code: the entry NAME(args, rt) checks the runtime, loads the argument pointers and calls
// NAME.body with every buffer as a noalias parameter of its own (attributes of loaded pointers would be
// lost). A parallel loop is a task NAME.parallelN(closure, begin, end, thread) that does the same for its
// share.
//
// Its parts, each with a header of its own:
//
//   IrWriter         module, builder, first refusal
//   Scope            the function and the loops around, with what is known of their variables
//   Lanes            the piece of a vectorised loop that one vector holds, and its masks
//   MathEmitter      values of floats -> values
//   DotInstructions  words of small numbers -> sums
//   Addresses        buffer and indices -> pointers
//   ValueEmitter     expressions, loads among them -> values
//   Emitter          functions and statements: this page
//
// Register buffers are allocas with constant indices that SROA turns into values; their rows are padded
// to whole vectors, so a piece needs no mask there.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/codegen/addresses.h"
#include "compiler_core/codegen/dot_instructions.h"
#include "compiler_core/codegen/emit_math.h"
#include "compiler_core/codegen/emit_scope.h"
#include "compiler_core/codegen/emit_values.h"
#include "compiler_core/codegen/ir_writer.h"
#include "compiler_core/codegen/lanes.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/stmt.h"

namespace tuner::codegen {

struct Workspace {
  int64_t shared_bytes = 0, per_thread_bytes = 0;
  // One workspace serves several entries.
  void join(const Workspace& other) {
    shared_bytes = std::max(shared_bytes, other.shared_bytes);
    per_thread_bytes = std::max(per_thread_bytes, other.per_thread_bytes);
  }
};

class Emitter : private IrPart {
 public:
  explicit Emitter(IrWriter& ir);
  Emitter(const Emitter&) = delete;  // its parts refer to each other
  Emitter& operator=(const Emitter&) = delete;

  // Adds the entry `name` for the lowered `program`. The error is InvalidConfig, naming what cannot be
  // compiled.
  Result<Workspace> emit(const Program& program, const std::string& name);

 private:
  using Access = Addresses::Access;
  using Piece = Lanes::Piece;

  // --- emitter.cpp: functions and statements ---
  struct Slot {  // a global buffer of the Program: an argument or workspace
    Buffer buffer;
    int64_t offset = -1;  // in its workspace; -1: an argument
    bool per_thread = false;
  };
  void assign_slots(const Program& program);
  llvm::Function* make_function(const std::string& name, llvm::Type* result,
                                const std::vector<llvm::Type*>& params, bool exported);
  void emit_entry(const Program& program, const std::string& name);
  llvm::Function* make_region(const std::string& name, bool per_thread, size_t captured, size_t extra);
  void emit(const Stmt& s);
  void emit_for(const StmtNode& s);
  void emit_loop(const StmtNode& s, llvm::Value* begin, llvm::Value* end);
  void emit_vectorized(const StmtNode& s);
  void emit_piece(const StmtNode& s, const Piece& piece);
  void emit_parallel(const StmtNode& s);
  // Its parts: the loop as a function over begin..end; the task the pool calls, which unpacks a closure of
  // `words` times eight bytes (buffers, runtime, captured variables) and calls the share; the call that packs
  // it.
  llvm::Function* make_share(const StmtNode& s, const std::string& name, const std::vector<Var>& captured);
  llvm::Function* make_task(const std::string& name, llvm::Function* share, size_t captured, int64_t& words);
  void call_parallel_for(int64_t extent, llvm::Function* task, const std::vector<Var>& captured,
                         int64_t words);
  void emit_if(const StmtNode& s);
  void emit_allocate(const StmtNode& s);

  // --- emit_store.cpp: stores and prefetches ---
  void emit_store(const StmtNode& s);
  void store_contiguous(const Buffer& buffer, const Access& access, llvm::Value* value);
  void emit_prefetch(const StmtNode& prefetch);

  // --- emit_tile.cpp: a vectorised loop and the loop of rows around it, as one tile of vectors ---
  struct Tile {  // one block of it: vectors of `lane.lanes` lanes, one each of `row`
    Var rows, lanes;
    Piece row, lane;
  };
  void emit_tile(const StmtNode& rows, const Stmt& s, std::vector<Expr>& guards);
  void emit_tile_block(const Tile& tile, const Stmt& s, std::vector<Expr>& guards);
  void at_row(const Tile& tile, int64_t row);    // lanes run along the lanes
  void at_lane(const Tile& tile, int64_t lane);  // lanes run along the rows
  void leave_tile(const Tile& tile);
  void load_across(const Tile& tile, const Expr& value, std::vector<Expr>& conditions);
  void store_across(const Tile& tile, const Stmt& store, const std::vector<Expr>& guards);
  bool is_one_piece(const Tile& tile, const StmtNode& store);
  void store_woven(const Buffer& buffer, const Access& first, const std::vector<llvm::Value*>& parts);
  bool is_across(const Tile& tile, const Buffer& buffer, const std::vector<Expr>& indices);
  bool mask_by(const std::vector<Expr>& conditions);

  // --- emit_dot.cpp: dot products ---
  void emit_dot(const StmtNode& s);
  llvm::Value* dot_product(const Var& k, int64_t extent, const StmtNode& store);
  llvm::Value* dot_word(const Var& k, int64_t extent, const ExprNode& x);

  // --- emit_intrinsic.cpp: tile intrinsics on tile registers ---
  void plan_tiles(const Stmt& body);
  // What a function of the kernel executes, between taking and releasing this thread's tile registers.
  void emit_region(const Stmt& body, const std::function<void()>& emit_body);
  void configure_tiles();  // nothing where the region has no tiles
  void call(llvm::Intrinsic::ID id, const std::vector<llvm::Value*>& arguments);
  void emit_intrinsic(const StmtNode& s);
  int64_t tile_number(const IntrinsicOperand& operand, const ExprNode& element);

  // --- emit_vector_intrinsic.cpp: tile intrinsics on vectors ---
  void emit_vector_intrinsic(const StmtNode& s, const Intrinsic& intrinsic);
  llvm::Type* vector_tile_type(DType dtype);
  llvm::Value* vector_tile(const IntrinsicOperand& operand, const ExprNode& element);  // its address
  llvm::Value* load_rows(const IntrinsicOperand& operand, const ExprNode& element);
  void store_rows(llvm::Value* vector, const IntrinsicOperand& operand, const ExprNode& element);

  // --- emit_lane_reduction.cpp: a vectorised reduce axis ---
  void emit_lane_reduction(const StmtNode& s);

  std::vector<Slot> slots_;
  Workspace workspace_;
  int regions_ = 0;
  // Fragments of the whole Program. Each has tile registers at numbers of its own, so that they are
  // configured once a call; or, where `rows` is 0, a vector for each of `count` tiles.
  struct Tiles {
    int64_t first, rows, row_bytes, count;
  };
  std::map<const BufferNode*, Tiles> tiles_;
  llvm::GlobalVariable* tile_config_ = nullptr;

  Scope scope_;
  Lanes lanes_;
  MathEmitter math_;
  DotInstructions dots_;
  Addresses addresses_;
  TransposedLoads transposed_;
  ValueEmitter values_;
};

}  // namespace tuner::codegen
