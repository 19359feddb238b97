#include "tests/sim/farm_simulator.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "db/open_race.h"
#include "db/store.h"
#include "proto/convert.h"
#include "tests/tuner/analytic_task.h"
#include "tuner/daemon/coordinator.h"

namespace tuner::sim {
namespace {

using testing::analytic_record;
using testing::analytic_space;
using testing::kAnalyticKey;
using testing::kAnalyticTarget;

// All of the release, the last in a new version.
const char* const kNewer = "newer";
const std::vector<TemplateVersion> kTemplates = {{"analytic", 1}, {kNewer, 2}};

class SimClock final : public Clock {
 public:
  int64_t now_ms() const override { return now; }
  int64_t now = 1'000'000;
};

// Draws that are the same with every standard library.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(double p) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < p; }

 private:
  std::mt19937_64 engine_;
};

class Farm;

// A worker: holds leases, works at one at a time, and owes results until they are acknowledged. What it owes
// survives it; what it holds does not.
class Worker {
 public:
  enum class Kind : uint8_t {
    kHonest,
    kLiar,      // sends what cannot be, or what it was not given, instead of some of its results
    kOther,     // of another release, and says so: has a template in another version
    kOtherMute  // the same, but it finds out when it is to build
  };
  Worker(Farm& farm, int number, Kind kind) : farm_(farm), id_(str("w", number)), kind_(kind) {}
  void start();
  void kill();
  void pause(int64_t ms);
  bool alive() const { return alive_; }

 private:
  struct Held {
    v1::Lease lease;
    v1::LeasePhase phase = v1::WAITING;
  };
  using Key = std::pair<std::string, int>;
  // Runs `f` on this worker `ms` from now, if it is still in the same life; later if it is stopped then.
  void after(int64_t ms, std::function<void()> f);
  void enter();
  void talk();
  v1::SyncRequest what_to_say() const;
  void take(const v1::SyncReply& reply);
  void work();
  void finish(const Key& key);
  Key lie(v1::MeasureRecord& record);
  bool lies() const { return kind_ == Kind::kLiar; }
  bool lacks_template(const v1::Lease& lease) const;
  void give_back(const v1::Lease& lease);

  Farm& farm_;
  const std::string id_;
  const Kind kind_;
  int life_ = 0;
  bool alive_ = false, talking_ = false, working_ = false;
  int64_t stopped_until_ = 0;
  uint64_t call_ = 0;  // the latest: answers to others are ignored
  std::string session_;
  std::map<Key, Held> held_;
  std::map<Key, v1::MeasureRecord> owed_;
  std::map<Key, v1::RaceResult> owed_races_;
  std::map<Key, v1::HeldLease> returned_;  // until a reply: the daemon has heard
};

class Farm {
 public:
  explicit Farm(const Plan& plan) : plan_(plan), dice(plan.seed) {}
  Outcome run();

  void at(int64_t ms, std::function<void()> f) { events_.push({clock.now + ms, ++order_, std::move(f)}); }
  void note(std::string_view what, int64_t number) {
    for (const char c : what) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 1099511628211u;
    digest_ = (digest_ ^ static_cast<uint64_t>(number)) * 1099511628211u;
  }
  void violation(const std::string& what) { outcome.violations.push_back(what); }
  bool faults_last() const { return clock.now < faults_end_; }

  // A call to the daemon and its answer, if neither is lost. `deliver` runs when it arrives and the daemon is
  // there; it gets what is to be called with the answer.
  using Answer = std::function<void(const Status&)>;
  void call(const std::function<void(Answer)>& deliver, const Answer& answer);
  Coordinator* daemon() { return daemon_.get(); }
  void turn() {
    if (daemon_ != nullptr) daemon_->turn();
  }

  SimClock clock;
  Outcome outcome;
  std::map<std::pair<std::string, int>, int> acknowledged;  // (trial, attempt) -> times
  std::set<std::string> acknowledged_races;
  std::map<std::string, int64_t> tokens;  // the largest fencing token that any worker was given, by trial

 private:
  struct Event {
    int64_t at_ms;
    uint64_t order;
    std::function<void()> f;
    bool operator>(const Event& other) const {
      return std::pair(at_ms, order) > std::pair(other.at_ms, other.order);
    }
  };
  void start_daemon();
  void kill_daemon();
  void submit(int number);
  void tick();
  void cause_trouble();
  bool all_ended() const;
  void check();
  void check_answers(const JobRow& job);
  void check_nobody_is_paused();

  const Plan plan_;

 public:
  Dice dice;

