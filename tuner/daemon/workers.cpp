#include "tuner/daemon/workers.h"

#include <algorithm>
#include <utility>

#include "compiler_core/backend.h"

namespace tuner {
namespace {

constexpr int64_t kForgetWorkerMs = 600'000;  // a worker silent for so long leaves the list

// Whether a worker that offers `offered` measures code for `wanted`: on CPUs with another number of threads, or
// for an older CPU.
bool runs_code_for(const std::string& wanted, const std::string& offered, const Workers::Offer& offer) {
  const Result<Target> there = parse_target(offered), code = parse_target(wanted);
  if (!there || !code || there->family != code->family) return false;
  return backend_of(*code).measures(*code, *there, offer.features, offer.max_threads);
}

}  // namespace

std::vector<WorkerLife> Workers::enter(const std::string& session, Offer offer, int64_t now_ms) {
  std::erase_if(workers_,
                [&](const auto& item) { return now_ms - item.second.last_seen_ms > kForgetWorkerMs; });
  std::vector<WorkerLife> ended;
  Worker worker{.offer = std::move(offer), .last_seen_ms = now_ms};
  const WorkerLife& life = worker.offer.life;
  std::erase_if(workers_, [&](const auto& item) {
    const Worker& earlier = item.second;
    if (earlier.offer.life.worker_id != life.worker_id) return false;
    worker.trials_done = earlier.trials_done;
    if (earlier.offer.life != life) ended.push_back(earlier.offer.life);
    return true;
  });
  workers_[session] = std::move(worker);
  return ended;
}

std::optional<uint64_t> Workers::begin_sync(const std::string& session, int capacity, int64_t now_ms) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return std::nullopt;
  found->second.last_seen_ms = now_ms;
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
  if (const auto found = workers_.find(session); found != workers_.end()) ++found->second.trials_done;
}

bool Workers::measures(Worker& worker, WorkKind kind, const std::string& target) {
  if (kind == WorkKind::kRace && !worker.offer.races) return false;
  const auto [it, added] = worker.serves.try_emplace(target, false);
  if (added)
    it->second = std::ranges::any_of(worker.offer.targets, [&](const std::string& offered) {
      return offered == target || runs_code_for(target, offered, worker.offer);
    });
  return it->second;
}

bool Workers::serves(const std::string& session, WorkKind kind, const std::string& target) {
  const auto found = workers_.find(session);
  return found != workers_.end() && measures(found->second, kind, target);
}

bool Workers::served(WorkKind kind, const std::string& target) {
  return std::ranges::any_of(workers_, [&](auto& item) { return measures(item.second, kind, target); });
}

int Workers::racers(const std::string& target, int64_t now_ms) {
  return static_cast<int>(std::ranges::count_if(workers_, [&](auto& item) {
    return here(item.second, now_ms) && measures(item.second, WorkKind::kRace, target);
  }));
}

int Workers::capacity(int64_t now_ms) const {
  int sum = 0;
  for (const auto& [session, worker] : workers_)
    if (here(worker, now_ms)) sum += worker.capacity;
  return sum;
}

std::map<std::string, int> Workers::cpus() const {
  std::map<std::string, int> offered;
  for (const auto& [session, worker] : workers_)
    for (const std::string& target : worker.offer.targets)
      if (const Result<Target> cpu = parse_target(target); cpu && cpu->family->bound_by_host())
        offered[target] = std::max(offered[target], worker.offer.max_threads);
  return offered;
}

std::vector<Workers::Entry> Workers::list(int64_t now_ms) const {
  std::vector<Entry> all;
  for (const auto& [session, worker] : workers_)
    all.push_back({worker.offer, worker.trials_done, now_ms - worker.last_seen_ms});
  return all;
}

}  // namespace tuner
