// The desk: one thread that answers Syncs, all that have come together in one turn.
//
//   begin    who speaks, what it holds, gives back, and how its races stand
//   results  all in one commit, then acknowledged (result_intake.h)
//   leases   what each may have is chosen, all in one commit, then granted
//   answer   those with news; the others wait here as values until there is some
//
// So the busier the daemon is, the more calls share a commit.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "compiler_core/base/clock.h"
#include "db/open_race.h"
#include "proto/convert.h"
#include "tuner/daemon/build_messages.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/messages.h"

namespace tuner {
namespace {

constexpr int64_t kLookMs = 250;    // how often leases are looked after
constexpr size_t kMostCalls = 512;  // of one turn: their results and leases are one commit each

Status unknown_session() {
  return {StatusCode::kAborted, "unknown session; register again and keep your work"};
}

Status check_sizes(const v1::SyncRequest& request) {
  if (request.results_size() <= kMaxResultsPerSync && request.held_size() <= kMaxHeldPerSync &&
      request.returned_size() <= kMaxHeldPerSync && request.races_size() <= kMaxRacesPerSync &&
      request.builds_size() <= kMaxBuildsPerSync && request.returned_builds_size() <= kMaxBuildsPerSync &&
      request.built_size() <= kMaxBuiltPerSync)
    return Status::ok();
  if (request.builds_size() + request.returned_builds_size() + request.built_size() > 0)
    return invalid_argument("sync: found ", request.builds_size(), " held and ",
                            request.returned_builds_size(), " returned orders and ", request.built_size(),
                            " answers, at most ", kMaxBuildsPerSync, " and ", kMaxBuiltPerSync,
                            " are taken at once");
  return invalid_argument("sync: found ", request.results_size(), " results, ", request.races_size(),
                          " races, ", request.held_size(), " held and ", request.returned_size(),
                          " returned leases, at most ", kMaxResultsPerSync, ", ", kMaxRacesPerSync, " and ",
                          kMaxHeldPerSync, " are taken at once");
}

}  // namespace

uint64_t Coordinator::sync(const v1::SyncRequest& request, v1::SyncReply* reply, SyncCall::Done done) {
  auto call = std::make_unique<SyncCall>();
  call->request = &request;
  call->reply = reply;
  call->done = std::move(done);
  uint64_t id = 0;
  std::unique_ptr<SyncCall> refused;
  {
    const Locked inbox(inbox_);
    id = call->id = ++inbox->last_call;
    (inbox->stopped ? refused : inbox->arrived.emplace_back()) = std::move(call);
  }
  if (refused)
    refused->done(stopped());
  else
    desk_.notify_one();
  return id;
}

void Coordinator::cancel_sync(uint64_t call) {
  {
    const Locked inbox(inbox_);
    const auto found = std::ranges::find(inbox->arrived, call, [](const auto& c) { return c->id; });
    if (found != inbox->arrived.end())
      (*found)->gone = true;
    else
      inbox->gone.insert(call);  // it waits, or is being answered
  }
  desk_.notify_one();
}

void Coordinator::wake_desk() {
  {
    const Locked inbox(inbox_);
    inbox->woken = true;
  }
  desk_.notify_one();
}

struct Coordinator::DeskWork {
  Calls arrived;
  std::set<uint64_t> gone;
  bool last = false;  // the daemon stops, and nothing is left
};

Coordinator::DeskWork Coordinator::Inbox::take() {
  DeskWork work;
  const auto taken = static_cast<std::ptrdiff_t>(std::min(arrived.size(), kMostCalls));
  work.arrived.assign(std::make_move_iterator(arrived.begin()),
                      std::make_move_iterator(arrived.begin() + taken));
  arrived.erase(arrived.begin(), arrived.begin() + taken);
  work.gone = std::exchange(gone, {});
  woken = false;
  work.last = stopped = stopping && arrived.empty();
  return work;
}

void Coordinator::desk_loop() {
  for (bool last = false; !last;) {
    int64_t until = looked_ms_ + kLookMs;
    for (const auto& [session, call] : waiting_) until = std::min(until, call->deadline_ms);
    const int64_t pause = std::clamp<int64_t>(until - clock_.now_ms(), 0, kLookMs);
    DeskWork work;
    {
      Locked inbox(inbox_);
      inbox.wait_for(desk_, std::chrono::milliseconds(pause),
                     [&] { return inbox->some() || inbox->stopping; });
      work = inbox->take();
    }
    last = work.last;
    metrics_.desk_turned_ms = clock_.now_ms();
    metrics_.desk_calls.observe(static_cast<double>(work.arrived.size()));
    const Stopwatch turn;
    desk_turn(std::move(work.arrived), work.gone);
    metrics_.desk_turn_s.observe(turn.elapsed_ms() / 1000);
  }
}

void Coordinator::turn() {
  for (bool some = true; some;) {
    DeskWork work = Locked(inbox_)->take();
    desk_turn(std::move(work.arrived), work.gone);
    {
      const Locked farm(farm_);
      tick(*farm);
    }
    while (take_turn()) {
    }
    some = Locked(inbox_)->some();
  }
}

void Coordinator::desk_turn(Calls arrived, const std::set<uint64_t>& gone) {
  drop_gone(gone, arrived);
  begin_calls(arrived);
  result_intake_.accept(arrived);
  look_after_leases();
  std::vector<SyncCall*> calls;
  {
    const Locked farm(farm_);
    tell_revoked(*farm);
    if (farm->leases.queued() > 0)
      for (const auto& [session, call] : waiting_) calls.push_back(call.get());
    std::ranges::sort(calls, {}, &SyncCall::id);  // who has waited longest chooses first
    for (const std::unique_ptr<SyncCall>& call : arrived) {
      if (call->answered || !speaks(*farm, *call)) continue;
      take_heartbeat(*farm, *call, /*first=*/true);
      build_office_.take_awaits(*farm, *call);
      if (!call->gone) calls.push_back(call.get());
    }
  }
  lease_to(calls);
  build_office_.serve(waiting_, arrived);
  finish_or_wait(std::move(arrived));
}

// Callers that have gone: nobody would hear of new leases. One that brings results is taken in first: they
// are worth having whoever hears of it.
void Coordinator::drop_gone(const std::set<uint64_t>& gone, Calls& arrived) {
  const Locked farm(farm_);
  const auto drop = [&](SyncCall& call) {
    call.gone = true;
    farm->workers.connection_closed(call.session());
    const v1::SyncRequest& brings = *call.request;
    if (brings.results_size() + brings.races_size() + brings.built_size() == 0 ||
        waiting_.contains(call.session()))
      call.answer(Status(StatusCode::kAborted, "the caller has gone"));
  };
  if (!gone.empty())
    for (const auto& [session, call] : waiting_)
      if (gone.contains(call->id)) drop(*call);
  for (const std::unique_ptr<SyncCall>& call : arrived)
    if (call->gone) drop(*call);
}

void Coordinator::begin_calls(Calls& arrived) {
  std::vector<LeaseTable::Loss> losses;
  {
    const Locked farm(farm_);
    for (const std::unique_ptr<SyncCall>& call : arrived) {
      if (call->answered) continue;
      if (const Status sizes = check_sizes(*call->request); !sizes) {
        call->answer(sizes);
        continue;
      }
      if (!begin_call(*farm, *call, losses)) continue;
      const auto older = waiting_.find(call->session());
      if (older == waiting_.end()) continue;
      older->second->answer(Status(StatusCode::kDeadlineExceeded, "a newer Sync took over"));
      finished_.push_back(std::move(older->second));
      waiting_.erase(older);
    }
  }
  metrics_.lost(LostWhy::kGivenBack, losses.size());
  loss_office_.handle(losses);
}

// False: the session is unknown, and the call answered.
bool Coordinator::begin_call(FarmState& farm, SyncCall& call, std::vector<LeaseTable::Loss>& losses) {
  const v1::SyncRequest& request = *call.request;
  const int64_t now = clock_.now_ms();
  // It may ask for as many as it could name in one Sync.
  const int slots = std::clamp(request.free_slots(), 0, kMaxHeldPerSync - request.held_size());
  const int capacity = request.unfit().empty() ? slots + request.held_size() : 0;
  const std::optional<uint64_t> number = farm.workers.begin_sync(call.session(), capacity, now);
  if (!number) return call.answer(unknown_session()), false;
  if (request.leaves()) {
    spdlog::info("worker {} has left", farm.workers.life(call.session())->worker_id);
    farm.workers.leave(call.session());
    return call.answer(Status::ok()), false;
  }
  call.number = *number;
  call.life = *farm.workers.life(call.session());
  call.held = held_of(request.held());
  for (const LeaseTable::Held& held : call.held) call.held_ids.insert(held.trial_id);
  call.deadline_ms = now + std::clamp<int64_t>(request.wait_ms(), 0, options_.max_wait_ms);
  call.slots = slots;
  take_courses(farm, call);
  const LogAbout about({.worker = call.life.worker_id});
  if (farm.workers.set_unfit(call.session(), shown(request.unfit()))) {
    if (request.unfit().empty())
      spdlog::info("worker {} is fit again", call.life.worker_id);
    else
      spdlog::warn("worker {} gets no leases: {}", call.life.worker_id, shown(request.unfit()));
  }
  const std::vector<LeaseTable::Held> returned = held_of(request.returned());
  for (int i = 0; i < request.returned_size(); ++i) {
    const LeaseTable::Held& held = returned[static_cast<size_t>(i)];
    const std::optional<Lack> lack = take_lack(farm, call, request.returned(i));
    std::string why = request.unfit().empty() ? "it could not begin" : shown(request.unfit());
    if (lack) why = "it " + lacks_text({*lack});
    if (std::optional<LeaseTable::Loss> loss = farm.leases.give_back(call.life, held, why)) {
      loss->told_anyway = lack.has_value();
      losses.push_back(*std::move(loss));
    }
    farm.builds.forget(held.trial_id);
    add_ack(held.trial_id, held.attempt, call.reply);
  }
  build_office_.take_builds(farm, call);
  return true;
}

// A few times a second: whoever waits here is alive, and so are its leases; others run out.
void Coordinator::look_after_leases() {
  std::vector<LeaseTable::Loss> losses;
  {
    const Locked farm(farm_);
    const int64_t now = clock_.now_ms();
    if (now - looked_ms_ < kLookMs) return;
    looked_ms_ = now;
    for (const auto& [session, call] : waiting_) {
      if (farm->workers.check(session, call->number, now) == Workers::Call::kCurrent && !call->held.empty())
        farm->leases.heartbeat(call->life, call->held, now);
    }
    losses = farm->leases.expire(now);
    build_office_.look_after(*farm, waiting_);
  }
  metrics_.lost(LostWhy::kExpired, losses.size());
  loss_office_.handle(losses);
}

// False: the call does not speak for its worker any more, and is answered.
bool Coordinator::speaks(FarmState& farm, SyncCall& call) {
  switch (farm.workers.check(call.session(), call.number, clock_.now_ms())) {
    case Workers::Call::kUnknown:
      return call.answer(unknown_session()), false;
    case Workers::Call::kOvertaken:
      return call.answer(Status(StatusCode::kDeadlineExceeded, "a newer Sync took over")), false;
    case Workers::Call::kCurrent:
      break;
  }
  return true;
}

// Waiting workers whose leases others have closed, or that were registered anew by another call.
void Coordinator::tell_revoked(FarmState& farm) {
  const std::set<WorkerLife> owners = farm.leases.take_revoked();
  for (const auto& [session, call] : waiting_)
    if (speaks(farm, *call) && owners.contains(call->life)) take_heartbeat(farm, *call, /*first=*/false);
}

void Coordinator::take_heartbeat(FarmState& farm, SyncCall& call, bool first) {
  // A worker that still has results to send may have some of leases that it does not name.
  const bool complete = first && call.request->results_size() < kMaxResultsPerSync;
  const LeaseTable::Heartbeat heartbeat =
      farm.leases.heartbeat(call.life, call.held, clock_.now_ms(), complete);
  for (const LeaseTable::Held& h : heartbeat.revoked) {
    v1::Ack* revoked = call.reply->add_revoked();
    revoked->set_trial_id(h.trial_id);
    revoked->set_attempt(h.attempt);
  }
  // Leases whose reply got lost are delivered again, before this call leases more itself.
  if (!complete) return;
  for (const std::string& id : heartbeat.missing) deliver(farm, id, call);
  call.slots -= static_cast<int>(heartbeat.missing.size());
}

void Coordinator::reserve(FarmState& farm, SyncCall& call, Reserved& reserved) {
  if (call.answered || call.slots <= 0 || farm.leases.queued() == 0) return;
  const int64_t now = clock_.now_ms();
  const LeaseTable::Asker asker{
      .worker_id = call.life.worker_id,
      .incarnation = call.life.incarnation,
      .serves = [&](const Needs& needs) { return farm.workers.serves(call.session(), needs); },
      .others =
          [&](const Needs& needs, const std::set<std::string>& except) {
            return farm.workers.others_serve(needs, except, now);
          }};
  const int n = std::min(call.slots, farm.workers.allowance(call.session(), now));
  for (LeaseTable::Trial& trial : farm.leases.reserve(asker, call.held_ids, static_cast<size_t>(n)))
    reserved.emplace_back(&call, std::move(trial));
}

// Leases queued trials to the calls that have room, in their order.
void Coordinator::lease_to(const std::vector<SyncCall*>& calls) {
  Reserved reserved;
  std::vector<LeaseWish> wishes;
  StoredLeases stored;  // attempt and token of what the store has leased
  {
    const Locked farm(farm_);
    if (!farm->stopping)
      for (SyncCall* const call : calls) reserve(*farm, *call, reserved);
  }
  for (const auto& [call, trial] : reserved)
    if (trial.work.kind == WorkKind::kTrial)
      wishes.push_back({trial.id, call->life.worker_id, call->life.incarnation});
  if (reserved.empty()) return;
  const double store_ms = store_leases(wishes, stored);
  for (const auto& [call, trial] : reserved)
    if (trial.work.kind == WorkKind::kRace && trial.in_store()) store_race_lease(*call, trial, stored);

  const Locked farm(farm_);
  for (const auto& [call, trial] : reserved) {
    std::pair<int, int64_t> lease{trial.attempt + 1, trial.fencing + 1};
    if (trial.in_store()) {
      const auto row = stored.find(trial.id);
      if (row == stored.end()) {
        // Closed meanwhile, and close() has forgotten it or will; or the disk: try again later.
        farm->leases.release(trial.id);
        continue;
      }
      lease = row->second;
    }
    if (!farm->leases.grant(trial.id, call->life, lease.first, lease.second, clock_.now_ms())) continue;
    metrics_.leases_granted.add();
    const std::shared_ptr<Job> job = farm->jobs.find(trial.job_id);
    const bool is_race = trial.work.kind == WorkKind::kRace;
    const LogAbout about({.job = trial.job_id,
                          .trial = is_race ? std::string_view() : trial.id,
                          .worker = call->life.worker_id,
                          .request = job ? job->row().request_id : std::string_view(),
                          .race = is_race ? trial.id : std::string_view(),
                          .attempt = lease.first});
    spdlog::debug("{} is leased to {}", trial.id, call->life.worker_id);
    if (is_race) farm->races.leased(trial.id, clock_.now_ms());
    if (job) job->count_lease(store_ms);
    farm->builds.forget(trial.id);  // what it wanted of an earlier attempt
    deliver(*farm, trial.id, *call);
  }
}

void Coordinator::deliver(FarmState& farm, const std::string& trial_id, SyncCall& call) {
  to_proto(*farm.leases.find(trial_id), call.reply->add_leases());
  if (farm.workers.kind(call.session()) != WorkerKind::kRunner) return;
  build_office_.want(farm, trial_id);
  call.awaits.insert(trial_id);
}

// Writes leases of trials in one commit. Returns what one of them took, in milliseconds.
double Coordinator::store_leases(const std::vector<LeaseWish>& wishes, StoredLeases& stored) {
  if (wishes.empty()) return 0;
  const Stopwatch storing;
  const Result<std::vector<TrialRow>> rows = store_.lease_trials(wishes);
  metrics_.lease_commit_s.observe(storing.elapsed_ms() / 1000);
  news_.note_commit(rows.status());
  if (!rows) {
    if (const auto more = disk_log_.say())
      spdlog::error("{} trials cannot be leased: {}{}", wishes.size(), rows.message(), *more);
    return 0;
  }
  for (const TrialRow& row : *rows) stored[row.id] = {row.attempt, row.fencing};
  return storing.elapsed_ms() / static_cast<double>(wishes.size());
}

void Coordinator::store_race_lease(const SyncCall& call, const LeaseTable::Trial& race,
                                   StoredLeases& stored) {
  const LogAbout about({.job = race.job_id, .worker = call.life.worker_id, .race = race.id});
  const Result<OpenRaceRow> row = store_.lease_race(race.id, call.life.worker_id, call.life.incarnation);
  if (row)
    stored[race.id] = {row->attempt, row->fencing};
  else if (const auto more = disk_log_.say())
    spdlog::error("{} cannot be leased: {}{}", race.id, row.message(), *more);
}

// Answers the calls with news, those whose time is over and all when the daemon stops; the others wait.
void Coordinator::finish_or_wait(Calls arrived) {
  {
    const Locked farm(farm_);
    const int64_t now = clock_.now_ms();
    const auto finish = [&](std::unique_ptr<SyncCall>& call) {
      if (!call->answered) {
        const Workers::Drain drain = farm->workers.take_drain(call->session());
        call->reply->set_drain(drain != Workers::Drain::kNo);
        if (drain == Workers::Drain::kNews) call->deadline_ms = now;
        if (!farm->stopping && !call->gone && !call->has_news() && now < call->deadline_ms) return false;
        add_best_times(*farm, *call);
        // A worker outlives its daemon: it keeps its work and tries again. But what was stored is
        // acknowledged.
        call->answer(farm->stopping && call->reply->acks_size() == 0 ? farm->stopped() : Status::ok());
      }
      finished_.push_back(std::move(call));
      return true;
    };
    for (auto it = waiting_.begin(); it != waiting_.end();)
      it = finish(it->second) ? waiting_.erase(it) : std::next(it);
    for (std::unique_ptr<SyncCall>& call : arrived)
      if (!finish(call)) {
        std::string session = call->session();
        waiting_[std::move(session)] = std::move(call);
      }
  }
  metrics_.syncs_answered.add(finished_.size());
  metrics_.syncs_waiting = std::ssize(waiting_);
  for (const std::unique_ptr<SyncCall>& call : finished_) call->done(call->status);
  finished_.clear();
}

// The best times known of the tasks that the worker has leases of: they cut hopeless candidates.
void Coordinator::add_best_times(const FarmState& farm, SyncCall& call) const {
  std::set<std::pair<std::string, int>> told;
  const auto add = [&](const std::string& trial_id) -> double {
    const LeaseTable::Trial* const trial = farm.leases.find(trial_id);
    if (trial == nullptr || trial->work.kind != WorkKind::kTrial) return 0;
    const std::shared_ptr<const Job> job = farm.jobs.find(trial->job_id);
    if (job == nullptr) return 0;
    const auto best = job->best_ns().find(trial->work.task_index);
    if (best == job->best_ns().end()) return 0;
    if (told.emplace(trial->job_id, trial->work.task_index).second) {
      v1::BestTime* const news = call.reply->add_best();
      news->set_workload_key(trial->work.task.workload_key);
      news->set_target(trial->work.task.target);
      news->set_best_ns(best->second);
    }
    return best->second;
  };
  for (v1::Lease& lease : *call.reply->mutable_leases())
    if (const double best = add(lease.trial_id()); best > 0) lease.set_best_ns(best);
  for (const LeaseTable::Held& held : call.held) add(held.trial_id);
}

}  // namespace tuner
