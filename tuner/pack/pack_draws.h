// Chooses the configs of a task that go into a pack, and the order in which they are compiled and measured.
//
// Where the back end estimates times: several times as many configs as wanted are drawn evenly, lowered and
// put in order by their estimated time (Backend::estimate_ns). The defaults come first, then mostly the best
// by estimate; a share is taken evenly from all that were drawn, so that what the estimate does not see shows
// in the results. Other targets have no estimate: their configs come in the order of the draws. Configs that
// a database knows to be fast come right after the defaults, whatever they are estimated at.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "measure_server/runner/pack_file.h"
#include "tuner/jobs/tasks.h"
#include "tuner/pack/known_configs.h"

namespace tuner {

// One config of one template that serves the task. The pointers are valid while its ConfigDraws lives.
struct Draw {
  const AnyTemplate* schedule_template = nullptr;
  const TemplateInstance* instance = nullptr;
  ConfigIndex index = 0;
  PackPick picked = PackPick::kRandom;  // kDefault: its template's default config
  double estimated_ns = 0;              // 0: not estimated
};

// A pack holds one error bound a task: of the one algorithm that the task's job names, else of the direct
// sums.
std::string algorithm_of_pack(const CliTask& task);

// Draws configs from all templates in turn, each config once, the defaults first. Deterministic in the seed.
class ConfigDraws {
 public:
  // The templates are those of algorithm_of_pack().
  static Result<ConfigDraws> open(const CliTask& task, uint64_t seed);
  // How far right answers of these templates may be from the exact ones.
  const Tolerance& tolerance() const { return tolerance_; }
  // The first `n` of `known` that are in a space here and no default; next() does not return them again.
  std::vector<Draw> take(const std::vector<KnownPick>& known, size_t n);
  // Returns up to `n` new configs; fewer if the spaces are exhausted.
  std::vector<Draw> next(size_t n);

 private:
  struct Source {
    const AnyTemplate* schedule_template;
    std::unique_ptr<TemplateInstance> instance;
    std::set<ConfigIndex> seen;
    bool began = false;  // its default was returned
  };

  explicit ConfigDraws(uint64_t seed) : random_(seed) {}

  std::vector<Source> sources_;
  size_t turn_ = 0;
  std::mt19937_64 random_;
  Tolerance tolerance_;
};

// Calls f(0) ... f(n - 1) on several threads (0: one per CPU) and returns after the last.
void for_each_index(size_t n, int threads, const std::function<void(size_t)>& f);

// Fills in the estimates and takes those out that the filter would refuse before compiling;
// `last_refusal` then says why one of them was. An error is not about a config.
Status estimate_draws(const CliTask& task, int threads, std::vector<Draw>& draws, std::string& last_refusal);

// Returns the order in which to compile: defaults first, then known ones, then by estimate, but
// `random_percent` of the places go to configs in the order of the draws, spread evenly.
std::vector<Draw> compile_order(std::vector<Draw> draws, int random_percent);

}  // namespace tuner
