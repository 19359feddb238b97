// PlaceText: how the text of one kernel writes elements, their addresses, and values, by the names that index
// sums have.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/codegen_cuda/expr_text.h"
#include "compiler_core/codegen_cuda/index_names.h"
#include "compiler_core/codegen_cuda/names.h"

namespace tuner::cuda {

class PlaceText {
 public:
  // All of them must outlive this.
  PlaceText(Names& names, const IndexNames& index_names, ExprText& expr_text)
      : names_(names), index_names_(index_names), expr_text_(expr_text) {}

  // A parameter or a buffer in shared memory gets its name.
  void declare(const Buffer& buffer);
  // A loop that is not unrolled begins, and ends: addresses keep what its variable changes apart.
  void enter_loop(const Var& var) { serial_.insert(var.get()); }
  void leave_loop(const Var& var) { serial_.erase(var.get()); }

  // Indices with their names, swizzled buffers as flat ones: what ExprText prints.
  Expr named(const Expr& e, const RangeMap& ranges) const;
  // What holds is known of the indices and of the names that stand for parts of them.
  RangeMap assuming(const RangeMap& ranges, const Expr& condition) const;

  std::string element(const Buffer& buffer, const std::vector<Expr>& indices, const RangeMap& ranges);
  std::string address(const Buffer& buffer, const std::vector<Expr>& indices, const RangeMap& ranges);
  std::string value(const Expr& e, const RangeMap& ranges);

 private:
  std::pair<Buffer, std::vector<Expr>> named_place(const Buffer& buffer, const std::vector<Expr>& indices,
                                                   const RangeMap& ranges) const;

  Names& names_;
  const IndexNames& index_names_;
  ExprText& expr_text_;
  std::map<const BufferNode*, Buffer> flat_;  // of IndexNames::is_flat() buffers: one dimension, plain
  std::set<const VarNode*> serial_;           // loops around that are not unrolled
};

}  // namespace tuner::cuda
