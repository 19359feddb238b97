// KernelPrinter: one kernel as CUDA C++: its frame, statements and loops. PlaceText writes elements and
// addresses, PrintedLines lines and comments. print.cpp puts kernels into a file.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/codegen_cuda/expr_text.h"
#include "compiler_core/codegen_cuda/index_names.h"
#include "compiler_core/codegen_cuda/names.h"
#include "compiler_core/codegen_cuda/place_text.h"
#include "compiler_core/codegen_cuda/printed_lines.h"
#include "compiler_core/codegen_cuda/round_variables.h"
#include "compiler_core/codegen_cuda/step_masks.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

class KernelPrinter {
 public:
  explicit KernelPrinter(const GpuKernel& kernel);

  // The function with the comment above it, and before it the tables that it reads. Once.
  std::string print();
  // The text calls index_div or index_mod.
  bool uses_floor_helpers() const { return expr_text_.uses_floor_helpers(); }
  bool uses_half_helpers() const { return expr_text_.uses_half_helpers(); }
  // The text calls load_helper().
  bool uses_load_if() const { return uses_load_if_; }
  // The text calls store_helper().
  bool uses_store_if() const { return uses_store_if_; }
  // Widths of the asynchronous copies in it, in bytes: it calls async_helper() of each.
  const std::set<int64_t>& async_bytes() const { return async_bytes_; }
  // Dimensions of the maps that it fetches boxes of (0: without a map): it calls fetch_helper() of each, and
  // barrier_helpers().
  const std::set<size_t>& fetched_ranks() const { return fetched_ranks_; }
  // Types of the operands of its dot products: it calls dot_helper() of each.
  const std::set<std::pair<DType, DType>>& dot_types() const { return dot_types_; }

 private:
  // --- the frame ---
  void head_comment();
  void describe_memory();
  void signature();
  void define_indices(RangeMap& ranges);
  void define_shared();
  void define_names(const VarNode* loop, RangeMap& ranges);

  // --- statements. `told`: a comment above says what this nest does ---
  void stmt(const Stmt& s, const RangeMap& ranges, bool told);
  void loop(const Stmt& s, const RangeMap& ranges, bool told);
  void scalar_loop(const Stmt& s, const RangeMap& ranges, bool told);
  void guard(const Stmt& s, const RangeMap& ranges, bool told);
  void open_guard(const std::string& condition, const std::string& why);
  void store(const StmtNode& s, const RangeMap& ranges);
  void allocate(const Stmt& s, const RangeMap& ranges);
  void intrinsic(const StmtNode& s, const RangeMap& ranges);
  std::vector<Expr> of_lane(const IntrinsicOperand& o, const Expr& operand, int64_t reg) const;
  void unit_run(const Stmt& s, const RangeMap& ranges, bool told);
  void barrier(const Stmt& s);

  // --- vectorized loops (print_vector.cpp) ---
  struct VectorLoad;
  void vector_loop(const Stmt& s, const RangeMap& ranges, bool told);
  bool moves_vectors(const Stmt& s, const Var& lane, int64_t lanes, const RangeMap& ranges) const;
  bool worth_vectors(const Stmt& s, const Var& lane, int64_t lanes, const RangeMap& ranges) const;
  void vector_stmt(const Stmt& s, const Var& lane, int64_t lanes, const RangeMap& ranges);
  void vector_store(const StmtNode& s, const Var& lane, int64_t lanes, const RangeMap& ranges);
  std::vector<VectorLoad> vector_loads(const Expr& value, const Var& lane, int64_t lanes,
                                       const RangeMap& ranges) const;
  std::string vector_address(const Buffer& buffer, const std::vector<Expr>& indices, const Var& lane,
                             const RangeMap& ranges, const std::string& type);

  // --- asynchronous copies (print_async.cpp) ---
  void async(const Stmt& s, const RangeMap& ranges);
  void async_loop(const Stmt& s, const RangeMap& ranges);
  void async_lanes(const Stmt& s, const Var& lane, int64_t lanes, const RangeMap& ranges);
  void async_store(const StmtNode& s, const Var& lane, int64_t lanes, const RangeMap& ranges);

