#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"

namespace tuner {

namespace graph {
struct Graph;
}
template <class W>
class OperatorFacts;

// Operators of a network as one kernel: what no other workload computes. compiler_core/graph/fragment.h tells
// what the text says and how operands are called. Made by program_workload() (workload.h).
struct ProgramWorkload {
  static constexpr std::string_view kOp = "program";
  static constexpr bool kMemoryBound = true;
  static constexpr bool kKeyIsText = true;  // its key is not made of words
  static const OperatorFacts<ProgramWorkload>& facts();
  std::string text;  // canonical
  std::shared_ptr<const graph::Graph> fragment;
  DType dtype = DType::kFloat32;  // of out
  int64_t flops = 0;
  std::vector<std::string> constant;  // operands that the text says are the same in every run
};

// The fragment as a workload. InvalidArgument: it is too large.
Result<ProgramWorkload> program_of_fragment(graph::Graph fragment);

}  // namespace tuner
