#include "tuner/daemon/rooms/result_intake.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <utility>

#include "proto/convert.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/edge/messages.h"
#include "tuner/daemon/search/stopwatch.h"

namespace tuner {

ResultIntake::ResultIntake(Parts parts, Wake wake) : of_(parts), wake_(std::move(wake)) {}

void ResultIntake::accept(const SyncCalls& calls) {
  accept_results(calls);
  for (const std::unique_ptr<SyncCall>& call : calls)
    if (!call->answered && call->request->races_size() > 0) accept_races(*call);
}

std::vector<Incoming> ResultIntake::read_results(const SyncCalls& calls) {
  std::vector<Incoming> results;
  for (const std::unique_ptr<SyncCall>& call : calls) {
    if (call->answered) continue;
    for (int i = 0; i < call->request->results_size(); ++i) {
      const v1::MeasureRecord& message = call->request->results(i);
      Result<MeasureRecord> record = from_proto(message, str("results[", i, "]"));
      if (record) {
        results.push_back({.call = call.get(),
                           .record = *std::move(record),
                           .check_ms = message.check_ms(),
                           .refused = message.refused()});
        continue;
      }
      // Sent again it would be no better: let the worker forget it, and have the trial run again.
      const std::string trial = shown(message.trial_id());
      const LogAbout about({.trial = trial, .worker = call->life.worker_id, .attempt = message.attempt()});
      if (const auto more = refused_log_.say())
        spdlog::error("a result of worker {} is refused: {}{}", call->life.worker_id, shown(record.message()),
                      *more);
      add_ack(message.trial_id(), message.attempt(), call->reply);
      of_.metrics.results_refused.add();
      const Locked farm(of_.farm);
      farm->leases.drop(message.trial_id(), call->life);
    }
  }
  return results;
}

// One commit for all; if that is refused, halves, so that one bad record costs the others little.
void ResultIntake::store_results(std::span<Incoming* const> results) {
  if (results.empty()) return;
  std::vector<MeasureRecord> records;
  records.reserve(results.size());
  for (const Incoming* const r : results) records.push_back(r->record);
  const std::string first = shown(records[0].trial_id);
  const LogAbout about(
      {.trial = first, .worker = results[0]->call->life.worker_id, .attempt = records[0].attempt});
  const Stopwatch storing;
  const Status status = of_.store.add_records(records);
  of_.metrics.result_commit_s.observe(storing.elapsed_ms() / 1000);
  if (!status && results.size() > 1) {
    store_results(results.first(results.size() / 2));
    store_results(results.subspan(results.size() / 2));
    return;
  }
  for (Incoming* const r : results) {
    r->stored = status.is_ok();
    r->known = status.code() != StatusCode::kNotFound;
  }
  if (status) {
    of_.news.note_commit(status);
    for (const MeasureRecord& record : records)
      of_.metrics.results.at(static_cast<size_t>(record.outcome)).add();
    return;
  }
  if (status.code() != StatusCode::kNotFound) {
    of_.metrics.results_not_stored.add();
    if (status.code() != StatusCode::kInvalidArgument) of_.news.note_commit(status);
  }
  if (const auto more = disk_log_.say())
    spdlog::error("the result of trial {} is not stored: {}{}", first, shown(status.message()), *more);
}

// Stores the results, then tells the searches. Fills acks; what could not be stored stays unacknowledged and
// comes again.
void ResultIntake::accept_results(const SyncCalls& calls) {
  std::vector<Incoming> results = read_results(calls);
  if (results.empty()) return;
  std::vector<LeaseTable::Loss> losses;
  std::erase_if(results, [&](Incoming& r) {
    const Result<bool> believed = of_.referee.is_of_its_sender(r);
    return !believed || !*believed || of_.referee.take_impossible(r, losses) || take_failure(r, losses);
  });
  // One result of an attempt is enough. What comes with it once more is acknowledged when that is stored.
  std::map<std::pair<std::string_view, int>, const Incoming*> first;
  std::vector<std::pair<const Incoming*, const Incoming*>> repeated;
  std::vector<Incoming*> all;
  for (Incoming& r : results) {
    const auto [it, is_new] = first.try_emplace({r.record.trial_id, r.record.attempt}, &r);
    if (is_new)
      all.push_back(&r);
    else
      repeated.emplace_back(&r, it->second);
  }
  const Stopwatch storing;
  store_results(all);
  const double store_ms = storing.elapsed_ms() / static_cast<double>(std::max<size_t>(all.size(), 1));
  std::vector<DeathRow> survived;
  {
    const Locked farm(of_.farm);
    for (const Incoming* const r : all) {
      if (!r->stored && r->known) {
        farm->leases.renew(r->record.trial_id, r->call->life, of_.clock.now_ms());
        continue;
      }
      add_ack(r->record.trial_id, r->record.attempt, r->call->reply);
      if (r->known) close(*farm, *r, store_ms, survived);
    }
    for (const auto& [again, stored] : repeated)
      if (stored->stored || !stored->known)
        add_ack(again->record.trial_id, again->record.attempt, again->call->reply);
  }
  of_.news.notify();
  of_.losses.survived(std::move(survived));
  of_.losses.handle(std::move(losses));
}

// A worker that could not measure a trial blames no trial: another worker is to have it first. What a runner
// refuses is a fault of the trial alone, and of no worker. False: it is a result like others.
bool ResultIntake::take_failure(const Incoming& result, std::vector<LeaseTable::Loss>& losses) {
  const MeasureRecord& record = result.record;
  if (record.outcome != Outcome::kDeviceLost) return false;
  const SyncCall& call = *result.call;
  of_.metrics.device_lost.add();
  const std::string id = shown(record.trial_id);
  const LogAbout about({.trial = id, .worker = call.life.worker_id, .attempt = record.attempt});
  const Locked farm(of_.farm);
  if (farm->reruns.find(record.trial_id) != nullptr) return false;
  const int64_t pause = result.refused ? 0 : farm->workers.count_failure(call.session(), of_.clock.now_ms());
  if (pause > 0)
    spdlog::warn("worker {} gets nothing for {} s: it keeps failing to measure; the last: {}",
                 call.life.worker_id, pause / 1000, shown(record.message));
  const LeaseTable::Trial* const trial = farm->leases.find(record.trial_id);
  if (trial != nullptr && trial->attempt == record.attempt)
    if (auto loss = farm->leases.fault(record.trial_id, call.life.worker_id, shown(record.message))) {
      of_.metrics.lost(LostWhy::kFault, 1);
      losses.push_back(*std::move(loss));
    }
  add_ack(record.trial_id, record.attempt, call.reply);
  return true;
}

void ResultIntake::close(FarmState& farm, const Incoming& result, double store_ms,
                         std::vector<DeathRow>& survived) {
  const MeasureRecord& record = result.record;
  const std::string& id = record.trial_id;
  farm.workers.count_trial(result.call->session());
  of_.referee.note_pace(farm, result);
  farm.ledger.count_result(of_.options.wall_us());
  if (const LeaseTable::Trial* const trial = farm.leases.find(id);
      trial != nullptr && farm.ledger.suspects(trial->work))
    survived.push_back(PoisonLedger::line(trial->work, result.call->life, DeathPhase::kSurvived,
                                          /*alone=*/false, of_.options.wall_us()));
  if (farm.reruns.find(id) != nullptr) {
    if (farm.reruns.take(record)) farm.leases.close(id, record.run_ms);
    return;
  }
  const std::optional<std::string> job_id = farm.leases.close(id, record.run_ms);
  const std::shared_ptr<Job> job = job_id ? farm.jobs.find(*job_id) : nullptr;
  const LogAbout about({.job = job_id ? *job_id : std::string_view(),
                        .trial = id,
                        .worker = result.call->life.worker_id,
                        .request = job ? job->row().request_id : std::string_view(),
                        .attempt = record.attempt});
  spdlog::debug("the result of {} is stored: {}", id, outcome_name(record.outcome));
  if (job == nullptr) return;
  job->results_came();
  job->count_costs(record, result.check_ms, store_ms);
  wake_.search(*job_id);
}

// Stores results of races, then tells the searches. What cannot be stored stays unacknowledged and comes
// again.
void ResultIntake::accept_races(SyncCall& call) {
  for (const v1::RaceResult& result : call.request->races())
    if (accept_race(call, result)) add_ack(result.race_id(), result.attempt(), call.reply);
  of_.news.notify();
}

// False: the disk refuses it. The result of a race that nobody knows, or that has ended, is done with.
bool ResultIntake::accept_race(SyncCall& call, const v1::RaceResult& message) {
  const std::string& id = message.race_id();
  RaceRow row;
  bool of_job = false;
  LeaseTable::Claim claim;
  Work work;
  const WorkerLife sender = sender_of(message.environment(), call.life);
  {
    const Locked farm(of_.farm);
    const Races::Race* const race = farm->races.under_way(id);
    if (race == nullptr) return true;
    if (sender.worker_id == call.life.worker_id)
      claim =
          farm->leases.claim(id, message.attempt(), sender, of_.clock.now_ms()).value_or(LeaseTable::Claim{});
    if (const LeaseTable::Trial* const open = farm->leases.find(id)) work = open->work;
    of_job = !race->job_id.empty();
    row.job_id = race->job_id;
    row.task_index = race->task_index;
  }
  if (!claim.granted)
    return of_.referee.refuse(call, id, message.attempt(), "it did not have that attempt of the race"), true;
  std::string error = message.error();
  const std::string job_id = row.job_id, shown_id = shown(id);
  const LogAbout about({.job = job_id, .race = shown_id, .attempt = message.attempt()});
  if (error.empty()) {
    Result<RaceRow> result = from_proto(message, "race");
    if (result) {
      result->job_id = row.job_id;
      result->task_index = row.task_index;
      result->finished_at_us = of_.options.wall_us();
      result->environment.worker_id = sender.worker_id;
      result->environment.worker_incarnation = sender.incarnation;
      row = *std::move(result);
      std::vector<LeaseTable::Loss> losses;
      if (const auto taken = of_.referee.take_impossible(call, message, row, work, claim, losses)) {
        of_.losses.handle(std::move(losses));
        return *taken;
      }
    } else {
      spdlog::error("a race's result is refused: {}", shown(result.message()));
      error = result.message();
    }
  }
  if (of_job) {
    Status stored = of_.store.end_race(id, error.empty() ? &row : nullptr, error);
    if (stored.code() == StatusCode::kInvalidArgument) {
      error = stored.message();
      stored = of_.store.end_race(id, nullptr, error);
    }
    if (!stored && stored.code() != StatusCode::kNotFound) {
      of_.news.note_commit(stored);
      if (const auto more = disk_log_.say())
        spdlog::error("{} is not stored: {}{}", shown(id), shown(stored.message()), *more);
      const Locked farm(of_.farm);
      farm->leases.renew(id, call.life, of_.clock.now_ms());
      return false;
    }
  }
  const Locked farm(of_.farm);
  if (farm->races.under_way(id) == nullptr) return true;
  of_.metrics.races_ended.add();
  farm->leases.close(id);
  if (error.empty())
    farm->races.won(id, row);
  else
    farm->races.failed(id, error);
  wake_.search(row.job_id);
  return true;
}

}  // namespace tuner
