// Our kernels as contestants: tuned configs, compiled in this process as `tuner build` does.
#pragma once

#include <memory>
#include <string>

#include "compiler_core/runtime/thread_pool.h"
#include "compiler_core/target.h"
#include "templates/schedule_template.h"
#include "tests/bench/cpu/bench_case.h"
#include "tests/bench/cpu/interleave.h"
#include "tests/bench/cpu/known_configs.h"

namespace tuner {

struct OurChoice {
  Algorithms algorithms = Algorithms::kAny;
  // So many of the fastest known configs race for 15 rounds before one of them is the contestant: the best of
  // hundreds of single trials is often only the luckiest. 1: the fastest trial's.
  int finalists = 5;
};

// The contestant for this case: `detail` is template and config, or that it is the default config because
// nothing is tuned. Each set of `how` has all operands, packed ahead where the template packs. `pool`
// outlives it and has the threads of the target. NotFound: no template serves it.
Result<Contestant> our_contestant(const BenchCase& bench_case, const OurChoice& choice,
                                  const KnownConfigs& known, const TurnOptions& how, ThreadPool& pool);

// A template applied to the case's workload.
struct OurTemplate {
  const Target& target;
  const AnyTemplate& schedule_template;
  const TemplateInstance& instance;
};
// One config of it, compiled, with `sets` sets of operands; `pool` outlives it. InvalidConfig when it cannot
// be scheduled or built.
Result<Contestant> our_kernel(const BenchCase& bench_case, const OurTemplate& from, const Config& config,
                              int sets, ThreadPool& pool);

}  // namespace tuner
