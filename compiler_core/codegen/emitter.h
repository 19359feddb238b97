// Emitter: one lowered Program -> LLVM IR in a module. Private to codegen.
//
// Shape of the code: the entry NAME(args, rt) checks the runtime, loads the argument pointers and calls
// NAME.body with every buffer as a noalias parameter of its own (attributes of loaded pointers would be
// lost). A parallel loop is a task NAME.parallelN(closure, begin, end, thread) that does the same for its
// share.
//
// A vectorised loop is cut into pieces of whole vectors and evaluated piece by piece, with expressions that
// depend on its variable as vectors and its guards as masks; a last piece that fills no vector is a masked
// one. Register buffers are allocas with constant indices that SROA turns into values; their rows are padded
// to whole vectors, so a piece needs no mask there.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/stmt.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tuner::codegen {

// Elements of dimension d of a register buffer: the last one larger than 1, which vectors run along, is
// padded to whole vectors of any target.
inline int64_t register_extent(const std::vector<int64_t>& shape, size_t d) {
  bool is_row = shape[d] > 1;
  for (size_t inner = d + 1; inner < shape.size(); ++inner) is_row = is_row && shape[inner] == 1;
  return is_row ? (shape[d] + 15) / 16 * 16 : shape[d];
}

struct Workspace {
  int64_t shared_bytes = 0, per_thread_bytes = 0;
  // One workspace serves several entries.
  void join(const Workspace& other) {
    shared_bytes = std::max(shared_bytes, other.shared_bytes);
    per_thread_bytes = std::max(per_thread_bytes, other.per_thread_bytes);
  }
};

// What the machine offers that decides which IR is best.
struct MachineTraits {
  bool has_fma = false;
  bool has_bf16_dot = false;        // two products of bfloat16 added to a float: vdpbf16ps
  bool has_byte_dot = false;        // four products of uint8 and int8 added to an int32: vpdpbusd
  bool has_float16 = false;         // float16 to float32 and back: vcvtph2ps
  bool has_scale = false;           // x * 2^n in one instruction: vscalefps; with it vfixupimmps
  bool has_nearest_int = false;     // the nearest int32 of a float32, ties to even: cvtps2dq
  bool has_saturation = false;      // int32 as bytes, saturated: vpmovusdb
  bool has_byte_permute = false;    // 64 bytes in any order: vpermb
  bool has_scatter = false;         // gathers and scatters of elements under a mask
  bool has_pair_sums = false;       // two products of 16 bits as one sum of 32: vpmaddwd
  bool has_neon = false;            // vectors of AArch64
  bool has_neon_dot = false;        // four products of bytes, both signed or both not: sdot, udot
  bool has_neon_mixed_dot = false;  // one side signed, the other not: usdot
  bool has_neon_bf16_dot = false;   // two products of bfloat16 added to a float: bfdot
  std::string cpu, features;        // of LLVM
  int vector_bits = 128;
};

class Emitter {
 public:
  Emitter(llvm::Module& module, const MachineTraits& machine)
      : module_(module), machine_(machine), b_(module.getContext()) {}
  // Adds the entry `name` for the lowered `program`. The error is InvalidConfig, naming what cannot be
  // compiled.
  Result<Workspace> emit(const Program& program, const std::string& name);

 private:
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
  // Iterations of a loop that one vector holds: the first `active` of `lanes` from `begin` on.
  struct Piece {
    int64_t begin, lanes, active;
  };
  Piece next_piece(int64_t begin, int64_t end, int64_t whole) const;
  void emit_vectorized(const StmtNode& s);
  void emit_piece(const StmtNode& s, const Piece& piece);
  void run_along(const Var& var, const Piece& piece);  // var is the lanes from here on
  void run_at(const Var& var, int64_t value);          // var is one number from here on
  void leave_lanes();
  void emit_parallel(const StmtNode& s);
  // Its parts: the loop as a function over begin..end; the task the pool calls, which unpacks a closure of `words` times
  // eight bytes (buffers, runtime, captured variables) and calls the share; the call that packs it.
  llvm::Function* make_share(const StmtNode& s, const std::string& name, const std::vector<Var>& captured);
  llvm::Function* make_task(const std::string& name, llvm::Function* share, size_t captured, int64_t& words);
  void call_parallel_for(int64_t extent, llvm::Function* task, const std::vector<Var>& captured,
                         int64_t words);
  void emit_if(const StmtNode& s);
  void emit_allocate(const StmtNode& s);