 private:
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t order_ = 0, digest_ = 14695981039346656037u;
  int64_t faults_end_ = 0;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Coordinator> daemon_;
  int daemon_life_ = 0, sessions_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<int, std::string> submitted_;  // request -> job, as acknowledged
  int wanted_jobs_ = 0;
  double loss_ = 0, repetition_ = 0, trouble_ = 0;
};

// --- the worker ---

void Worker::after(int64_t ms, std::function<void()> f) {
  farm_.at(ms, [this, life = life_, f = std::move(f)] {
    if (!alive_ || life != life_) return;
    if (farm_.clock.now < stopped_until_)
      after(stopped_until_ - farm_.clock.now, f);
    else
      f();
  });
}

void Worker::start() {
  if (alive_) return;
  alive_ = true;
  ++life_;
  talking_ = working_ = false;
  session_.clear();
  enter();
}

void Worker::kill() {
  if (!alive_) return;
  alive_ = false;
  held_.clear();
  returned_.clear();
  ++farm_.outcome.worker_kills;
  farm_.at(farm_.dice.between(100, 20'000), [this] { start(); });
}

void Worker::pause(int64_t ms) {
  stopped_until_ = farm_.clock.now + ms;
  ++farm_.outcome.pauses;
}

void Worker::enter() {
  const uint64_t call = ++call_;
  talking_ = true;
  auto request = std::make_shared<v1::RegisterRequest>();
  request->set_worker_id(id_);
  request->set_incarnation(str(life_));
  request->set_protocol(1);
  request->add_targets(kAnalyticTarget);
  request->set_max_threads(4);
  request->set_races(true);
  if (kind_ != Kind::kOtherMute)
    for (const TemplateVersion& own : kTemplates) {
      v1::TemplateVersion* const has = request->add_templates();
      has->set_name(own.name);
      has->set_version(kind_ == Kind::kOther && own.name == kNewer ? own.version - 1 : own.version);
    }
  auto reply = std::make_shared<v1::RegisterReply>();
  farm_.call(
      [this, request, reply](const Farm::Answer& answer) {
        answer(farm_.daemon()->register_worker(*request, reply.get()));
      },
      [this, call, life = life_, reply](const Status& status) {
        if (!alive_ || life != life_ || call != call_) return;
        talking_ = false;
        if (!status) return after(farm_.dice.between(100, 2'000), [this] { enter(); });
        session_ = reply->session();
        talk();
      });
  after(10'000, [this, call] {
    if (call == call_ && talking_ && session_.empty()) enter();  // nobody answered
  });
}

v1::SyncRequest Worker::what_to_say() const {
  v1::SyncRequest request;
  request.set_session(session_);
  request.set_free_slots(std::max(0, 4 - static_cast<int>(held_.size())));
  request.set_wait_ms(owed_.empty() && owed_races_.empty() ? 2'000 : 0);
  for (const auto& [key, held] : held_) {
    v1::HeldLease* const h = request.add_held();
    h->set_trial_id(key.first);
    h->set_attempt(key.second);
    h->set_fencing(held.lease.fencing());
    h->set_phase(held.phase);
  }
  for (const auto& [key, returned] : returned_) *request.add_returned() = returned;
  for (const auto& [key, record] : owed_)
    if (request.results_size() < kMaxResultsPerSync) *request.add_results() = record;
  for (const auto& [key, race] : owed_races_)
    if (request.races_size() < kMaxRacesPerSync) *request.add_races() = race;
  return request;
}

void Worker::talk() {
  if (talking_ || session_.empty()) return;
  talking_ = true;
  const uint64_t call = ++call_;
  auto request = std::make_shared<v1::SyncRequest>(what_to_say());
  auto reply = std::make_shared<v1::SyncReply>();
  farm_.call(
      [this, request, reply](const Farm::Answer& answer) {
        // The messages live as long as the daemon may fill them.
        farm_.daemon()->sync(*request, reply.get(), [request, reply, answer](const Status& s) { answer(s); });
      },
      [this, call, life = life_, reply](const Status& status) {
        if (!alive_ || life != life_ || call != call_) return;
        talking_ = false;
        if (status.code() == StatusCode::kAborted) {
          session_.clear();
          return enter();
        }
        if (status) take(*reply);
        after(status ? 1 : farm_.dice.between(100, 1'000), [this] { talk(); });
      });
  after(12'000, [this, call] {
    if (call != call_ || !talking_) return;
    talking_ = false;  // its deadline
    talk();
  });
}

void Worker::take(const v1::SyncReply& reply) {
  for (const v1::Ack& ack : reply.acks()) {
    const Key key{ack.trial_id(), ack.attempt()};
    farm_.note("ack " + ack.trial_id(), ack.attempt());
    // What a liar sent may rightly be nowhere.
    if (owed_.erase(key) > 0 && !lies()) ++farm_.acknowledged[key];
    returned_.erase(key);
    if (owed_races_.erase(key) > 0) farm_.acknowledged_races.insert(key.first);
  }
  for (const v1::Ack& revoked : reply.revoked()) held_.erase({revoked.trial_id(), revoked.attempt()});
  for (const v1::Lease& lease : reply.leases()) {
    const Key key{lease.trial_id(), lease.attempt()};
    farm_.note("lease " + lease.trial_id(), lease.attempt());
    if (kind_ == Kind::kOther && lacks_template(lease))
      farm_.violation(id_ + " was given what it said it cannot build: " + lease.trial_id());
    if (returned_.contains(key)) continue;
    if (held_.contains(key) || owed_.contains(key) || owed_races_.contains(key)) continue;
    int64_t& token = farm_.tokens[lease.trial_id()];
    token = std::max(token, lease.fencing());
    held_[key] = {lease};
  }
  work();
}

void Worker::work() {
  if (working_ || held_.empty()) return;
  working_ = true;
  auto& [key, held] = *held_.begin();
  held.phase = v1::RUNNING;
  after(held.lease.finalists_size() > 0 ? farm_.dice.between(500, 8'000) : farm_.dice.between(5, 400),
        [this, key = key] { finish(key); });
}

v1::RaceResult raced(const v1::Lease& lease, int winner, bool certified, const std::string& worker,
                     const std::string& life) {
  v1::RaceResult r;
  r.set_race_id(lease.trial_id());
  r.set_attempt(lease.attempt());
  for (int i = 0; i < lease.finalists_size(); ++i) {
    v1::RaceFinalist* const f = r.add_finalists();
    f->set_trial_id(lease.finalists(i).trial_id());
    for (int process = 0; process < 3; ++process) {
      f->add_samples_ns(i == winner ? 500 : 600);
      f->add_sentinel_ns(250);
      f->add_process(process);
    }
  }
  r.set_winner(lease.finalists(winner).trial_id());
  r.add_tie_set(r.winner());
  r.set_time_ns(500);
  r.set_time_low_ns(495);
  r.set_time_high_ns(505);
  r.set_ratio(2);
  r.set_ratio_low(1.98);
  r.set_ratio_high(2.02);
  r.set_certified(certified);
  if (!certified) r.set_uncertified_why("the machine was too disturbed");
  *r.mutable_options() = lease.race();
  to_proto(tuner::Environment{.hardware = "formula",
                              .toolchain = "none",
                              .worker_id = worker,
                              .worker_incarnation = life,
                              .host = "h"},
           r.mutable_environment());
  return r;
}

bool Worker::lacks_template(const v1::Lease& lease) const {
  if (kind_ != Kind::kOther && kind_ != Kind::kOtherMute) return false;
  return lease.template_name() == kNewer ||
         std::ranges::any_of(lease.finalists(), [](const auto& f) { return f.template_name() == kNewer; });
}

void Worker::give_back(const v1::Lease& lease) {
  v1::HeldLease& returned = returned_[{lease.trial_id(), lease.attempt()}];
  returned.set_trial_id(lease.trial_id());
  returned.set_attempt(lease.attempt());
  returned.set_fencing(lease.fencing());
  returned.set_phase(v1::WAITING);
  returned.mutable_found()->set_name(kNewer);
  returned.mutable_found()->set_version(kTemplates.back().version - 1);
  ++farm_.outcome.given_back;
}

// Returns what the lie is about.
Worker::Key Worker::lie(v1::MeasureRecord& record) {
  const Key own{record.trial_id(), record.attempt()};
  if (!lies() || farm_.dice.chance(0.5)) return own;
  ++farm_.outcome.lies;
  record.set_outcome(v1::OK);
  record.clear_message();
  record.mutable_run_ns()->Clear();
  record.add_run_ns(700);  // better than any
  switch (farm_.dice.below(4)) {
    case 0:
      record.set_run_ns(0, 0.001);
      break;
    case 1:
      record.set_max_error(7);
      break;
    case 2:
      record.set_attempt(record.attempt() + 1000);  // none has so many
      break;
    default: {  // somebody else's
      auto other = farm_.tokens.begin();
      std::advance(other, farm_.dice.below(std::ssize(farm_.tokens)));
      if (other->first == own.first || other->first[0] != 't') return record.set_run_ns(0, 0.001), own;
      record.set_trial_id(other->first);
      record.set_attempt(1000 + static_cast<int>(farm_.dice.below(1000)));
    }
  }
  return {record.trial_id(), record.attempt()};
}

void Worker::finish(const Key& key) {
  working_ = false;
  if (const auto held = held_.find(key); held != held_.end()) {
    const v1::Lease lease = held->second.lease;
    held_.erase(held);
    if (lacks_template(lease)) {
      give_back(lease);
    } else if (lease.finalists_size() > 0) {
      owed_races_[key] = raced(lease, static_cast<int>(farm_.dice.below(lease.finalists_size())),
                               farm_.dice.chance(0.8), id_, str(life_));
      ++farm_.outcome.races;
    } else {
      v1::MeasureRecord record;
      to_proto(analytic_record(lease.trial_id(), lease.attempt(), lease.config()), &record);
      record.mutable_environment()->set_worker_id(id_);
      record.mutable_environment()->set_worker_incarnation(str(life_));
      owed_[lie(record)] = record;
      ++farm_.outcome.results;
    }
    if (talking_ && !session_.empty()) {  // a result interrupts the Sync that waits
      talking_ = false;
      after(1, [this] { talk(); });
    }
  }
  work();
}

// --- the farm ---

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
  CoordinatorOptions options;
  options.by_hand = true;
  options.resume_jobs = true;
  options.make_space = [](const JobRow::Task&) { return analytic_space(6, kTemplates); };
  options.templates = kTemplates;
  options.check_task = [](const JobRow::Task&) { return Status::ok(); };
  options.make_session = [this] { return str("s", ++sessions_); };
  options.wall_us = [this] { return (clock.now + sessions_) * 1000 + static_cast<int64_t>(++order_ % 1000); };
  daemon_ = std::make_unique<Coordinator>(*store_, clock, options);
  const Status started = daemon_->start();
  if (!started) violation("the daemon does not start again: " + started.message());
  ++daemon_life_;
}

// As kill -9 does: nothing is said to anybody, and what is not in the store is gone.
void Farm::kill_daemon() {
  if (daemon_ == nullptr) return;
  ++outcome.daemon_kills;
  daemon_.reset();
  store_.reset();
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
    Worker& worker = *workers_[static_cast<size_t>(dice.below(std::ssize(workers_)))];
    switch (dice.below(4)) {
      case 0:
        kill_daemon();
        break;
      case 1:
        worker.pause(dice.between(100, 40'000));
        break;
      default:
        worker.kill();
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

void Farm::check() {
  std::map<std::string, int> terminal;
  const Status read = store_->for_each_record("", [&](const TrialWithRecord& t) {
    ++terminal[t.trial.id];
    // A trial that only the liar was there to measure ends so, as it should.
    const bool nobody_else = t.record->message.find("its result cannot be") != std::string::npos;
    if (t.record->outcome == tuner::Outcome::kOk &&
        t.record->run_ns != analytic_record(t.trial.id, 1, t.trial.config).run_ns)
      violation("a lie is believed: " + t.trial.id);
    if (t.record->outcome == tuner::Outcome::kDeviceLost && !nobody_else)
      violation("an innocent trial was given up: " + t.trial.id + ": " + t.record->message);
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

Outcome Farm::run() {
  loss_ = dice.chance(0.7) ? 0.001 * static_cast<double>(dice.between(1, 150)) : 0;
  repetition_ = dice.chance(0.7) ? 0.001 * static_cast<double>(dice.between(1, 150)) : 0;
  trouble_ = dice.chance(0.9) ? 0.01 * static_cast<double>(dice.between(1, 25)) : 0;
  outcome.workers = static_cast<int>(dice.between(1, 4));
  outcome.jobs = wanted_jobs_ = static_cast<int>(dice.between(1, 3));
  faults_end_ = clock.now + plan_.faults_ms;
  const bool lies = outcome.workers > 1 && dice.chance(0.4);
  const bool other = outcome.workers > 1 && dice.chance(0.5), mute = dice.chance(0.5);
  start_daemon();
  for (int i = 0; i < outcome.workers; ++i) {
    Worker::Kind kind = lies && i == 0 ? Worker::Kind::kLiar : Worker::Kind::kHonest;
    if (other && i == outcome.workers - 1) kind = mute ? Worker::Kind::kOtherMute : Worker::Kind::kOther;
    workers_.push_back(std::make_unique<Worker>(*this, i, kind));
    at(dice.between(0, 3'000), [worker = workers_.back().get()] { worker->start(); });
  }
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
    if (all_ended()) break;
  }
  outcome.virtual_ms = clock.now - begin;
  outcome.trace = digest_;
  if (daemon_ == nullptr || !all_ended())
    violation(
        str("jobs have not ended ", (plan_.limit_ms - plan_.faults_ms) / 1000, " s after the last fault"));
  else
    check();
  check_nobody_is_paused();
  daemon_.reset();
  store_.reset();
  return std::move(outcome);
}

}  // namespace

Outcome simulate(const Plan& plan) { return Farm(plan).run(); }

}  // namespace tuner::sim
