#include "tuner/pack/pack_draws.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "compiler_core/backend.h"

namespace tuner {

std::string algorithm_of_pack(const CliTask& task) {
  const bool is_one = !task.algorithms.empty() && task.algorithms.find(',') == std::string::npos;
  return is_one ? task.algorithms : "direct";
}

Result<ConfigDraws> ConfigDraws::open(const CliTask& task, uint64_t seed) {
  ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving,
                   templates_for(task.workload, task.target, algorithm_of_pack(task)));
  ConfigDraws drawing(seed);
  for (const AnyTemplate* t : serving) {
    const Tolerance of_template = t->tolerance(task.workload);
    drawing.tolerance_.absolute = std::max(drawing.tolerance_.absolute, of_template.absolute);
    drawing.tolerance_.relative = std::max(drawing.tolerance_.relative, of_template.relative);
    ASSIGN_OR_RETURN(std::unique_ptr<TemplateInstance> instance, t->apply(task.workload, task.target));
    drawing.sources_.push_back({t, std::move(instance), {}, false});
  }
  return drawing;
}

std::vector<Draw> ConfigDraws::take(const std::vector<KnownPick>& known, size_t n) {
  std::vector<Draw> draws;
  for (const KnownPick& k : known) {
    if (draws.size() == n) break;
    for (Source& source : sources_) {
      if (source.schedule_template->name() != k.template_name) continue;
      const ConfigSpace& space = source.instance->space();
      const Result<ConfigIndex> index = space.index_of(k.config);
      if (!index || *index == space.default_index() || !source.seen.insert(*index).second) continue;
      draws.push_back({.schedule_template = source.schedule_template,
                       .instance = source.instance.get(),
                       .index = *index,
                       .picked = PackPick::kKnown});
    }
  }
  return draws;
}

std::vector<Draw> ConfigDraws::next(size_t n) {
  std::vector<Draw> draws;
  for (size_t empty = 0; draws.size() < n && empty < sources_.size(); turn_ = (turn_ + 1) % sources_.size()) {
    Source& source = sources_[turn_];
    const ConfigSpace& space = source.instance->space();
    if (source.seen.size() == space.size()) {
      ++empty;
      continue;
    }
    empty = 0;
    Draw draw{.schedule_template = source.schedule_template,
              .instance = source.instance.get(),
              .index = space.default_index()};
    if (!source.began) draw.picked = PackPick::kDefault;
    source.began = true;
    while (!source.seen.insert(draw.index).second) draw.index = space.sample(random_);
    draws.push_back(draw);
  }
  return draws;
}

void for_each_index(size_t n, int threads, const std::function<void(size_t)>& f) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < n; i = next++) f(i);
  };
  const size_t wanted =
      threads > 0 ? static_cast<size_t>(threads) : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> helpers;  // join at the end
  for (size_t i = 1; i < std::min(wanted, n); ++i) helpers.emplace_back(work);
  work();
}

namespace {

Result<double> estimate(const CliTask& task, const Draw& draw) {
  ASSIGN_OR_RETURN(const Program program, draw.instance->instantiate(draw.instance->space().at(draw.index)));
  return backend_of(task.target).estimate_ns(program, task.target);
}

}  // namespace

Status estimate_draws(const CliTask& task, int threads, std::vector<Draw>& draws, std::string& last_refusal) {
  std::vector<Result<double>> estimates(draws.size(), failed("not estimated"));
  for_each_index(draws.size(), threads, [&](size_t i) { estimates[i] = estimate(task, draws[i]); });
  std::vector<Draw> accepted;
  for (size_t i = 0; i < draws.size(); ++i) {
    if (estimates[i].is_ok()) {
      draws[i].estimated_ns = *estimates[i];
      accepted.push_back(draws[i]);
    } else if (estimates[i].status().code() == StatusCode::kInvalidConfig) {
      last_refusal = estimates[i].message();
    } else {
      return estimates[i].status();
    }
  }
  draws = std::move(accepted);
  return Status::ok();
}

std::vector<Draw> compile_order(std::vector<Draw> draws, int random_percent) {
  std::vector<Draw> order;
  std::vector<bool> taken(draws.size(), false);
  const auto take = [&](size_t i, PackPick why) {
    taken[i] = true;
    draws[i].picked = why;
    order.push_back(draws[i]);
  };
  for (const PackPick first : {PackPick::kDefault, PackPick::kKnown})
    for (size_t i = 0; i < draws.size(); ++i)
      if (!taken[i] && draws[i].picked == first) take(i, first);
  std::vector<size_t> best(draws.size());
  std::iota(best.begin(), best.end(), 0);
  std::stable_sort(best.begin(), best.end(),
                   [&](size_t a, size_t b) { return draws[a].estimated_ns < draws[b].estimated_ns; });
  size_t next_best = 0, next_drawn = 0;
  for (int due = 0; order.size() < draws.size();) {
    due += random_percent;
    const bool at_random = due >= 100;
    if (at_random) due -= 100;
    while (taken[best[next_best]]) ++next_best;
    while (taken[next_drawn]) ++next_drawn;
    take(at_random ? next_drawn : best[next_best], at_random ? PackPick::kRandom : PackPick::kEstimate);
  }
  return order;
}

}  // namespace tuner