  // --- emit_access.cpp: loads and stores ---
  struct Access {
    enum Kind { kUniform, kContiguous, kStrided } kind = kUniform;
    LinearForm form;     // flat offset, in elements, without the terms of the vector variable
    int64_t stride = 0;  // elements a lane; only when kStrided and affine
    std::vector<std::pair<Expr, int64_t>> lane_terms;  // other terms that differ between lanes
    bool affine() const { return lane_terms.empty(); }
  };
  Access analyze(const Buffer& buffer, const std::vector<Expr>& indices);
  llvm::Value* base_pointer(const Buffer& buffer);
  llvm::Value* pointer(const Buffer& buffer, const Access& access);
  struct Loop;
  Loop* loop_of(const Expr& term);  // the innermost loop that the term changes in; null: not known ahead
  llvm::Value* moved(llvm::Value* pointer, llvm::Type* element, const Expr& term, int64_t coefficient,
                     Loop& loop);
  llvm::Value* lane_pointers(const Buffer& buffer, const Access& access);
  llvm::Align alignment(const Buffer& buffer, const Access& access, int64_t lanes);
  llvm::Value* emit_load(const Buffer& buffer, const std::vector<Expr>& indices);
  llvm::Value* emit_every_nth(const Buffer& buffer, const Access& access, llvm::Value* mask);
  std::vector<int64_t> lane_offsets(const Access& access) const;
  llvm::Value* emit_near_one_another(const Buffer& buffer, const Access& access, llvm::Value* mask);
  void emit_store(const StmtNode& s);
  void store_contiguous(const Buffer& buffer, const Access& access, llvm::Value* value);
  bool register_offset(const Buffer& buffer, const Access& access);
  void emit_prefetch(const StmtNode& prefetch);
  llvm::Value* any_lane(llvm::Value* mask);
  llvm::Value* memory_mask();  // lanes that may touch memory; null: all

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
  llvm::Value* transposed(const Expr& load) const;  // its vector in this row; null: not loaded so
  bool is_across(const Tile& tile, const Buffer& buffer, const std::vector<Expr>& indices);
  bool mask_by(const std::vector<Expr>& conditions);

