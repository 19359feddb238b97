// Finds which statements of a kernel may run between the same two barriers, and so which buffers must be
// watched. Private to emulator.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "compiler_core/lower/gpu.h"

namespace tuner::emulation {

class Intervals {
 public:
  // All threads of the block must reach each barrier.
  explicit Intervals(const GpuKernel& kernel);

  // Returns the shared buffers that are both read and stored in the interval of `s`, a statement without
  // barriers: a reader and a writer may meet there. In other buffers only writers can meet. Stored is also
  // what lies on a buffer that is.
  const std::set<const BufferNode*>& contended(const Stmt& s) const;

 private:
  // Walks `s`, which begins in interval `from`; returns the interval in which it ends.
  int walk(const Stmt& s, int from);
  void note(const Stmt& s, int interval);
  int fresh();
  int root(int interval) const;
  int unite(int a, int b);

  std::set<const BufferNode*> copied_;  // asynchronously: they arrive at waits
  std::vector<int> parent_;             // intervals joined by a path without a barrier are one
  std::map<const StmtNode*, int> where_;
  std::vector<std::set<const BufferNode*>> read_, stored_, contended_;  // per interval; contended_ per root
};

}  // namespace tuner::emulation
