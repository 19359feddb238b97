#include "tuner/daemon/tables/workers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler_core/backend.h"
#include "compiler_core/runtime/cuda_fit.h"
#include "tuner/daemon/tables/compiler_names.h"

namespace tuner {
namespace {

constexpr int64_t kForgetWorkerMs = 600'000;  // a worker silent for so long leaves the list
constexpr int kFailuresInARow = 5;
constexpr int64_t kFirstPauseMs = 30'000, kLongestPauseMs = 600'000;
constexpr size_t kMostStandings = 65'536;
constexpr size_t kMostWorkers = 4'096;  // as many connections as the gate takes

// Whether a worker that offers `offered` measures code for `wanted`: on CPUs with another number of threads,
// or for an older CPU.
bool runs_code_for(const std::string& wanted, const std::string& offered, const Workers::Offer& offer) {
  const Result<Target> there = parse_target(offered), code = parse_target(wanted);
  if (!there || !code || there->family != code->family) return false;
  return backend_of(*code).measures(*code, *there, offer.features, offer.max_threads);
}

}  // namespace

std::string toolkit_text(int newest_toolkit) {
  return newest_toolkit == 0 ? "" : str(" with an NVRTC of CUDA ", newest_toolkit, " or older");
}

Result<std::vector<WorkerLife>> Workers::enter(const std::string& session, Offer offer, int64_t now_ms) {
  now_ms_ = std::max(now_ms_, now_ms);
  const WorkerLife life = offer.life;
  for (const auto& [name, earlier] : workers_)
    if (earlier.offer.life.worker_id == life.worker_id && earlier.offer.life != life && !earlier.closed &&
        now_ms - earlier.last_seen_ms < take_over_ms_)
      return Status(StatusCode::kAborted,
                    str("worker ", life.worker_id, " is here already, from ", earlier.offer.host,
                        ": give this one another id (--worker-id), wait until that one is gone, or give "
                        "hosts that share credentials those of a fleet (tuner admin worker NAME --fleet)"));
  std::erase_if(workers_,
                [&](const auto& item) { return now_ms - item.second.last_seen_ms > kForgetWorkerMs; });
  RETURN_IF_ERROR(has_room(offer, now_ms));
  std::vector<WorkerLife> ended;
  Worker worker{.offer = std::move(offer), .last_seen_ms = now_ms};
  std::erase_if(workers_, [&](const auto& item) {
    const Worker& earlier = item.second;
    if (earlier.offer.life.worker_id != life.worker_id) return false;
    worker.trials_done = earlier.trials_done;
    worker.failures = earlier.failures;
    worker.nothing_until_ms = earlier.nothing_until_ms;
    if (earlier.offer.life != life)
      ended.push_back(earlier.offer.life);
    else
      worker.lacks = earlier.lacks;
    return true;
  });
  // Ids that are made up must not fill the memory. What a worker without strikes had is learned again.
  if (standings_.size() >= kMostStandings)
    std::erase_if(standings_, [](const auto& item) { return item.second.strikes() == 0; });
  if (standings_.size() < kMostStandings || standings_.contains(life.worker_id))
    (void)standings_[life.worker_id].enter(worker.offer.hardware, worker.offer.sentinel_ns,
                                           worker.offer.peak_gflops, now_ms);
  workers_[session] = std::move(worker);
  ++news_;
  return ended;
}

Status Workers::has_room(const Offer& offer, int64_t now_ms) {
  const std::string& who = offer.registrar.name;
  const auto is_his = [&](const Worker& worker) { return worker.offer.registrar.name == who; };
  const auto full = [&] {
    size_t all = 0, his = 0;
    for (const auto& [session, worker] : workers_) {
      if (worker.offer.life.worker_id == offer.life.worker_id) continue;  // it takes that one's place
      ++all;
      his += is_his(worker) ? 1 : 0;
    }
    if (!who.empty() && his >= offer.registrar.most)
      return failed(who, " has ", his, " workers here, expected at most ", offer.registrar.most,
                    ": end some, or give each host credentials of its own (tuner admin worker)");
    if (all < kMostWorkers) return Status::ok();
    return failed("there are ", all, " workers here, expected at most ", kMostWorkers, ": end some first");
  };
  if (full()) return Status::ok();
  const bool all_taken = workers_.size() >= kMostWorkers;
  std::erase_if(workers_, [&](const auto& item) {
    return (who.empty() || all_taken || is_his(item.second)) && !here(item.second, now_ms);
  });
  return full();
}

void Workers::connection_closed(const std::string& session) {
  if (const auto found = workers_.find(session); found != workers_.end()) found->second.closed = true;
}

void Workers::leave(const std::string& session) { workers_.erase(session); }

std::optional<uint64_t> Workers::begin_sync(const std::string& session, int capacity, int64_t now_ms) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return std::nullopt;
  now_ms_ = std::max(now_ms_, now_ms);
  found->second.last_seen_ms = now_ms;
  found->second.closed = false;
  found->second.capacity = capacity;
  return ++found->second.latest_call;
}