  // --- copies by TMA (print_fetch.cpp) ---
  // Variables of the text that go with a loop: the stage that is waited for, the one before it, the parity of
  // its phase.
  struct Stages {
    int64_t count = 0;
    Expr stage, before, parity;
    std::string stage_name, before_name, parity_name;  // empty: not used
  };
  void engine(const StmtNode& s, const RangeMap& ranges);
  void fetch(const StmtNode& s, const RangeMap& ranges);
  // A pipelined loop counts stages and phases in variables of its own, and tiles of units by what stands
  // still of their addresses: no divisions, and half as many instructions.
  std::optional<Stages> begin_stages(const StmtNode& loop);
  void end_stages(const Stages& stages);
  void name_unit_tiles(const StmtNode& loop, const RangeMap& ranges);
  // What stands still of an element's place in a loop, and what is added; both in elements.
  std::pair<Expr, Expr> parted_place(const Expr& element, const std::set<const VarNode*>& inner,
                                     const RangeMap& ranges) const;
  std::string unit_tile(const IntrinsicOperand& o, const Expr& operand, const RangeMap& ranges);
  bool is_first_thread_alone(const StmtNode& guard) const;
  // Threads along x are whole warps, of a kernel that fetches.
  bool has_uniform_rows() const;
  void define_warp();

  // --- loads and stores under a condition (print_loads.cpp) ---
  // A load from there, under the condition, can be a call of load_helper(): whoever prints it asks first.
  bool is_load_if(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& condition,
                  const RangeMap& ranges) const;
  std::string load_if(const Expr& condition, const std::string& address, const std::string& otherwise,
                      const RangeMap& ranges);
  // The condition with & in place of &&: what stands behind && would be computed behind a branch.
  std::string without_branch(const Expr& condition, const RangeMap& ranges);
  bool stores_registers(const Stmt& s, const RangeMap& ranges) const;
  // The guard can be a condition of calls of store_helper(): all that stands under it are stores to shared
  // memory.
  bool is_store_if(const Stmt& guard, const RangeMap& ranges) const;
  // Gives the condition a name that stores ask from here on, those of `guard_` too. Returns the guard around.
  std::string begin_stores(const Expr& condition, const std::string& why, const RangeMap& ranges);
  // "to = value;", or a call that asks the guard.
  std::string stored(const std::string& to, const std::string& value);
  // select(condition, load, constant) with its names as such a call.
  std::optional<std::string> guarded_load(const Expr& value, const RangeMap& ranges);

  // --- dot products (dot_words.cpp) ---
  void dot(const StmtNode& s, const RangeMap& ranges);

  const GpuKernel& kernel_;
  std::vector<StepMask> masks_;
  Stmt body_;
  IndexNames index_names_;
  Names names_;
  ExprText expr_text_;
  PlaceText places_;
  PrintedLines text_;
  RoundVariables rounds_;
  std::map<const StmtNode*, std::string> barrier_comments_;
  bool fences_tiles_ = false;           // a unit reads by itself what threads wrote to shared memory
  bool fetches_ = false;                // by TMA
  std::vector<std::string> map_names_;  // of kernel_.tensor_maps
  std::string warp_;                    // the number of the warp, where one fetches; empty: not needed
  struct UnitTile {
    Buffer buffer;
    Expr fixed;  // of its place
    std::string name;
  };
  std::vector<UnitTile> unit_tiles_;     // named before the loop around
  std::set<const VarNode*> tile_inner_;  // variables of that loop, and of those below it
  bool in_run_ = false;                  // of its statements
  std::set<const BufferNode*> stored_;   // by the kernel
  bool copies_ = false;                  // in the body of an asynchronous copy
  std::string guard_;                    // that stores to shared memory ask; empty: none
  std::string nowhere_;                  // the name of the kernel's shared_nowhere
  bool uses_load_if_ = false, uses_store_if_ = false;
  std::set<int64_t> async_bytes_;
  std::set<size_t> fetched_ranks_;
  std::set<std::pair<DType, DType>> dot_types_;
};

// Bytes at whose multiple shared memory begins: the widest vector, or what a unit that fetches tiles or
// brings them asks for.
int64_t shared_alignment(const Stmt& body);
// True if threads store, or copy, what a unit fetches by itself: it must be told with a fence.
bool threads_write_tiles(const Stmt& body);
// True for nothing but statements of one unit that works by itself; for nothing but waits for products that
// were started.
bool is_unit_run(const Stmt& s);
bool only_lands(const Stmt& s);
// The function that copies so many bytes asynchronously.
std::string async_helper(int64_t bytes);
// What a tensor map is to CUDA, and functions for barriers that copies arrive at.
const char* barrier_helpers();
// True if copies by TMA stand in it.
bool fetches_by_itself(const Stmt& body);
// The function that fetches a box of so many dimensions; of 0, what lies in a row.
std::string fetch_helper(size_t rank);
// The function that loads under a condition.
const char* load_helper();
// The function that stores to shared memory under a condition.
const char* store_helper();
// The function that adds a dot product of such bytes.
std::string dot_helper(DType a, DType b);

}  // namespace tuner::cuda
