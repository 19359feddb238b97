// OpenBLAS and BLIS as contestants, each forced to its best kernels for this CPU and as it comes: both choose
// by tables that may be older than the CPU.
#pragma once

#include <memory>

#include "tests/bench/cpu/bench_case.h"

namespace tuner {

class Blas {
 public:
  // Loads what is there; `missing` gets the others with their reasons. `threads` is theirs for good.
  static std::unique_ptr<Blas> open(int threads, std::vector<MissingPeer>& missing);
  ~Blas();

  // For matmul, batches too, without bias, residual and activation: nothing else is added.
  void add(const BenchCase& bench_case, int sets, std::vector<Contestant>& contestants) const;

 private:
  struct Copy;
  Blas() = default;
  std::vector<std::unique_ptr<const Copy>> copies_;
};

}  // namespace tuner