Workers::Call Workers::check(const std::string& session, uint64_t call, int64_t now_ms) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return Call::kUnknown;
  if (found->second.latest_call != call) return Call::kOvertaken;
  found->second.last_seen_ms = now_ms;
  return Call::kCurrent;
}

const WorkerLife* Workers::life(const std::string& session) const {
  const auto found = workers_.find(session);
  return found == workers_.end() ? nullptr : &found->second.offer.life;
}

void Workers::count_trial(const std::string& session) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return;
  ++found->second.trials_done;
  found->second.failures = 0;
}

int64_t Workers::count_failure(const std::string& session, int64_t now_ms) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return 0;
  Worker& worker = found->second;
  const int beyond = ++worker.failures - kFailuresInARow;
  if (beyond < 0) return 0;
  const int64_t pause = std::min(kLongestPauseMs, kFirstPauseMs << std::min(beyond, 10));
  worker.nothing_until_ms = now_ms + pause;
  return pause;
}

int64_t Workers::count_quarantined(const std::string& session, const std::string& why, int64_t now_ms) {
  const WorkerLife* const who = life(session);
  return who == nullptr ? 0 : standings_[who->worker_id].strike(now_ms, why);
}

void Workers::remember_quarantined(const std::string& worker_id, const std::string& why, int64_t now_ms) {
  if (standings_.size() < kMostStandings || standings_.contains(worker_id))
    (void)standings_[worker_id].strike(now_ms, why);
}

Standing::News Workers::observe_sentinel(const std::string& session, double sentinel_ns, int64_t now_ms) {
  const WorkerLife* const who = life(session);
  return who == nullptr ? Standing::News::kNone : standings_[who->worker_id].observe(sentinel_ns, now_ms);
}

const Standing* Workers::standing_of(const Worker& worker) const {
  const auto found = standings_.find(worker.offer.life.worker_id);
  return found == standings_.end() ? nullptr : &found->second;
}

// Asked of workers that are slower or not believed only: it looks at all.
bool Workers::can_be_spared(const Worker& worker, int64_t now_ms) const {
  return std::ranges::any_of(workers_, [&](const auto& item) {
    const Worker& other = item.second;
    if (&other == &worker || !here(other, now_ms) || !other.unfit.empty() ||
        !other.offer.impossible.empty() || now_ms < other.nothing_until_ms)
      return false;
    const Standing* const standing = standing_of(other);
    if (standing != nullptr && (standing->slower() || standing->pause_ms(now_ms, true) > 0)) return false;
    if (std::ranges::any_of(own_, [&](const TemplateVersion& own) {
          return lack_of(other, own).has_value() && !lack_of(worker, own).has_value();
        }))
      return false;  // of another release
    return std::ranges::any_of(worker.offer.targets, [&](const std::string& target) {
      return measures(other, WorkKind::kTrial, target);
    });
  });
}

bool Workers::set_unfit(const std::string& session, const std::string& why) {
  const auto found = workers_.find(session);
  if (found == workers_.end() || found->second.unfit == why) return false;
  const bool changed = found->second.unfit.empty() != why.empty();
  found->second.unfit = why;
  return changed;
}

