// Instrumenter: rewrites what one thread does between two barriers to the memory of the emulated Program, and
// puts a check before every access. Private to emulator.
//
// A check is a statement of its own. It moves up out of loops whose variables it does not use, and past
// statements that do not store to the buffer it examines: checking again whether the same thread may read the
// same element in the same interval gives the same answer. In the inner loops of a matmul with 8 x 8 tiles
// per thread, 16 checks remain for 64 multiply-adds.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/emulator/faults.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::emulation {

// Records, as tags, who last stored and who last read each element. Tags grow: those of an interval between
// two barriers (for global memory, of a launch) are all at least its `base`, and `many` is the largest of
// them.
struct Shadow {
  Buffer written, read;  // read: null if nothing in this kernel both reads and stores
  Expr base;             // first tag of the interval
  Expr tag;              // the running thread's tag
  Expr many;             // stands for several readers
  Expr oldest;           // elements stored with a lower tag count as never written
  FaultKind store_conflict = FaultKind::kRace;
};

// Asynchronous copies under way. They deliver at the wait that covers them and not before; until then the
// element holds poison.
struct InFlight {
  // int32: of which commit, from 1, or at which barrier it arrives, from -1 down; 0: no copy is under way to
  // this element.
  Buffer group;
  Buffer thread;    // int32: number in the block of the thread that copies
  Buffer arriving;  // what will be there
};

// Another shared buffer that has bytes in common: a store to this one ends what lay there.
struct SharedBytes {
  Buffer buffer;
  int64_t distance = 0;  // bytes from the start of that one to the start of this
};

// Where a buffer of the kernel lives in the emulated Program. Shared buffers that lie on each other have
// storage of their own.
struct Place {
  Buffer storage;
  // A row of elements, addressed through ir/layout.h; of an argument in as many dimensions as it has.
  bool through_layout = false;
  bool per_thread = false;  // the leading dimension is the thread
  // int32 in the shape of the storage: 1 where written; only for registers that need it.
  Buffer flags;
  std::optional<Shadow> shadow;
  std::vector<SharedBytes> lies_on;
  std::optional<InFlight> in_flight;  // of shared buffers that are copied to asynchronously
  // int32, of shared buffers that are read by products which go on behind their statement (Intrinsic::Way):
  // which of these statements reads the element, counted from 1 in the block; 0: none that is under way.
  Buffer held;
};

// Barriers that copies by TMA arrive at: a shared buffer of them. All int32, an element a barrier.
struct ArrivalBarriers {
  Buffer arrivals;    // of a phase
  Buffer pending;     // arrivals that this phase waits for
  Buffer bytes;       // that this phase was told of
  Buffer on_way;      // bytes of copies under way
  Buffer phases;      // that are over
  int64_t first = 0;  // number of its first barrier in the kernel
};

// What all statements of a kernel share.
struct KernelContext {
  const GpuKernel* kernel = nullptr;
  std::array<Var, 3> threads;  // never null
  int64_t block_threads = 1;
  Expr thread;                 // number in the block; x varies fastest
  Expr number;                 // number of the running thread in the launch, from the `now` buffer; only with
                               // checks
  FaultLog* faults = nullptr;  // null: no checks
  Buffer groups;               // int32, one element: commits of the block so far; only with checks
  Buffer started;              // int32, one element: products of the block started so far; only with checks
  std::map<const BufferNode*, Place> places;
  std::map<const BufferNode*, ArrivalBarriers> barriers;  // only with checks
  std::set<const BufferNode*> unproved;                   // registers that need flags
};

// Indices of the element at a row-major place; beyond the end in the first dimension.
std::vector<Expr> unravelled(const Expr& flat, const std::vector<int64_t>& shape);
// Row-major place among all elements.
Expr flat_element(const Buffer& buffer, const std::vector<Expr>& indices);

class Instrumenter {
 public:
  explicit Instrumenter(KernelContext& context) : context_(context) {}

