// Names for index arithmetic: which sums of an index stand still in a loop, and deserve a name there.
//
//   a[(m_outer*128 + m_inner*8 + i) * 512 + k_outer*16 + c]      i unrolled, k_outer a loop
//   ->  const int m_base = m_outer*128 + m_inner*8;              once in the kernel
//       a[(m_base + i) * 512 + k_outer*16 + c]
//
// An index is a sum of terms; a term stands still in the innermost loop that it depends on. Block and thread
// indices stand still in the whole kernel. Variables of unrolled loops are constants in the end: only
// divisions with them get names, for the reader.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

// The body after simplification under these, which all that follows speaks of. Never null.
Stmt simplified_body(const GpuKernel& kernel);

// How a loop is printed. A serial loop whose variable indexes registers is unrolled too: registers have no
// addresses, and the compiler would put the buffer into local memory.
bool prints_unrolled(const StmtNode& loop);

class IndexNames {
 public:
  struct Named {
    Var var;            // stands for
    Expr value;         // this, names of loops further out in it
    std::string about;  // "dimension 0 of out and a": where it is used
  };

  // Plans names for `body`, the simplified body of the kernel.
  IndexNames(const GpuKernel& kernel, const Stmt& body);

  // What to define at the beginning of the body of the loop over `loop`; null: of the kernel. In order.
  const std::vector<Named>& defined_in(const VarNode* loop) const;
  // `e` with named parts replaced by their names, its terms from the outside in.
  Expr apply(const Expr& e, const RangeMap& ranges) const;
  // Buffers whose accesses read best as one storage offset: a layout that mixes dimensions, or indices with
  // divisions that meet again in the offset.
  bool is_flat(const Buffer& buffer) const { return flat_.contains(buffer.get()); }
  // The storage offset of an access to a flat buffer.
  Expr apply_offset(const Buffer& buffer, const std::vector<Expr>& indices, const RangeMap& ranges) const;

 private:
  struct Place {
    Buffer buffer;
    int dimension = 0;
    bool whole = false;  // nothing else of that index stands still
    bool operator==(const Place&) const = default;
  };
  struct Candidate {
    LinearForm form;
    const VarNode* site = nullptr;
    int uses = 0;
    bool in_loop = false;    // used in a loop inside
    int below_division = 0;  // or compared: uses that are no index of their own
    std::vector<Place> places;
  };
  struct Known {
    LinearForm form;
    Var var;
  };
  void find_flat(const Stmt& body, const RangeMap& ranges, const std::vector<Buffer>& shared);
  void collect(const Stmt& s, RangeMap& ranges, int depth);
  void note(const Expr& e, const RangeMap& ranges, int depth, const Buffer& buffer, int dimension);
  void note_form(LinearForm form, int depth, const Buffer& buffer, int dimension);
  void note_loads(const Expr& e, const RangeMap& ranges, int depth);
  void choose();
  int order_of(const Expr& term) const;
  Expr rebuilt(LinearForm form, const RangeMap& ranges, size_t known_limit) const;
  std::string about(const Candidate& candidate) const;
  std::string wanted_name(const Candidate& candidate) const;

  std::set<const BufferNode*> flat_;
  std::map<const VarNode*, int> order_;  // outside in; what is not there never stands still
  std::set<int> unrolled_;               // orders of unrolled loops
  std::vector<Expr> divisions_;          // whose operands were looked at
  std::map<int, const VarNode*> sites_;  // order -> loop, null for the kernel
  int next_order_ = 1;                   // 0: blocks and threads
  std::vector<Candidate> candidates_;
  std::vector<Known> known_;
  std::map<const VarNode*, std::vector<Named>> defined_;
};

}  // namespace tuner::cuda