bool Workers::note_lacks(const std::string& session, const TemplateVersion& wanted, int found) {
  constexpr size_t kMostLacks = 256;
  const auto worker = workers_.find(session);
  if (worker == workers_.end() || found == wanted.version) return false;
  std::map<TemplateVersion, int>& lacks = worker->second.lacks;
  if (lacks.size() >= kMostLacks || !lacks.emplace(wanted, found).second) return false;
  ++news_;
  return true;
}

const WorkerLife* Workers::drain(const std::string& worker_id) {
  for (auto& [session, worker] : workers_) {
    if (worker.offer.life.worker_id != worker_id) continue;
    if (worker.drain == Drain::kNo) worker.drain = Drain::kNews;
    return &worker.offer.life;
  }
  return nullptr;
}

Workers::Drain Workers::take_drain(const std::string& session) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return Drain::kNo;
  const Drain drain = found->second.drain;
  if (drain == Drain::kNews) found->second.drain = Drain::kKnown;
  return drain;
}

int Workers::allowance(const std::string& session, int64_t now_ms) const {
  const auto found = workers_.find(session);
  if (found == workers_.end() || !fit(found->second, now_ms)) return 0;
  const Standing* const standing = standing_of(found->second);
  if (standing != nullptr && standing->on_trial(true) &&
      standing->on_trial(can_be_spared(found->second, now_ms)))
    return 1;
  return found->second.failures >= kFailuresInARow ? 1 : std::numeric_limits<int>::max();
}

bool Workers::fit(const Worker& worker, int64_t now_ms) const {
  if (!worker.unfit.empty() || !worker.offer.impossible.empty() || now_ms < worker.nothing_until_ms ||
      worker.drain != Drain::kNo)
    return false;
  const Standing* const standing = standing_of(worker);
  if (standing == nullptr || standing->pause_ms(now_ms, true) == 0) return true;
  return standing->pause_ms(now_ms, can_be_spared(worker, now_ms)) == 0;
}

bool Workers::others_serve(const Needs& needs, const std::set<std::string>& except, int64_t now_ms) const {
  return std::ranges::any_of(workers_, [&](const auto& item) {
    const Worker& worker = item.second;
    return !except.contains(worker.offer.life.worker_id) && here(worker, now_ms) && fit(worker, now_ms) &&
           measures(worker, needs);
  });
}

bool Workers::measures(const Worker& worker, WorkKind kind, const std::string& target) {
  if (kind == WorkKind::kRace && !worker.offer.races) return false;
  const auto [it, added] = worker.serves.try_emplace(target, false);
  if (added)
    it->second = std::ranges::any_of(worker.offer.targets, [&](const std::string& offered) {
      return offered == target || runs_code_for(target, offered, worker.offer);
    });
  return it->second;
}

// Nothing: it has the template in that version, or does not say which it has.
std::optional<Lack> Workers::lack_of(const Worker& worker, const TemplateVersion& wanted) {
  if (const auto told = worker.lacks.find(wanted); told != worker.lacks.end())
    return Lack{wanted, told->second};
  const std::map<std::string, int>& has = worker.offer.templates;
  if (has.empty()) return std::nullopt;
  const auto found = has.find(wanted.name);
  const int version = found == has.end() ? 0 : found->second;
  return version == wanted.version ? std::nullopt : std::optional(Lack{wanted, version});
}

std::vector<Lack> Workers::lacks_of(const Worker& worker) const {
  std::vector<Lack> lacks;
  for (const TemplateVersion& own : own_)
    if (const std::optional<Lack> lack = lack_of(worker, own)) lacks.push_back(*lack);
  return lacks;
}

std::vector<Lack> Workers::lacks(const std::string& session) const {
  const auto found = workers_.find(session);
  return found == workers_.end() ? std::vector<Lack>() : lacks_of(found->second);
}

