// Instrumenter: rewrites what one thread does between two barriers to the memory of the emulated Program, and
// puts the checks of every access before it. Private to emulator.
//
// A check is a statement of its own. It moves up out of loops whose variables it does not use, and past
// statements that do not store to the buffer it looks at: asking once more whether the same thread may read
// the same element in the same interval gives the same answer. In the inner loops of a matmul, with tiles of
// 8 x 8 a thread, this leaves 16 checks for 64 multiply-adds.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/emulator/faults.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::emulation {

// Who stored and who read each element last, as tags. Tags grow: those of the interval between two barriers
// (or of a launch, for global memory) are all at least its `base`, and `many` is the largest of them.
struct Shadow {
  Buffer written, read;  // read: null where nothing of this kernel both reads and stores
  Expr base;             // first tag of the interval
  Expr tag;              // of the thread that runs
  Expr many;             // stands for several readers
  Expr oldest;           // elements stored with an earlier tag count as never written
  FaultKind store_conflict = FaultKind::kRace;
};

// Where a buffer of the kernel lives in the emulated Program.
struct Place {
  Buffer storage;
  bool through_layout = false;  // one-dimensional, addressed through ir/layout.h
  bool per_thread = false;      // leading dimension: the thread
  Buffer flags;                 // int32, shape of the storage: 1 where written; registers that need it
  std::optional<Shadow> shadow;
};

// What is the same for all statements of a kernel.
struct KernelContext {
  const GpuKernel* kernel = nullptr;
  std::array<Var, 3> threads;  // never null
  int64_t block_threads = 1;
  Expr thread;                 // number in the block, x fastest
  Expr number;                 // of the running thread in the launch, from the `now` buffer; only with checks
  FaultLog* faults = nullptr;  // null: no checks
  std::map<const BufferNode*, Place> places;
  std::set<const BufferNode*> unproved;  // registers that need flags
};

class Instrumenter {
 public:
  explicit Instrumenter(KernelContext& context) : context_(context) {}

  // `s` with its checks, on the memory of the emulated Program; thread and block variables are still free.
  // `ranges` holds what is known where it stands. `s` has neither barriers nor intrinsics. Of shared buffers,
  // only `contended` ones may be both read and stored in this interval.
  Stmt run(const Stmt& s, const RangeMap& ranges, const std::set<const BufferNode*>& contended);
  // Gives a register buffer its place.
  Place& place_register(const Buffer& buffer, bool per_thread);
  // Poison in the buffer, and no element of it written; null when nothing needs to be done.
  Stmt reset_register(const Buffer& buffer, const Place& place) const;
  // The first thing that no kernel may contain.
  const Status& status() const { return status_; }

 private:
  struct Check {
    Stmt stmt;
    Buffer watched;  // a store to it must not be passed
    bool moves = true;
  };
  struct Piece {
    std::vector<Check> checks;  // to run before `stmt`
    Stmt stmt;
  };
  // The statement whose expressions are rewritten, and the checks that its loads ask for.
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
  int64_t site(FaultKind kind, const std::string& access, const Buffer& buffer);
  // Whether a reader and a writer may meet, so that readers must leave their tags.
  bool watches_readers(const Place& place, const Buffer& buffer) const;
  // Thread number in the launch of who left `tag`.
  Expr number_of(const Shadow& shadow, const Expr& tag) const;

  KernelContext& context_;
  const std::set<const BufferNode*>* contended_ = nullptr;  // of run()
  Status status_;
};

}  // namespace tuner::emulation
