// prefetch, prefetch.l2: StmtKind::kIntrinsic of CPUs that asks the caches for the element its operand loads:
// all of them, or the second and those after it, for what is used later and would only push other things out
// of the first. It changes no value, and the element need not exist. Interpreters of a Program skip it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "compiler_core/ir/stmt.h"

namespace tuner {

enum class PrefetchInto : uint8_t { kL1, kL2 };

inline Stmt make_prefetch(Expr load, PrefetchInto nearest = PrefetchInto::kL1) {
  auto node = std::make_shared<StmtNode>();
  node->kind = StmtKind::kIntrinsic;
  node->name = nearest == PrefetchInto::kL1 ? "prefetch" : "prefetch.l2";
  node->operands = {std::move(load)};
  return node;
}

inline bool is_prefetch(const StmtNode& s) {
  return s.kind == StmtKind::kIntrinsic && (s.name == "prefetch" || s.name == "prefetch.l2");
}

}  // namespace tuner
