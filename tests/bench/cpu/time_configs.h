// Configs of one task, compiled, checked and timed in turn.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "templates/schedule_template.h"
#include "tests/bench/cpu/bench_case.h"

namespace tuner {

struct ConfigToTime {
  const AnyTemplate* schedule_template = nullptr;
  const TemplateInstance* instance = nullptr;
  Config config;
  double ns = 0;  // the answer: the lower quartile of the rounds, what it takes when nothing disturbs it
};

// Fills in `ns`. Equal configs of one template are timed once. The error names the first config that cannot
// be built, or whose answer is wrong.
Status time_configs(const BenchCase& bench_case, const Target& target, int rounds,
                    const std::vector<ConfigToTime*>& configs);

}  // namespace tuner