bool Workers::measures(const Worker& worker, const Needs& needs) const {
  return measures(worker, needs.kind, needs.target) &&
         std::ranges::none_of(needs.templates,
                              [&](const TemplateVersion& t) { return lack_of(worker, t).has_value(); }) &&
         (worker.offer.kind == WorkerKind::kRunner
              ? all_built(worker, needs) &&
                    (!are_commands(needs.compiler) || compiles_source(worker, needs.compiler))
              : compiles_source(worker, needs.compiler));
}

// Builders that are here make all of it for that runner.
bool Workers::all_built(const Worker& runner, const Needs& needs) const {
  const std::string family = needs.target.substr(0, needs.target.find(' '));
  const int newest = newest_toolkit_for(needs.target, runner.offer.cuda_driver);
  return std::ranges::all_of(needs.templates, [&](const TemplateVersion& t) {
    return some_build({family, t, newest, needs.compiler}, now_ms_);
  });
}

bool Workers::compiles_source(const Worker& worker, const std::string& compiler) {
  return std::ranges::all_of(compiler_names(compiler), [&](const std::string& name) {
    return worker.offer.source_compilers.contains(name);
  });
}

// What an nvcc made a driver takes under the same condition as what NVRTC made.
bool Workers::toolkits_fit(const Worker& worker, const CompilerNeed& need, const std::string& compiler) {
  if (need.newest_toolkit == 0) return true;
  const std::vector<std::string> names = compiler_names(need.source_compiler);
  return toolkit_major(compiler) <= need.newest_toolkit &&
         std::ranges::all_of(names, [&](const std::string& name) {
           const auto found = worker.offer.source_compilers.find(name);
           return found == worker.offer.source_compilers.end() ||
                  toolkit_major(found->second) <= need.newest_toolkit;
         });
}

bool Workers::makes(const Worker& worker, const CompilerNeed& need) {
  const auto compiler = worker.offer.compilers.find(need.family);
  return worker.offer.kind == WorkerKind::kBuilder && compiler != worker.offer.compilers.end() &&
         toolkits_fit(worker, need, compiler->second) &&
         (need.wanted.name.empty() || !lack_of(worker, need.wanted)) &&
         compiles_source(worker, need.source_compiler);
}

bool Workers::builds(const std::string& session, const CompilerNeed& need) const {
  const auto found = workers_.find(session);
  return found != workers_.end() && found->second.unfit.empty() && found->second.drain == Drain::kNo &&
         makes(found->second, need);
}

bool Workers::some_build(const CompilerNeed& need, int64_t now_ms,
                         const std::set<std::string>& except) const {
  return std::ranges::any_of(workers_, [&](const auto& item) {
    const Worker& worker = item.second;
    return here(worker, now_ms) && worker.unfit.empty() && worker.drain == Drain::kNo &&
           !except.contains(worker.offer.life.worker_id) && makes(worker, need);
  });
}

int Workers::cuda_driver(const std::string& worker_id) const {
  const auto found = std::ranges::find_if(
      workers_, [&](const auto& item) { return item.second.offer.life.worker_id == worker_id; });
  return found == workers_.end() ? 0 : found->second.offer.cuda_driver;
}

bool Workers::has_toolchain(const CompilerNeed& need, const std::string& toolchain, int64_t now_ms) const {
  return std::ranges::any_of(workers_, [&](const auto& item) {
    const Offer& offer = item.second.offer;
    if (!here(item.second, now_ms)) return false;
    // Ours, which also compiles kernels of a GPU whose reference is somebody else's; one of those; or all.
    const auto ours = offer.compilers.find(need.family);
    if (ours != offer.compilers.end() && ours->second == toolchain) return true;
    std::string all;
    for (const std::string& name : compiler_names(need.source_compiler)) {
      const auto found = offer.source_compilers.find(name);
      if (found == offer.source_compilers.end()) return false;
      if (found->second == toolchain) return true;
      all += str(all.empty() ? "" : "; ", found->second);
    }
    return !all.empty() && all == toolchain;
  });
}

WorkerKind Workers::kind(const std::string& session) const {
  const auto found = workers_.find(session);
  return found == workers_.end() ? WorkerKind::kFull : found->second.offer.kind;
}

