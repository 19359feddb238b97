#include "tests/sim/farm.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "db/open_race.h"
#include "tests/sim/builder.h"
#include "tests/sim/worker.h"
#include "tests/tuner/analytic_task.h"

namespace tuner::sim {

using testing::analytic_record;
using testing::analytic_space;
using testing::kAnalyticKey;
using testing::kAnalyticTarget;

bool is_refused(const std::string& config) {
  const Config values = config_from_text(config).value();
  return values.at("a") == 3 && values.at("b") == 3;
}

Farm::~Farm() = default;

void Farm::call(const std::function<void(Answer)>& deliver, const Answer& answer) {
  const auto lost = [this] {
    const bool is = faults_last() && dice.chance(loss_);
    outcome.lost += is ? 1 : 0;
    return is;
  };
  const int copies = faults_last() && dice.chance(repetition_) ? 2 : 1;
  outcome.repeated += copies - 1;
  for (int i = 0; i < copies; ++i) {
    if (lost()) continue;
    at(dice.between(0, faults_last() ? 200 : 2), [this, deliver, answer, lost] {
      if (daemon_ == nullptr) return at(1, [answer] { answer(unavailable("connection refused")); });
      deliver([this, answer, lost](const Status& status) {
        if (!lost()) at(dice.between(0, faults_last() ? 200 : 2), [answer, status] { answer(status); });
      });
      turn();
    });
  }
}

void Farm::start_daemon() {
  Result<std::unique_ptr<Store>> store = Store::open(plan_.folder + "/farm.db", Store::Mode::kWrite);
  CHECK(store.is_ok()) << store.message();
  store_ = *std::move(store);
  blobs_ = BlobStore::open(plan_.folder + "/artifacts", artifact_bytes_).value();
  made_ = MadeIndex::open(plan_.folder + "/made.db", 64, "release").value();
  CoordinatorOptions options;
  options.by_hand = true;
  options.resume_jobs = true;
  options.make_space = [](const JobRow::Task&) { return analytic_space(6, kTemplates); };
  options.templates = kTemplates;
  options.check_task = [](const JobRow::Task&) { return Status::ok(); };
  options.make_session = [this] { return str("s", ++sessions_); };
  options.wall_us = [this] { return (clock.now + sessions_) * 1000 + static_cast<int64_t>(++order_ % 1000); };
  options.blobs = blobs_.get();
  options.made = made_.get();
  daemon_ = std::make_unique<Coordinator>(*store_, clock, options);
  const Status started = daemon_->start();
  if (!started) violation("the daemon does not start again: " + started.message());
  ++daemon_life_;
}

void Farm::close_daemon() {
  daemon_.reset();
  made_in_this_life.clear();
  made_.reset();
  blobs_.reset();
  store_.reset();
}

// As kill -9 does: nothing is said to anybody, and what is not in the store is gone.
void Farm::kill_daemon() {
  if (daemon_ == nullptr) return;
  ++outcome.daemon_kills;
  close_daemon();
  at(dice.between(10, 15'000), [this] { start_daemon(); });
}

void Farm::submit(int number) {
  auto request = std::make_shared<v1::SubmitRequest>();
  request->set_request_id(str("request ", number));
  v1::TaskSpec* const task = request->add_tasks();
  task->set_workload_key(kAnalyticKey);
  task->set_target(kAnalyticTarget);
  request->set_trials(static_cast<int>(8 + number * 5));
  request->set_search(number % 2 == 0 ? "random" : "genetic");
  request->set_seed(static_cast<uint64_t>(number));
  auto reply = std::make_shared<v1::SubmitReply>();
  call([this, request, reply](const Answer& answer) { answer(daemon_->submit(*request, reply.get())); },
       [this, number, reply](const Status& status) {
         if (!status) return;
         const auto [known, is_new] = submitted_.emplace(number, reply->job_id());
         if (!is_new && known->second != reply->job_id())
           violation(str("request ", number, " made two jobs: ", known->second, " and ", reply->job_id()));
       });
  at(5'000, [this, number] {
    if (!submitted_.contains(number)) submit(number);  // no answer: the same call again
  });
}

void Farm::tick() {
  turn();
  at(250, [this] { tick(); });
}

void Farm::cause_trouble() {
  if (!faults_last()) return;
  if (dice.chance(trouble_)) {
    Member& member = *members_[static_cast<size_t>(dice.below(std::ssize(members_)))];
    switch (dice.below(4)) {
      case 0:
        kill_daemon();
        break;
      case 1:
        member.pause(dice.between(100, 40'000));
        break;
      default:
        member.kill();
    }
  }
  at(500, [this] { cause_trouble(); });
}

bool Farm::all_ended() const {
  if (daemon_ == nullptr || std::ssize(submitted_) < wanted_jobs_) return false;
  const Result<std::vector<JobRow>> jobs = store_->jobs();
  return jobs && std::ranges::all_of(*jobs, [](const JobRow& job) { return has_ended(job.state); });
}

// Every task's answer is that of a race, or it is said why not.
void Farm::check_answers(const JobRow& job) {
  std::string told;
  const auto events = store_->events(job.id, 0, 10'000);
  if (!events) return violation(events.message());
  for (const auto& [seq, json] : *events) told += json + "\n";
  const bool excuse = told.find("not certified") != std::string::npos ||
                      told.find("not raced") != std::string::npos ||
                      told.find("its race has no result") != std::string::npos;
  const Result<std::vector<RaceRow>> races = store_->races(job.id);
  const bool raced = races && std::ranges::any_of(*races, [](const RaceRow& r) { return r.certified; });
  const auto best = store_->best(job.tasks[0].workload_key, job.tasks[0].target);
  // Another job's race may have settled the task before.
  if (!raced && !excuse && !(best && best->certified))
    violation("job " + job.id + " ended without a race: " + told);
}

void Farm::check_record(const TrialWithRecord& t) {
  const tuner::Outcome outcome = t.record->outcome;
  // A trial that only the liar was there to measure ends so, as it should.
  const bool nobody_else = t.record->message.find("its result cannot be") != std::string::npos;
  if (outcome == tuner::Outcome::kOk &&
      t.record->run_ns != analytic_record(t.trial.id, 1, t.trial.config).run_ns)
    violation("a lie is believed: " + t.trial.id);
  if (outcome == tuner::Outcome::kDeviceLost && !nobody_else)
    violation("an innocent trial was given up: " + t.trial.id + ": " + t.record->message);
  if (outcome == tuner::Outcome::kBuildError && !is_refused(t.trial.config))
    violation("a good config was refused: " + t.trial.config);
}

void Farm::check() {
  std::map<std::string, int> terminal;
  const Status read = store_->for_each_record("", [&](const TrialWithRecord& t) {
    ++terminal[t.trial.id];
    check_record(t);
    return true;
  });
  if (!read) violation(read.message());
  for (const auto& [id, n] : terminal)
    if (n != 1) violation(str("trial ", id, " has ", n, " terminal records"));
  for (const auto& [trial_and_attempt, times] : acknowledged) {
    const auto& key = trial_and_attempt;
    const auto records = store_->records(key.first);
    const bool there = records && std::ranges::any_of(*records, [&](const MeasureRecord& r) {
                         return r.attempt == key.second;
                       });
    if (!there) violation(str("acknowledged and lost: trial ", key.first, " attempt ", key.second));
  }
  for (const auto& [number, id] : submitted_) {
    const Result<JobRow> job = store_->job(id);
    if (!job) {
      violation("acknowledged and lost: job " + id);
      continue;
    }
    if (job->state != JobState::kFinished)
      violation(str("job ", id, " is ", job_state_name(job->state), ": ", job->message));
    if (store_->trials_done(id).value() < job->trials)
      violation(str("job ", id, " has ", store_->trials_done(id).value(), " of ", job->trials, " trials"));
    if (!store_->open_races(id)->empty()) violation("job " + id + " left a race open");
    check_answers(*job);
  }
  if (std::ssize(store_->jobs().value()) != wanted_jobs_)
    violation(str(store_->jobs()->size(), " jobs in the store, ", wanted_jobs_, " were submitted"));
}

// Of all that happens here only lies are a worker's fault.
void Farm::check_nobody_is_paused() {
  v1::ListWorkersReply list;
  if (daemon_ == nullptr || !daemon_->list_workers(&list)) return;
  for (const v1::WorkerSummary& worker : list.workers())
    if (worker.paused_s() > 0 && worker.quarantined() == 0)
      violation(str(worker.worker_id(), " is paused: ", worker.paused_why()));
}

// What nobody wants any more is in no queue, and a builder that works at it has ended.
bool Farm::no_order_is_left() const {
  const DaemonNow now = daemon_->now();
  return now.orders_waiting == 0 && now.orders_at_builders == 0;
}

void Farm::make_members() {
  const bool lies = outcome.workers > 1 && dice.chance(0.4);
  const bool other = outcome.workers > 1 && dice.chance(0.5), mute = dice.chance(0.5);
  const bool apart = dice.chance(0.6);
  for (int i = 0; i < outcome.workers; ++i) {
    Worker::Kind kind = lies && i == 0 ? Worker::Kind::kLiar : Worker::Kind::kHonest;
    if (other && i == outcome.workers - 1) kind = mute ? Worker::Kind::kOtherMute : Worker::Kind::kOther;
    if (apart && kind == Worker::Kind::kHonest && dice.chance(0.7)) kind = Worker::Kind::kRunner;
    members_.push_back(std::make_unique<Worker>(*this, i, kind));
  }
  if (apart) outcome.builders = static_cast<int>(dice.between(1, 3));
  for (int i = 0; i < outcome.builders; ++i) {
    constexpr Builder::Kind kOthers[] = {Builder::Kind::kHonest, Builder::Kind::kFlawed,
                                         Builder::Kind::kOther, Builder::Kind::kOtherMute};
    const Builder::Kind kind = i == 0 ? Builder::Kind::kHonest : kOthers[dice.below(std::ssize(kOthers))];
    members_.push_back(std::make_unique<Builder>(*this, i, kind));
  }
  for (const std::unique_ptr<Member>& member : members_)
    at(dice.between(0, 3'000), [m = member.get()] { m->start(); });
}

Outcome Farm::run() {
  loss_ = dice.chance(0.7) ? 0.001 * static_cast<double>(dice.between(1, 150)) : 0;
  repetition_ = dice.chance(0.7) ? 0.001 * static_cast<double>(dice.between(1, 150)) : 0;
  trouble_ = dice.chance(0.9) ? 0.01 * static_cast<double>(dice.between(1, 25)) : 0;
  outcome.workers = static_cast<int>(dice.between(1, 4));
  outcome.jobs = wanted_jobs_ = static_cast<int>(dice.between(1, 3));
  faults_end_ = clock.now + plan_.faults_ms;
  artifact_bytes_ = dice.chance(0.4) ? 1'024 : int64_t{1} << 20;
  start_daemon();
  make_members();
  for (int i = 0; i < wanted_jobs_; ++i) at(dice.between(0, plan_.faults_ms / 2), [this, i] { submit(i); });
  at(0, [this] { tick(); });
  at(500, [this] { cause_trouble(); });
  const int64_t begin = clock.now;
  int64_t looked = 0;
  while (clock.now - begin < plan_.limit_ms) {
    const Event event = events_.top();
    events_.pop();
    clock.now = event.at_ms;
    note("t", clock.now);
    event.f();
    if (faults_last() || clock.now - looked < 1'000) continue;
    looked = clock.now;
    if (all_ended() && no_order_is_left()) break;
  }
  outcome.virtual_ms = clock.now - begin;
  outcome.trace = digest_;
  if (daemon_ == nullptr || !all_ended())
    violation(
        str("jobs have not ended ", (plan_.limit_ms - plan_.faults_ms) / 1000, " s after the last fault"));
  else
    check();
  if (daemon_ != nullptr && all_ended() && !no_order_is_left())
    violation("all jobs have ended, and builders still have orders");
  check_nobody_is_paused();
  close_daemon();
  return std::move(outcome);
}

Outcome simulate(const Plan& plan) { return Farm(plan).run(); }

}  // namespace tuner::sim