  // --- emit_dot.cpp: dot products ---
  void emit_dot(const StmtNode& s);
  llvm::Value* dot_product(const Var& k, int64_t extent, const StmtNode& store);
  llvm::Value* dot_word(const Var& k, int64_t extent, const ExprNode& x);
  llvm::Value* dot_instruction(llvm::Intrinsic::ID id, std::vector<llvm::Value*> operands);
  llvm::Value* bf16_dot(llvm::Value* sum, llvm::Value* x, llvm::Value* y);
  llvm::Value* byte_dot(llvm::Value* sum, llvm::Value* x, llvm::Value* y, bool x_unsigned, bool y_unsigned);
  llvm::Value* every_other(llvm::Value* words, int part, bool is_unsigned);
  llvm::Value* neon_byte_dot(llvm::Value* sum, llvm::Value* x, llvm::Value* y, bool x_unsigned,
                             bool y_unsigned);

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
  llvm::Value* reduced(ReduceOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* any_nan(const std::vector<llvm::Value*>& terms);
  llvm::Value* nan_if(llvm::Value* found, llvm::Value* x);
  llvm::Value* reduced_lanes(ReduceOp op, llvm::Value* v);  // of a vector, or the scalar itself

  // --- emit_expr.cpp: values ---
  llvm::Value* emit(const Expr& e);
  llvm::Value* emit_binary(const Expr& e);
  // Null: there is no such operation on these values.
  llvm::Value* emit_float_binary(BinaryOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* extreme(bool largest, llvm::Value* a, llvm::Value* b);
  llvm::Value* or_nan_of(llvm::Value* y, llvm::Value* x);
  llvm::Value* first_if_beyond(bool largest, llvm::Value* x, llvm::Value* y);
  llvm::Value* emit_int_binary(const Expr& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_index_division(const Expr& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* floor_division(bool quotient, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_data_division(const Expr& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_float_add(const Expr& e);
  llvm::Value* emit_lane_compare(const Expr& e);
  llvm::Value* emit_unary(const Expr& e);
  llvm::Value* emit_select(const Expr& e);
  llvm::Value* emit_cast(DType to, const Expr& e);
  llvm::Value* nearest_int(const Expr& e);
  bool rounds_lanes(const Expr& e) const;  // whether nearest_int applies
  llvm::Value* saturated_byte(const Expr& e);
  llvm::Value* narrowed(DType to, llvm::Value* x);   // float32 to bits of a float of 16 bits
  llvm::Value* widened(DType from, llvm::Value* x);  // and back
  llvm::Value* bfloat16_bits(llvm::Value* x);
  llvm::Value* float16_bits(llvm::Value* x);
  llvm::Value* widen(llvm::Value* v);  // scalar -> all lanes
  void match(llvm::Value*& a, llvm::Value*& b);
  bool depends_on_lane(const Expr& e) const;
  llvm::Value* with_mask(llvm::Value* mask);  // mask and the one around

  // --- emit_math.cpp: expansions, on scalars and vectors alike ---
  llvm::Value* math(UnaryOp op, llvm::Value* x);
  llvm::Value* rounded(llvm::Value* x);
  llvm::Value* tf32(llvm::Value* x);
  llvm::Value* exp32(llvm::Value* x);
  llvm::Value* times_power_of_two(llvm::Value* y, llvm::Value* n, llvm::Value* shifted);
  llvm::Value* log32(llvm::Value* x);
  llvm::Value* tanh32(llvm::Value* x);
  llvm::Value* erf32(llvm::Value* x);
  llvm::Value* fused(llvm::Value* a, llvm::Value* b, llvm::Value* c);               // a * b + c
  llvm::Value* horner(llvm::Value* x, std::initializer_list<double> coefficients);  // highest power first
  llvm::Value* number(llvm::Value* like, double value);
  // A function of doubles of the C library, lane by lane.
  llvm::Value* per_lane_call(const char* symbol, std::span<llvm::Value* const> operands);
  llvm::Value* in_type(llvm::Type* scalar, llvm::Value* x);  // floats, or vectors of them, in this type
  llvm::Value* power(llvm::Value* a, llvm::Value* b);

  llvm::Type* type_of(DType t);
  llvm::Type* memory_type(DType t);  // bool is a byte
  llvm::Value* int_of(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  // Remembers the first thing that cannot be compiled; what is emitted afterwards is thrown away.
  template <class... Args>
  void refuse(const Args&... args) {
    if (status_.is_ok()) status_ = invalid_config(program_name_, ": ", args...);
  }

  llvm::Module& module_;
  MachineTraits machine_;
  llvm::IRBuilder<> b_;
  std::string program_name_;
  Status status_;

  std::vector<Slot> slots_;
  Workspace workspace_;
  int regions_ = 0;
  // Fragments of the whole Program. Each has tile registers at numbers of its own, so that they are configured once a
  // call; or, where `rows` is 0, a vector for each of `count` tiles.
  struct Tiles {
    int64_t first, rows, row_bytes, count;
  };
  std::map<const BufferNode*, Tiles> tiles_;
  llvm::GlobalVariable* tile_config_ = nullptr;

  // State of the function being emitted.
  struct Region {
    llvm::Function* function = nullptr;
    std::map<const BufferNode*, llvm::Value*> buffers;
    std::map<const BufferNode*, llvm::Value*> fragments;  // in vectors; only intrinsics know how they lie
    llvm::Value* runtime = nullptr;
    bool in_parallel = false;
    bool has_tiles = false;    // its own statements use tile registers
    std::vector<Loop*> loops;  // open ones, outermost first
  };
  Region region_;
  // A loop of the machine: where addresses that follow its variable are computed, once each.
  struct Loop {
    llvm::PHINode* variable;
    llvm::BasicBlock* before;  // runs just before the loop
    llvm::Instruction* last;   // of the instructions at the head of the body that make addresses
    struct Sum {
      llvm::Value* pointer;
      llvm::Type* element;
      int64_t coefficient;
      Expr term;
      llvm::Value* value;  // pointer + term * coefficient
    };
    std::vector<Sum> sums;
    struct Step {
      llvm::PHINode* pointer;
      llvm::Type* element;
      int64_t coefficient;
    };
    std::vector<Step> steps;  // pointers that move along with the variable
  };
  struct LoopVar {
    llvm::Value* value;
    int depth;
  };
  std::map<const VarNode*, LoopVar> vars_;
  int depth_ = 0;
  RangeMap ranges_;
  Var lane_var_;            // of the vectorised loop around, or null
  int64_t lane_begin_ = 0;  // its value in lane 0 of this piece
  int64_t lanes_ = 0;
  llvm::Value* mask_ = nullptr;           // lanes whose guards hold; null: all
  llvm::Constant* piece_mask_ = nullptr;  // lanes that exist; null: all
  // In a tile: loads that were read along the rows and transposed, a vector of lanes for each row.
  std::map<const ExprNode*, std::vector<llvm::Value*>> tile_loads_;
  size_t tile_row_ = 0;
};

}  // namespace tuner::codegen