std::vector<std::string> Workers::waiting_for_builder(const Needs& needs, int64_t now_ms) const {
  std::vector<std::string> ids;
  for (const auto& [session, worker] : workers_)
    if (worker.offer.kind == WorkerKind::kRunner && here(worker, now_ms) &&
        measures(worker, needs.kind, needs.target) && !all_built(worker, needs))
      ids.push_back(worker.offer.life.worker_id);
  return ids;
}

bool Workers::serves(const std::string& session, const Needs& needs) const {
  const auto found = workers_.find(session);
  return found != workers_.end() && measures(found->second, needs);
}

bool Workers::served(const Needs& needs) const {
  return std::ranges::any_of(workers_, [&](const auto& item) { return measures(item.second, needs); });
}

int Workers::serving(const Needs& needs, int64_t now_ms) const {
  return static_cast<int>(std::ranges::count_if(
      workers_, [&](const auto& item) { return here(item.second, now_ms) && measures(item.second, needs); }));
}

bool Workers::some_serve(const Needs& needs, int64_t now_ms) const {
  return std::ranges::any_of(
      workers_, [&](const auto& item) { return here(item.second, now_ms) && measures(item.second, needs); });
}

std::string Workers::all_unfit(const Needs& needs, int64_t now_ms) const {
  std::string all;
  for (const auto& [session, worker] : workers_) {
    if (!here(worker, now_ms) || !measures(worker, needs)) continue;
    if (worker.unfit.empty()) return "";
    all += str(all.empty() ? "" : "; ", worker.offer.life.worker_id, ": ", worker.unfit);
  }
  return all;
}

std::map<std::string, std::vector<Lack>> Workers::lacking(const Needs& needs, int64_t now_ms) const {
  std::map<std::string, std::vector<Lack>> lacking;
  for (const auto& [session, worker] : workers_) {
    if (!here(worker, now_ms) || !measures(worker, needs.kind, needs.target)) continue;
    for (const TemplateVersion& wanted : needs.templates)
      if (const std::optional<Lack> lack = lack_of(worker, wanted))
        lacking[worker.offer.life.worker_id].push_back(*lack);
  }
  return lacking;
}

int Workers::capacity(int64_t now_ms) const {
  int sum = 0;
  for (const auto& [session, worker] : workers_)
    if (here(worker, now_ms)) sum += worker.capacity;
  return sum;
}

std::map<std::string, int> Workers::cpus(int64_t now_ms) const {
  std::map<std::string, int> offered, left;
  for (const auto& [session, worker] : workers_) {
    std::map<std::string, int>& of = here(worker, now_ms) ? offered : left;
    for (const std::string& target : worker.offer.targets)
      if (const Result<Target> cpu = parse_target(target); cpu && cpu->family->bound_by_host())
        of[target] = std::max(of[target], worker.offer.max_threads);
  }
  return offered.empty() ? left : offered;
}

std::vector<Workers::Entry> Workers::list(int64_t now_ms) const {
  std::vector<Entry> all;
  for (const auto& [session, worker] : workers_) {
    Entry entry{.offer = worker.offer,
                .trials_done = worker.trials_done,
                .silent_ms = now_ms - worker.last_seen_ms,
                .unfit = worker.unfit.empty() ? worker.offer.impossible : worker.unfit,
                .paused_ms = std::max<int64_t>(worker.nothing_until_ms - now_ms, 0),
                .here = here(worker, now_ms),
                .lacks = lacks_of(worker)};
    if (entry.paused_ms > 0) entry.paused_why = "it keeps failing to measure";
    if (const Standing* const standing = standing_of(worker)) {
      const bool others = standing->pause_ms(now_ms, true) > 0 && can_be_spared(worker, now_ms);
      if (const int64_t pause = standing->pause_ms(now_ms, others); pause > entry.paused_ms) {
        entry.paused_ms = pause;
        entry.paused_why = standing->why(now_ms, others);
      }
      entry.quarantined = standing->strikes();
    }
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace tuner
