// prefetch: a StmtKind::kIntrinsic of CPUs that asks the caches for the element its operand loads. It changes
// no value, and the element need not exist. Interpreters of a Program skip it.
#pragma once

#include <memory>
#include <utility>

#include "compiler_core/ir/stmt.h"

namespace tuner {

inline Stmt make_prefetch(Expr load) {
  auto node = std::make_shared<StmtNode>();
  node->kind = StmtKind::kIntrinsic;
  node->name = "prefetch";
  node->operands = {std::move(load)};
  return node;
}

inline bool is_prefetch(const StmtNode& s) { return s.kind == StmtKind::kIntrinsic && s.name == "prefetch"; }

}  // namespace tuner
