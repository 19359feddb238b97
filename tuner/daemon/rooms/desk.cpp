#include "tuner/daemon/rooms/desk.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "proto/convert.h"
#include "tuner/daemon/edge/build_messages.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/edge/messages.h"
#include "tuner/daemon/edge/releases.h"
#include "tuner/daemon/rooms/farm_releases.h"
#include "tuner/daemon/search/stopwatch.h"

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

Desk::~Desk() { stop(); }

void Desk::start() {
  looked_ms_ = of_.clock.now_ms();
  of_.metrics.desk_turned_ms = looked_ms_;
  if (!of_.options.by_hand) thread_ = std::thread([this] { loop(); });
}

void Desk::stop() {
  {
    const Locked inbox(inbox_);
    inbox->stopping = true;
  }
  come_.notify_one();
  if (thread_.joinable()) thread_.join();
}

uint64_t Desk::sync(const v1::SyncRequest& request, v1::SyncReply* reply, SyncCall::Done done) {
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
    refused->done(Locked(of_.farm)->stopped());
  else
    come_.notify_one();
  return id;
}

void Desk::cancel_sync(uint64_t call) {
  {
    const Locked inbox(inbox_);
    const auto found = std::ranges::find(inbox->arrived, call, [](const auto& c) { return c->id; });
    if (found != inbox->arrived.end())
      (*found)->gone = true;
    else
      inbox->gone.insert(call);  // it waits, or is being answered
  }
  come_.notify_one();
}

void Desk::wake() {
  {
    const Locked inbox(inbox_);
    inbox->woken = true;
  }
  come_.notify_one();
}

struct Desk::Batch {
  SyncCalls arrived;
  std::set<uint64_t> gone;
  bool last = false;  // the daemon stops, and nothing is left
};

Desk::Batch Desk::Inbox::take() {
  Batch batch;
  const auto taken = static_cast<std::ptrdiff_t>(std::min(arrived.size(), kMostCalls));
  batch.arrived.assign(std::make_move_iterator(arrived.begin()),
                       std::make_move_iterator(arrived.begin() + taken));
  arrived.erase(arrived.begin(), arrived.begin() + taken);
  batch.gone = std::exchange(gone, {});
  woken = false;
  batch.last = stopped = stopping && arrived.empty();
  return batch;
}

void Desk::loop() {
  for (bool last = false; !last;) {
    int64_t until = looked_ms_ + kLookMs;
    for (const auto& [session, call] : waiting_) until = std::min(until, call->deadline_ms);
    const int64_t pause = std::clamp<int64_t>(until - of_.clock.now_ms(), 0, kLookMs);
    Batch batch;
    {
      Locked inbox(inbox_);
      inbox.wait_for(come_, std::chrono::milliseconds(pause),
                     [&] { return inbox->some() || inbox->stopping; });
      batch = inbox->take();
    }
    last = batch.last;
    of_.metrics.desk_turned_ms = of_.clock.now_ms();
    of_.metrics.desk_calls.observe(static_cast<double>(batch.arrived.size()));
    const Stopwatch turn;
    answer(std::move(batch.arrived), batch.gone);
    of_.metrics.desk_turn_s.observe(turn.elapsed_ms() / 1000);
  }
}

void Desk::turn() {
  Batch batch = Locked(inbox_)->take();
  answer(std::move(batch.arrived), batch.gone);
}

void Desk::answer(SyncCalls arrived, const std::set<uint64_t>& gone) {
  drop_gone(gone, arrived);
  begin_calls(arrived);
  of_.results.accept(arrived);
  look_after_leases();
  std::vector<SyncCall*> calls;
  {
    const Locked farm(of_.farm);
    tell_revoked(*farm);
    if (farm->leases.queued() > 0)
      for (const auto& [session, call] : waiting_) calls.push_back(call.get());
    std::ranges::sort(calls, {}, &SyncCall::id);  // who has waited longest chooses first
    for (const std::unique_ptr<SyncCall>& call : arrived) {
      if (call->answered || !speaks(*farm, *call)) continue;
      of_.leasing.take_heartbeat(*farm, *call, /*first=*/true);
      of_.builds.take_awaits(*farm, *call);
      if (!call->gone) calls.push_back(call.get());
    }
  }
  of_.leasing.lease_to(calls);
  of_.builds.serve(waiting_, arrived);
  finish_or_wait(std::move(arrived));
}

