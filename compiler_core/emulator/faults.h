// FaultLog: the fault sites of an emulated Program, and the IR that counts faults at each. Private to
// emulator.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/emulator/emulator.h"

namespace tuner::emulation {

class FaultLog {
 public:
  // int32 [sites, 4]; its shape grows with each new site until the Program is finished.
  const Buffer& buffer() const { return buffer_; }
  const std::vector<FaultSite>& sites() const { return sites_; }

  // Adds a site and returns its number.
  int64_t add(FaultSite site);
  // Counts one fault at `site`. The first fault also stores `element` (flat, or the offending index), the
  // running thread, and the thread before.
  Stmt record(int64_t site, const Expr& element, const Expr& now, const Expr& before) const;
  // Sets all counts to zero.
  Stmt reset() const;

 private:
  std::shared_ptr<BufferNode> node_ = std::make_shared<BufferNode>(
      BufferNode{.name = "faults", .dtype = DType::kInt32, .shape = {1, 4}, .role = BufferRole::kOutput});
  Buffer buffer_ = node_;
  std::vector<FaultSite> sites_;
};

}  // namespace tuner::emulation