  // Returns `s` with its checks, on the memory of the emulated Program; thread and block variables are still
  // free. `ranges` holds what is known at its place. `s` must have neither barriers nor intrinsics. Among
  // shared buffers, only `contended` ones may be both read and stored in this interval.
  Stmt run(const Stmt& s, const RangeMap& ranges, const std::set<const BufferNode*>& contended);
  // The same for the body of an asynchronous copy.
  Stmt run_copy(const Stmt& s, const RangeMap& ranges, const std::set<const BufferNode*>& contended);
  // The same for what a fetch brings, which arrives at barrier `number` of the kernel.
  Stmt run_fetch(const Stmt& s, const RangeMap& ranges, const std::set<const BufferNode*>& contended,
                 const Expr& number);
  // Creates the place of a register buffer.
  // What a thread does to its element of a tile: from now on products under way read it, by the number
  // `started`; or no more, where kNotStarted says whether they did (with `before`: and were not started
  // last).
  Stmt hold(const Buffer& buffer, const std::vector<Expr>& indices) const;
  Stmt release(const Buffer& buffer, const std::vector<Expr>& indices) const;
  Stmt released_check(const Buffer& buffer, const std::vector<Expr>& indices, bool before,
                      const std::string& access);

  Place& place_register(const Buffer& buffer, bool per_thread);
  // Returns code that poisons the buffer and marks all its elements as unwritten; null if none is needed.
  Stmt reset_register(const Buffer& buffer, const Place& place) const;
  // The first error: something that no kernel may contain.
  const Status& status() const { return status_; }

 private:
  struct Check {
    Stmt stmt;
    Buffer watched;  // the check must not move past a store to this buffer
    bool moves = true;
  };
  struct Piece {
    std::vector<Check> checks;  // run these before `stmt`
    Stmt stmt;
  };
  // The statement whose expressions are rewritten, and the checks that its loads need.
  struct Reader {
    std::string within;
    std::vector<Check>* checks;
  };
  struct Bounds {
    Expr inside;  // undefined: proved
    Stmt report;  // null: proved
  };

  Piece piece(const Stmt& s, const RangeMap& ranges);
  Piece loop_piece(const Stmt& s, const RangeMap& ranges);
  Piece if_piece(const Stmt& s, const RangeMap& ranges);
  Piece seq_piece(const Stmt& s, const RangeMap& ranges);
  Piece allocate_piece(const Stmt& s, const RangeMap& ranges);
  Piece store_piece(const Stmt& s, const RangeMap& ranges);
  Expr rewrite(const Expr& e, const RangeMap& ranges, const std::vector<Expr>& guards, const Reader& reader);
  Expr rewrite_load(const Expr& e, const RangeMap& ranges, const std::vector<Expr>& guards,
                    const Reader& reader);
  const Place* place_of(const Buffer& buffer);
  std::vector<Expr> storage_indices(const Place& place, const Buffer& buffer,
                                    const std::vector<Expr>& indices) const;
  Bounds bounds(const Buffer& buffer, const std::vector<Expr>& indices, const std::vector<Expr>& rewritten,
                const RangeMap& ranges, const std::string& access);
  Stmt read_check(const Place& place, const Buffer& buffer, const std::vector<Expr>& indices,
                  const std::string& access);
  Stmt store_check(const Place& place, const Buffer& buffer, const std::vector<Expr>& indices,
                   const std::string& access);
  // Whether `s` stores to the buffer, or to one that lies on it.
  bool touches(const Stmt& s, const Buffer& buffer) const;
  Stmt overwrite(const Place& place, const Buffer& buffer, const std::vector<Expr>& indices,
                 const std::string& access);
  Stmt held_check(const Place& place, const Buffer& buffer, const std::vector<Expr>& indices,
                  const std::string& access);
  Stmt in_flight_check(const Place& place, const Buffer& buffer, const std::vector<Expr>& indices,
                       const std::string& access);
  Stmt issue(const Place& place, const std::vector<Expr>& at, const Expr& value) const;
  int64_t site(FaultKind kind, const std::string& access, const Buffer& buffer);
  // True if a reader and a writer may meet, so that readers must leave their tags.
  bool watches_readers(const Place& place, const Buffer& buffer) const;
  // Returns the number, in the launch, of the thread that left `tag`.
  Expr number_of(const Shadow& shadow, const Expr& tag) const;

  KernelContext& context_;
  const std::set<const BufferNode*>* contended_ = nullptr;  // argument of run()
  bool copies_ = false;                                     // in run_copy(), run_fetch()
  Expr group_;                                              // of a copy
  Status status_;
};

}  // namespace tuner::emulation
