#include "tuner/daemon/rooms/farm_releases.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "compiler_core/runtime/cuda_fit.h"
#include "tuner/daemon/edge/releases.h"
#include "tuner/daemon/tables/compiler_names.h"

namespace tuner {
namespace {

constexpr size_t kMostTold = 3;  // workers named in one line, or with a line of their own at one look

// A worker here has all that it needs but the compiler of the user's choice.
bool lacks_compiler(const FarmState& farm, const Needs& needs, int64_t now_ms) {
  Needs others = needs;
  others.compiler.clear();
  return !needs.compiler.empty() && farm.workers.some_serve(others, now_ms);
}

}  // namespace

std::optional<Lack> take_lack(FarmState& farm, const SyncCall& call, const v1::HeldLease& returned) {
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

bool has_template(const std::vector<TemplateVersion>& own, const TemplateVersion& wanted) {
  return std::ranges::find(own, wanted) != own.end();
}

bool nobody_builds(const FarmState& farm, const Needs& needs, int64_t now_ms) {
  return !farm.workers.some_serve(needs, now_ms) &&
         farm.workers.some_serve({.kind = needs.kind, .target = needs.target}, now_ms);
}

std::vector<LeaseQueue::JobLine> unbuildable_of(const FarmState& farm, const std::string& job_id,
                                                int64_t now_ms) {
  std::vector<LeaseQueue::JobLine> lines = farm.leases.waiting_of(job_id);
  std::erase_if(lines, [&](const LeaseQueue::JobLine& line) {
    return line.needs.kind == WorkKind::kRace || !nobody_builds(farm, line.needs, now_ms);
  });
  return lines;
}

std::string why_unbuildable(const FarmState& farm, const Needs& needs, int64_t now_ms) {
  if (!nobody_builds(farm, needs, now_ms)) return "";
  if (lacks_compiler(farm, needs, now_ms)) return str("no worker has ", compiler_text(needs.compiler));
  const std::vector<std::string> runners = farm.workers.waiting_for_builder(needs, now_ms);
  if (!runners.empty())
    return str("no builder is here for runner ", runners.front(), runners.size() > 1 ? ", ..." : "",
               ": it needs one that compiles \"", needs.target, "\"",
               toolkit_text(newest_toolkit_for(needs.target, farm.workers.cuda_driver(runners.front()))),
               " with template ", needs.templates.front().name, " version ", needs.templates.front().version);
  std::string found;
  size_t named = 0;
  const auto lacking = farm.workers.lacking(needs, now_ms);
  for (const auto& [worker, lacks] : lacking) {
    if (++named > kMostTold) break;
    found += str(found.empty() ? "" : ", ", worker, ": ", version_text(lacks.front().found));
  }
  if (lacking.size() > kMostTold) found += ", ...";
  const TemplateVersion& wanted = needs.templates.front();
  return str("no worker here has template ", wanted.name, " in version ", wanted.version, " (", found, ")");
}

std::vector<std::string> lacks_to_tell(const FarmState& farm, const std::set<Needs>& needs,
                                       const std::vector<TemplateVersion>& own, int64_t now_ms,
                                       ReleasesTold& told) {
  std::vector<std::string> lines;
  if (told.news_seen == farm.workers.news() && told.needs_seen == needs.size()) return lines;
  told.news_seen = farm.workers.news();
  told.needs_seen = needs.size();
  std::map<std::string, std::set<Lack>> news;
  for (const Needs& one : needs) {
    if (!has_template(own, one.templates.front())) continue;
    for (const auto& [worker, lacks] : farm.workers.lacking(one, now_ms))
      for (const Lack& lack : lacks)
        if (told.lacks.emplace(worker, lack).second) news[worker].insert(lack);
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

std::vector<std::string> unbuildable_to_tell(const FarmState& farm, const std::string& job_id,
                                             const CoordinatorOptions& options, int64_t now_ms,
                                             ReleasesTold& told, std::vector<LeaseTable::Loss>& lost) {
  std::vector<std::string> lines;
  const std::vector<LeaseQueue::JobLine> unbuildable = unbuildable_of(farm, job_id, now_ms);
  std::erase_if(told.unbuildable, [&](const auto& known) {
    return std::ranges::find(unbuildable, known.first, &LeaseQueue::JobLine::needs) == unbuildable.end();
  });
  for (const LeaseQueue::JobLine& line : unbuildable) {
    ReleasesTold::Unbuildable& known =
        told.unbuildable.try_emplace(line.needs, ReleasesTold::Unbuildable{.since_ms = now_ms}).first->second;
    if (now_ms - known.since_ms < options.no_worker_hint_ms) continue;
    const bool waits = has_template(options.templates, line.needs.templates.front());
    if (waits && known.told) continue;
    const std::string why = why_unbuildable(farm, line.needs, now_ms);
    const std::string given_up = str("given up: ", why, ", nor has this daemon's release");
    if (!waits)
      for (const std::string& id : farm.leases.waiting_of(job_id, line.needs))
        lost.push_back({.trial_id = id, .attempt = farm.leases.find(id)->attempt, .message = given_up});
    if (std::exchange(known.told, true)) continue;
    if (waits && lacks_compiler(farm, line.needs, now_ms))
      lines.push_back(str(why, ". Its trials wait; ",
                          are_commands(line.needs.compiler)
                              ? "have a worker's operator allow it: TUNER_COMMANDS"
                              : "name another one in the job file, or have a worker's operator list it: "
                                "TUNER_COMPILERS"));
    else if (waits && !farm.workers.waiting_for_builder(line.needs, now_ms).empty())
      lines.push_back(why + ". Its trials wait; start one: measure_server --kind builder --daemon ADDRESS");
    else if (waits)
      lines.push_back(why +
                      ". Its trials wait; update a worker: run the daemon's release of measure_server there");
    else
      lines.push_back(str(line.count, line.count == 1 ? " trial is " : " trials are ", given_up));
  }
  return lines;
}

}  // namespace tuner
