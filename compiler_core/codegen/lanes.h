// Lanes: which iterations of a vectorised loop one vector holds, and under which masks. Private to codegen.
//
// A vectorised loop is cut into pieces of whole vectors and evaluated piece by piece, with expressions that
// depend on its variable as vectors and its guards as masks; a last piece that fills no vector is a masked
// one.
#pragma once

#include "compiler_core/codegen/emit_scope.h"
#include "compiler_core/codegen/ir_writer.h"

namespace tuner::codegen {

class Lanes : private IrPart {
 public:
  // Iterations that one vector holds: the first `active` of `lanes` from `begin` on.
  struct Piece {
    int64_t begin, lanes, active;
  };

  Lanes(IrWriter& ir, Scope& scope) : IrPart(ir), scope_(scope) {}

  // What comes behind `begin`: `whole` lanes, or what the machine does best with the rest.
  Piece next_piece(int64_t begin, int64_t end, int64_t whole) const;
  void run_along(const Var& along, const Piece& piece);  // the variable is the lanes from here on
  void run_at(const Var& at, int64_t value);             // the variable is one number from here on
  void leave();

  bool depends(const Expr& e) const;         // on the lane
  llvm::Value* widen(llvm::Value* v) const;  // scalar -> all lanes
  void match(llvm::Value*& a, llvm::Value*& b) const;
  llvm::Value* with_mask(llvm::Value* of) const;  // `of` and the mask around
  llvm::Value* memory_mask() const;               // lanes that may touch memory; null: all

  Var var;                               // of the vectorised loop around, or null
  int64_t begin = 0;                     // its value in lane 0 of this piece
  int64_t count = 0;                     // of lanes; 0: no vectorised loop is around
  llvm::Value* mask = nullptr;           // lanes whose guards hold; null: all
  llvm::Constant* piece_mask = nullptr;  // lanes that exist; null: all

 private:
  Scope& scope_;
};

}  // namespace tuner::codegen
