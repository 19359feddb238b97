// Which statements of a kernel may run between the same two barriers, and what that leaves to be watched.
// Private to emulator.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "compiler_core/ir/stmt.h"

namespace tuner::emulation {

class Intervals {
 public:
  // `body`: what one thread does. Barriers stand only where all threads of the block come by.
  explicit Intervals(const Stmt& body);

  // Shared buffers that are both read and stored in the interval of `s`, a statement of the body without
  // barriers: a reader and a writer may meet there. Of the others only writers can meet.
  const std::set<const BufferNode*>& contended(const Stmt& s) const;

 private:
  // Walks `s`, which begins in interval `from`; the interval in which it ends.
  int walk(const Stmt& s, int from);
  void note(const Stmt& s, int interval);
  int fresh();
  int root(int interval) const;
  int unite(int a, int b);

  std::vector<int> parent_;  // intervals that a path without a barrier joins are one
  std::map<const StmtNode*, int> where_;
  std::vector<std::set<const BufferNode*>> read_, stored_, contended_;  // by interval; contended_ by root
};

}  // namespace tuner::emulation
