// Names for index arithmetic: which sums of an index stand still in a loop, and deserve a name there.
//
//   a[(m_outer*128 + m_inner*8 + i) * 512 + k_outer*16 + c]      i unrolled, k_outer a loop
//   ->  const int m_base = m_outer*128 + m_inner*8;              once in the kernel
//       a[(m_base + i) * 512 + k_outer*16 + c]
//
// An index is a sum of terms; a term stands still in the innermost loop that it depends on. Block and thread
// indices stand still in the whole kernel. Variables of unrolled loops are constants in the end: only
// divisions with them get names, for the reader.
//
// Asynchronous copies in a loop go over again what each of their rounds has of divisions: an image's pixels,
// row by row. What stands still of it is kept in registers, an array over the rounds, which the compiler does
// not do by itself.
//
//   for k_tile                                                    int data_place[4];
//     unrolled round: copy x[(t + round*32) / 7 * 64 + k_tile/6]  for round: data_place[round] = (t +
//                                                                 round*32) / 7 * 64; for k_tile: copy
//                                                                 x[data_place[round] + k_tile/6]
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/codegen_cuda/copy_steps.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

class IndexNames {
 public:
  struct Named {
    Var var;            // stands for
    Expr value;         // this, names of loops further out in it
    std::string about;  // "dimension 0 of out and a": where it is used
    Stmt over;          // the loop of rounds that it has an element for; null: it is one number
    // The loops that make a step, outermost first, and its value in each: to be looked up. Empty: to be
    // computed.
    Steps steps;
    std::vector<int64_t> values;
  };

  // Plans names for `body`, the simplified body of the kernel.
  IndexNames(const GpuKernel& kernel, const Stmt& body);

  // What to define at the beginning of the body of the loop over `loop`; null: of the kernel. In order.
  const std::vector<Named>& defined_in(const VarNode* loop) const;
  // Arrays to define before the serial loop over `loop`. In order.
  const std::vector<Named>& defined_before(const VarNode* loop) const;
  // Whether what is asked for stands before the loops that it speaks of, where names of their bodies are not
  // there yet.
  void look_ahead(bool ahead) { ahead_ = ahead; }
  // `e` with named parts replaced by their names, its terms from the outside in.
  Expr apply(const Expr& e, const RangeMap& ranges) const;
  // Whether accesses read best as one storage offset (flat_buffers.h).
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
    bool in_loop = false;             // used in a loop inside
    Stmt over;                        // of an array: the loop of rounds
    const VarNode* before = nullptr;  // and the loop that it is defined before
    Steps steps;                      // of what depends on the step alone
    int below_division = 0;           // or compared: uses that are no index of their own
    std::vector<Place> places;
  };
  struct Known {
    LinearForm form;
    Var var;
    const VarNode* site;
  };
  void collect(const Stmt& s, RangeMap& ranges, int depth);
  void note(const Expr& e, const RangeMap& ranges, int depth, const Buffer& buffer, int dimension);
  void note_form(const LinearForm& form, int depth, const Buffer& buffer, int dimension);
  void note_rounds(const LinearForm& form, const Buffer& buffer, int dimension);
  Candidate& candidate(LinearForm form);
  static void add_place(Candidate& candidate, const Place& place);
  void note_loads(const Expr& e, const RangeMap& ranges, int depth);
  void choose();
  size_t step_of(const Var& var) const;
  static void tabulate(Named& named, const Candidate& candidate);
  int order_of(const Expr& term) const;
  Expr rebuilt(LinearForm form, const RangeMap& ranges, bool ahead) const;
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
  std::map<const VarNode*, std::vector<Named>> defined_, arrays_;
  // While collecting: the loops that make a step, from the first serial one; the rounds of an asynchronous
  // copy in them.
  Steps steps_;
  bool in_copy_ = false;
  bool ahead_ = false;
  std::vector<Stmt> rounds_;
};

}  // namespace tuner::cuda