// Callers that have gone: nobody would hear of new leases. One that brings results is taken in first: they
// are worth having whoever hears of it.
void Desk::drop_gone(const std::set<uint64_t>& gone, SyncCalls& arrived) {
  const Locked farm(of_.farm);
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

void Desk::begin_calls(SyncCalls& arrived) {
  std::vector<LeaseTable::Loss> losses;
  {
    const Locked farm(of_.farm);
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
  of_.metrics.lost(LostWhy::kGivenBack, losses.size());
  of_.losses.handle(losses);
}

// False: the session is unknown, and the call answered.
bool Desk::begin_call(FarmState& farm, SyncCall& call, std::vector<LeaseTable::Loss>& losses) {
  const v1::SyncRequest& request = *call.request;
  const int64_t now = of_.clock.now_ms();
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
  call.deadline_ms = now + std::clamp<int64_t>(request.wait_ms(), 0, of_.options.max_wait_ms);
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
  of_.builds.take_builds(farm, call);
  return true;
}

// How far the races are that this worker runs.
void Desk::take_courses(FarmState& farm, const SyncCall& call) {
  for (const v1::HeldLease& held : call.request->held()) {
    const WorkerLife* const owner = farm.leases.owner(held.trial_id());
    if (owner == nullptr || *owner != call.life || !held.has_race() ||
        !farm.races.take_course(held.trial_id(), from_proto(held.race())))
      continue;
    if (const std::shared_ptr<Job> job = farm.jobs.find(farm.races.find(held.trial_id())->job_id))
      job->note_race();
    of_.news.notify();
  }
}

// A few times a second: whoever waits here is alive, and so are its leases; others run out.
void Desk::look_after_leases() {
  std::vector<LeaseTable::Loss> losses;
  {
    const Locked farm(of_.farm);
    const int64_t now = of_.clock.now_ms();
    if (now - looked_ms_ < kLookMs) return;
    looked_ms_ = now;
    for (const auto& [session, call] : waiting_) {
      if (farm->workers.check(session, call->number, now) == Workers::Call::kCurrent && !call->held.empty())
        farm->leases.heartbeat(call->life, call->held, now);
    }
    losses = farm->leases.expire(now);
    of_.builds.look_after(*farm, waiting_);
  }
  of_.metrics.lost(LostWhy::kExpired, losses.size());
  of_.losses.handle(losses);
}

// False: the call does not speak for its worker any more, and is answered.
bool Desk::speaks(FarmState& farm, SyncCall& call) {
  switch (farm.workers.check(call.session(), call.number, of_.clock.now_ms())) {
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
void Desk::tell_revoked(FarmState& farm) {
  const std::set<WorkerLife> owners = farm.leases.take_revoked();
  for (const auto& [session, call] : waiting_)
    if (speaks(farm, *call) && owners.contains(call->life))
      of_.leasing.take_heartbeat(farm, *call, /*first=*/false);
}

// Answers the calls with news, those whose time is over and all when the daemon stops; the others wait.
void Desk::finish_or_wait(SyncCalls arrived) {
  {
    const Locked farm(of_.farm);
    const int64_t now = of_.clock.now_ms();
    const auto finish = [&](std::unique_ptr<SyncCall>& call) {
      if (!call->answered) {
        const Workers::Drain drain = farm->workers.take_drain(call->session());
        call->reply->set_drain(drain != Workers::Drain::kNo);
        if (drain == Workers::Drain::kNews) call->deadline_ms = now;
        if (!farm->stopping && !call->gone && !call->has_news() && now < call->deadline_ms) return false;
        of_.leasing.add_best_times(*farm, *call);
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
  of_.metrics.syncs_answered.add(finished_.size());
  of_.metrics.syncs_waiting = std::ssize(waiting_);
  for (const std::unique_ptr<SyncCall>& call : finished_) call->done(call->status);
  finished_.clear();
}

}  // namespace tuner
