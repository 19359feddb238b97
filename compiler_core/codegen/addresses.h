// Addresses: where an element lies, and the pointers to it. Private to codegen.
//
// An index is a sum of terms. Terms that change in a loop are added at the head of that loop, once for all
// accesses that share them. In the innermost loop a pointer moves along. What differs between lanes stands
// apart.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/codegen/emit_scope.h"
#include "compiler_core/codegen/ir_writer.h"
#include "compiler_core/codegen/lanes.h"

namespace tuner::codegen {

// Elements of dimension d of a register buffer: the last one larger than 1, which vectors run along, is
// padded to whole vectors of any target.
inline int64_t register_extent(const std::vector<int64_t>& shape, size_t d) {
  bool is_row = shape[d] > 1;
  for (size_t inner = d + 1; inner < shape.size(); ++inner) is_row = is_row && shape[inner] == 1;
  return is_row ? (shape[d] + 15) / 16 * 16 : shape[d];
}

class Addresses : private IrPart {
 public:
  struct Access {
    enum Kind { kUniform, kContiguous, kStrided } kind = kUniform;
    LinearForm form;     // flat offset, in elements, without the terms of the vector variable
    int64_t stride = 0;  // elements a lane; only when kStrided and affine
    std::vector<std::pair<Expr, int64_t>> lane_terms;  // other terms that differ between lanes
    bool affine() const { return lane_terms.empty(); }
  };

  // `emit` makes the value of an index, where the writer stands.
  Addresses(IrWriter& ir, Scope& scope, const Lanes& lanes, std::function<llvm::Value*(const Expr&)> emit)
      : IrPart(ir), scope_(scope), lanes_(lanes), emit_(std::move(emit)) {}

  Access analyze(const Buffer& buffer, const std::vector<Expr>& indices) const;
  llvm::Value* pointer(const Buffer& buffer, const Access& access);  // of lane 0
  llvm::Value* lane_pointers(const Buffer& buffer, const Access& access);
  // The lanes' elements, where each lies from `access`, if that is known now; empty if not.
  std::vector<int64_t> lane_offsets(const Access& access) const;
  // Bytes the address is a proven multiple of, up to what one vector of all lanes can use.
  llvm::Align alignment(const Buffer& buffer, const Access& access, int64_t lanes) const;
  // Register buffers have no address: every index must be known now, or it is refused.
  bool register_offset(const Buffer& buffer, const Access& access);

 private:
  llvm::Value* base_pointer(const Buffer& buffer);
  // The innermost one that the term changes in; null: not known ahead.
  OpenLoop* loop_of(const Expr& term) const;
  llvm::Value* moved(llvm::Value* pointer, llvm::Type* element, const Expr& term, int64_t coefficient,
                     OpenLoop& loop);

  Scope& scope_;
  const Lanes& lanes_;
  std::function<llvm::Value*(const Expr&)> emit_;
};

}  // namespace tuner::codegen
