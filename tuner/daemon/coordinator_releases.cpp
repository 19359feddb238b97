// Workers of another release. They get nothing that they cannot build (Workers::serves); here is what jobs are told
// of it, and what becomes of trials that nobody can build.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "compiler_core/runtime/cuda_fit.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/messages.h"

namespace tuner {
namespace {

constexpr size_t kMostTold = 3;  // workers named in one line, or with a line of their own at one look

}  // namespace

// A worker gives work back that its programs cannot build. Nothing if it is given back for another reason.
std::optional<Lack> Coordinator::take_lack(FarmState& farm, const SyncCall& call,
                                           const v1::HeldLease& returned) {
  const LeaseTable::Trial* const trial = farm.leases.find(returned.trial_id());
  if (!returned.has_found() || trial == nullptr) return std::nullopt;
  for (const TemplateVersion& wanted : needs_of(trial->work).templates) {
    if (wanted.name != returned.found().name() || wanted.version == returned.found().version()) continue;
    const Lack lack{wanted, std::max(returned.found().version(), 0)};
    if (farm.workers.note_lacks(call.session(), wanted, lack.found))
      spdlog::warn("{}", lacks_line(call.life.worker_id, {lack}));
    return lack;
  }
  return std::nullopt;
}

// Does this daemon's release have it?
bool Coordinator::is_own(const TemplateVersion& wanted) const {
  return std::ranges::find(options_.templates, wanted) != options_.templates.end();
}

// Workers are here that measure all else of it, and each lacks a template.
bool Coordinator::nobody_builds(const FarmState& farm, const Needs& needs) const {
  const int64_t now = clock_.now_ms();
  return !farm.workers.some_serve(needs, now) &&
         farm.workers.some_serve({.kind = needs.kind, .target = needs.target}, now);
}

// Queued trials of the job that nobody here can build. Races end by themselves (Races::give_up_unserved).
std::vector<LeaseQueue::JobLine> Coordinator::unbuildable_of(const FarmState& farm, const Job& job) const {
  std::vector<LeaseQueue::JobLine> lines = farm.leases.waiting_of(job.id());
  std::erase_if(lines, [&](const LeaseQueue::JobLine& line) {
    return line.needs.kind == WorkKind::kRace || !nobody_builds(farm, line.needs);
  });
  return lines;
}

// Why work that somebody waits for would wait for ever. Empty: a worker here has what it needs.
std::string Coordinator::why_unbuildable(const FarmState& farm, const Needs& needs) const {
  if (!nobody_builds(farm, needs)) return "";
  const std::vector<std::string> runners = farm.workers.waiting_for_builder(needs, clock_.now_ms());
  if (!runners.empty())
    return str("no builder is here for runner ", runners.front(), runners.size() > 1 ? ", ..." : "",
               ": it needs one that compiles \"", needs.target, "\"",
               toolkit_text(newest_toolkit_for(needs.target, farm.workers.cuda_driver(runners.front()))),
               " with template ", needs.templates.front().name, " version ", needs.templates.front().version);
  std::string found;
  size_t named = 0;
  const auto lacking = farm.workers.lacking(needs, clock_.now_ms());
  for (const auto& [worker, lacks] : lacking) {
    if (++named > kMostTold) break;
    found += str(found.empty() ? "" : ", ", worker, ": ", version_text(lacks.front().found));
  }
  if (lacking.size() > kMostTold) found += ", ...";
  const TemplateVersion& wanted = needs.templates.front();
  return str("no worker here has template ", wanted.name, " in version ", wanted.version, " (", found, ")");
}

// One line for each worker that lacks what the job uses, when it has come or was found out.
std::vector<std::string> Coordinator::lacks_to_tell(const FarmState& farm, Run& run) const {
  std::vector<std::string> lines;
  const std::set<Needs>& needs = run.runner->needs();
  if (run.news_seen == farm.workers.news() && run.needs_seen == needs.size()) return lines;
  run.news_seen = farm.workers.news();
  run.needs_seen = needs.size();
  std::map<std::string, std::set<Lack>> news;
  for (const Needs& one : needs) {
    if (!is_own(one.templates.front())) continue;
    for (const auto& [worker, lacks] : farm.workers.lacking(one, clock_.now_ms()))
      for (const Lack& lack : lacks)
        if (run.lacks_told.emplace(worker, lack).second) news[worker].insert(lack);
  }
  for (const auto& [worker, lacks] : news) {
    if (lines.size() == kMostTold) {
      lines.push_back(str(news.size() - kMostTold,
                          " more workers are of another release; `tuner workers` tells what they lack"));
      break;
    }
    lines.push_back(lacks_line(worker, {lacks.begin(), lacks.end()}));
  }
  return lines;
}

// What nobody has been able to build for a while: the job says so once, and waits. What this daemon's release has not
// either, trials of an earlier release, is given up: `lost`.
std::vector<std::string> Coordinator::unbuildable_to_tell(const FarmState& farm, Run& run,
                                                          std::vector<LeaseTable::Loss>& lost) const {
  std::vector<std::string> lines;
  const std::vector<LeaseQueue::JobLine> unbuildable = unbuildable_of(farm, *run.job);
  std::erase_if(run.unbuildable, [&](const auto& known) {
    return std::ranges::find(unbuildable, known.first, &LeaseQueue::JobLine::needs) == unbuildable.end();
  });
  for (const LeaseQueue::JobLine& line : unbuildable) {
    Run::Unbuildable& known =
        run.unbuildable.try_emplace(line.needs, Run::Unbuildable{.since_ms = clock_.now_ms()}).first->second;
    if (clock_.now_ms() - known.since_ms < options_.no_worker_hint_ms) continue;
    const bool waits = is_own(line.needs.templates.front());
    if (waits && known.told) continue;
    const std::string why = why_unbuildable(farm, line.needs);
    const std::string given_up = str("given up: ", why, ", nor has this daemon's release");
    if (!waits)
      for (const std::string& id : farm.leases.waiting_of(run.job->id(), line.needs))
        lost.push_back({.trial_id = id, .attempt = farm.leases.find(id)->attempt, .message = given_up});
    if (std::exchange(known.told, true)) continue;
    if (waits && !farm.workers.waiting_for_builder(line.needs, clock_.now_ms()).empty())
      lines.push_back(why + ". Its trials wait; start one: measure_server --kind builder --daemon ADDRESS");
    else if (waits)
      lines.push_back(why +
                      ". Its trials wait; update a worker: run the daemon's release of measure_server there");
    else
      lines.push_back(str(line.count, line.count == 1 ? " trial is " : " trials are ", given_up));
  }
  return lines;
}

void Coordinator::look_at_releases(Run& run) {
  std::vector<std::string> lines;
  std::vector<LeaseTable::Loss> lost;
  {
    const Locked farm(farm_);
    lines = lacks_to_tell(*farm, run);
    for (std::string& line : unbuildable_to_tell(*farm, run, lost)) lines.push_back(std::move(line));
    if (std::string line = build_office_.builder_to_tell(*farm, run.job->id(), run.builder_told);
        !line.empty())
      lines.push_back(std::move(line));
  }
  for (const LeaseTable::Loss& loss : lost)
    (void)loss_office_.give_up(loss);  // what the disk refuses comes again
  for (const std::string& line : lines) {
    spdlog::warn("{}", line);
    news_.tell(*run.job, line);
  }
}

}  // namespace tuner
