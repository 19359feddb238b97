// A nest of loops around one statement, as one instruction would do it. Private to this folder.
#pragma once

#include <vector>

#include "compiler_core/ir/stmt.h"

namespace tuner {

struct Nest {
  std::vector<Stmt> loops;  // outermost first
  std::vector<Expr> guards;
  Stmt leaf;  // a store or an intrinsic; null: more than that is inside
};

inline Nest nest_at(Stmt s) {
  Nest nest;
  for (;; s = s->body) {
    if (s->kind == StmtKind::kFor) {
      nest.loops.push_back(s);
    } else if (s->kind == StmtKind::kIf && s->else_body == nullptr) {
      nest.guards.push_back(s->condition);
    } else {
      if (s->kind == StmtKind::kStore || s->kind == StmtKind::kIntrinsic) nest.leaf = s;
      return nest;
    }
  }
}

}  // namespace tuner
