#include "tests/bench/cpu/time_configs.h"

#include <map>
#include <utility>

#include "tests/bench/common/statistics.h"
#include "tests/bench/cpu/interleave.h"
#include "tests/bench/cpu/ours.h"

namespace tuner {

constexpr double kQuantile = 0.25;

Status time_configs(const BenchCase& bench_case, const Target& target, int rounds,
                    const std::vector<ConfigToTime*>& configs) {
  ThreadPool pool(target.threads);
  std::map<std::pair<const TemplateInstance*, Config>, size_t> at;
  std::vector<Contestant> kernels;
  for (const ConfigToTime* c : configs) {
    const auto [place, fresh] = at.try_emplace({c->instance, c->config}, kernels.size());
    if (!fresh) continue;
    Result<Contestant> kernel =
        our_kernel(bench_case, {target, *c->schedule_template, *c->instance}, c->config, 1, pool);
    if (!kernel) return kernel.status().with_context(str(c->config.to_text(), ": "));
    const Result<double> error = bench_case.check(*kernel);
    if (!error) return error.status().with_context(str(kernel->detail, ": "));
    kernels.push_back(*std::move(kernel));
  }
  take_turns({.rounds = rounds, .threads = target.threads}, kernels);
  for (ConfigToTime* c : configs) c->ns = quantile(kernels[at.at({c->instance, c->config})].ns, kQuantile);
  return Status::ok();
}

}  // namespace tuner
