// libxsmm as a contestant: one kernel, generated for the shape, does a whole product on plain operands.
#pragma once

#include "tests/bench/cpu/bench_case.h"

namespace tuner {

// For plain products on one thread. `missing` gets the reason where the library generates no kernel for the
// shape, or is not built in.
void add_xsmm(const BenchCase& bench_case, int threads, int sets, std::vector<Contestant>& contestants,
              std::vector<MissingPeer>& missing);

}  // namespace tuner
