// What templates of any fragment of a network share (program_cpu, program_cuda and others that know nothing
// of the math): its stages, and which of them become part of what reads them.
//
// A fragment may be anything, so no primitive may be relied on: each step is tried, and left out where it is
// refused. What remains is plain loops, which are always right.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/schedule/schedule.h"

namespace tuner::fragment {

// Runs f on a copy, which takes the place of s if nothing was refused.
template <class F>
bool attempt(Schedule& s, const F& f) {
  Schedule copy = s;
  f(copy);
  if (copy.refused()) return false;
  s = std::move(copy);
  return true;
}

// A stage of the math: the store of its buffer, and how often it runs.
struct Stage {
  Buffer buffer;
  const StmtNode* store = nullptr;  // of the Program
  double runs = 0;

  bool is_sum() const { return store->reduce != ReduceOp::kNone; }
};
// In order. A buffer that several statements store has several.
std::vector<Stage> stages_of(const Program& program);

// Stages become part of what reads them: those that compute little, or whose elements are read about once.
// Not those that are read several times where they are: copies of copies would double with every stage of a
// chain. `all`: also those that compute much.
void put_inside(Schedule& s, bool all);

// Among the loads of the value, those that run along this loop in memory, less those that jump.
int along(const StmtNode& store, const Var& var);

}  // namespace tuner::fragment
