// Fission of one kernel: cuts the code of a thread at barriers, intrinsics and asynchronous copies, and turns
// the pieces into loops over the threads of a block. Private to emulator.
#pragma once

#include <functional>
#include <vector>

#include "compiler_core/emulator/instrument.h"
#include "compiler_core/emulator/intervals.h"

namespace tuner::emulation {

inline Expr int32(int64_t value) { return int_imm(value, DType::kInt32); }

// Used only when the emulator checks for races; otherwise these buffers are null. An interval is the code
// between two barriers. Each thread has a number of its own in each interval, its tag, so that two accesses
// can be told to be of one interval. Each buffer has one element.
struct Clock {
  Buffer base;         // first tag of this interval, which lies between two barriers
  Buffer block_base;   // first tag of this block's first interval
  Buffer tag;          // base + thread
  Buffer now;          // int32: number of the running thread in the launch
  Buffer launch_tag;   // int32: the same plus the threads of earlier launches
  int64_t stride = 1;  // tags per interval: one per thread, and one that stands for "more than one thread"
  int64_t first = 1;   // launch_tag of thread 0
};

class Fission {
 public:
  // `context` and `clock` must outlive this. `block` is the number of the running block in the grid.
  // `reverse_threads` runs the threads of each loop from the last to the first: a right kernel does not care.
  Fission(KernelContext& context, const Clock& clock, Expr block, bool reverse_threads)
      : context_(context),
        clock_(clock),
        block_(std::move(block)),
        reverse_(reverse_threads),
        intervals_(*context.kernel),
        instrumenter_(context) {
    for (const Buffer& b : context.kernel->shared) shared_.insert(b.get());
  }

  // Returns the code of one block, start to end; blockIdx variables are still free in it. `ranges` has what
  // is known of them. InvalidConfig if threads could pass different barriers, or for an intrinsic that is not
  // known. To be called once.
  Result<Stmt> run(const RangeMap& ranges);
  // The buffers that the result uses; the caller allocates them around it.
  const std::vector<Buffer>& scratch() const { return scratch_; }

 private:
  // The threads that take part: all, or those whose element in `chosen` is not 0.
  struct Crew {
    Buffer chosen;   // int32 [threads]; null: all
    Expr condition;  // the condition that chose them, for messages
  };

  Stmt distribute(const Stmt& s, const RangeMap& ranges, const Crew& crew);
  Stmt distribute_seq(const StmtNode& s, const RangeMap& ranges, const Crew& crew);
  Stmt distribute_if(const Stmt& s, const RangeMap& ranges, const Crew& crew);
  Stmt distribute_branch(const Stmt& body, const Expr& condition, const RangeMap& ranges, const Crew& crew);
  // Runs `s`, which has no barrier, for all threads of the crew; `contended` is as in Instrumenter::run.
  Stmt interval(const Stmt& s, const std::set<const BufferNode*>& contended, const RangeMap& ranges,
                const Crew& crew);
  // Runs what the instrumenter made for all threads of the crew.
  Stmt run_by_threads(Stmt body, const Crew& crew);
  Stmt thread_loops(Stmt body);
  Stmt barrier(const StmtNode& s, const Crew& crew);
  Stmt next_interval();
  Stmt choose(const Buffer& chosen, const Expr& condition, const RangeMap& ranges, const Crew& crew);
  bool is_uniform(const Expr& e) const;

  // --- async.cpp: asynchronous copies ---
  Stmt async(const Stmt& s, const RangeMap& ranges, const Crew& crew);
  Stmt deliver(int64_t in_flight);
  Stmt deliver_where(const std::function<Expr(const Expr&)>& arrived,
                     const std::function<Expr(const Expr&)>& tag) const;
  Stmt nothing_in_flight() const;

  // --- fetch.cpp: copies by TMA, and the barriers they arrive at ---
  Stmt engine(const Stmt& s, const RangeMap& ranges, const Crew& crew);
  Stmt init(const StmtNode& s, const RangeMap& ranges, const Crew& crew);
  Stmt expect(const StmtNode& s, const RangeMap& ranges, const Crew& crew);
  Stmt fetch(const StmtNode& s, const RangeMap& ranges, const Crew& crew);
  Stmt await(const StmtNode& s, const RangeMap& ranges);
  Stmt fetched_box(const StmtNode& s, const Buffer& flat) const;
  Stmt fetched_row(const StmtNode& s, const Buffer& flat);
  Stmt look_at_barrier(const Expr& barrier, const RangeMap& ranges, const Crew& crew);
  Stmt barrier_fault(FaultKind kind, const StmtNode& s, const Expr& wrong);
  Stmt no_barriers() const;
  Stmt nothing_left();

  // --- collective.cpp: intrinsics ---
  Stmt collective(const StmtNode& s, const RangeMap& ranges, const Crew& crew);
  Status check_collective(const StmtNode& s) const;
  Stmt move_fragment(const StmtNode& s, size_t operand, const Buffer& tile, bool gather,
                     const RangeMap& ranges, const Crew& crew);
  Stmt run_meaning(const StmtNode& s, const std::vector<Buffer>& tiles, const Crew& crew);
  // Products that go on behind their statement: they hold their operands in memory until a statement lands
  // them.
  Stmt hold(const StmtNode& s, const Crew& crew);
  Stmt land(const StmtNode& s, const RangeMap& ranges, const Crew& crew);
  // Runs what `f` makes of an operand's elements in memory, each by the lane whose share it is.
  Stmt for_share(const StmtNode& s, size_t operand, const Crew& crew,
                 const std::function<Stmt(const Buffer&, const std::vector<Expr>&)>& f);

  Buffer make_scratch(std::string name, DType type, std::vector<int64_t> shape);
  template <class... Args>
  Stmt refuse(const Args&... args) {
    if (status_.is_ok()) status_ = invalid_config(context_.kernel->name, ": ", args...);
    return nullptr;
  }

  KernelContext& context_;
  const Clock& clock_;
  const Expr block_;
  const bool reverse_;
  const Intervals intervals_;
  std::set<const BufferNode*> shared_;
  Instrumenter instrumenter_;
  std::vector<Buffer> scratch_;
  std::vector<Buffer> flat_;  // buffers as rows of storage, between which fetches move
  Status status_;
};

// Returns the largest number of barriers that one thread passes.
int64_t most_barriers(const Stmt& s);

}  // namespace tuner::emulation
