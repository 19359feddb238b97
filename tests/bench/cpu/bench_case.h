// BenchCase: the operands and the right answer of one shape, in plain layouts, for every contestant the same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "templates/workload/tolerance.h"
#include "templates/workload/workload.h"
#include "tests/bench/cpu/contestant.h"

namespace tuner {

struct HostTensor {
  std::string name;
  std::vector<int64_t> shape;  // in the plain layout: NCHW, rows x columns
  std::vector<float> values;   // row-major, numbers of type `dtype`; none of an output
  DType dtype = DType::kFloat32;

  int64_t count() const;  // of elements
};

class BenchCase {
 public:
  // Operands drawn from `seed`; the answer in double precision takes about a second per 2 GFLOP.
  static Result<BenchCase> make(const Workload& workload, uint64_t seed);

  const Workload& workload() const { return workload_; }  // as ours sees it, blocked layouts too
  const HostTensor& operand(const std::string& name) const;
  bool has(const std::string& name) const { return operands_.contains(name); }
  // Sets of operands that together hold `rotate_bytes`; 1 when that is 0.
  int sets_for(int64_t rotate_bytes) const;

  // Runs `c` once from a poisoned output. The largest error in its tolerances; Failed when it is
  // above 1, naming the worst element.
  Result<double> check(const Contestant& c) const;

 private:
  Workload workload_;
  std::map<std::string, HostTensor> operands_;
  std::vector<double> answer_;
};

// The workload with NCHW on both sides.
Workload in_plain_layout(const Workload& workload);
// The layout an image has in memory, "NCHW16c"; "" of an operand that is no image.
std::string image_layout(const Workload& workload, std::string_view operand);

// `values` of an NCHW image in that layout and back. Sizes are those of `shape`, {N, C, H, W}.
std::vector<float> to_layout(const std::vector<float>& values, const std::vector<int64_t>& shape,
                             std::string_view layout);
std::vector<double> from_layout(const std::vector<double>& values, const std::vector<int64_t>& shape,
                                std::string_view layout);

}  // namespace tuner
