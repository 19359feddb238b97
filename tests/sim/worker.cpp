#include "tests/sim/worker.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "proto/convert.h"
#include "tests/sim/builder.h"
#include "tests/tuner/analytic_task.h"

namespace tuner::sim {
namespace {

using testing::analytic_record;
using testing::kAnalyticTarget;

constexpr int kSlots = 4, kMostReturns = 3;

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

}  // namespace

v1::RegisterRequest Worker::hello() const {
  v1::RegisterRequest request = registration(id_, life());
  request.add_targets(kAnalyticTarget);
  request.set_max_threads(4);
  request.set_races(true);
  if (kind_ == Kind::kRunner) request.set_kind(v1::RUNNER);
  if (kind_ != Kind::kOtherMute && kind_ != Kind::kRunner)
    add_templates(request, /*newest=*/kind_ != Kind::kOther);
  return request;
}

v1::SyncRequest Worker::what_to_say() {
  v1::SyncRequest request;
  request.set_free_slots(std::max(0, kSlots - static_cast<int>(held_.size())));
  request.set_wait_ms(owed_.empty() && owed_races_.empty() ? 2'000 : 0);
  for (const auto& [key, held] : held_) {
    v1::HeldLease* const h = request.add_held();
    h->set_trial_id(key.first);
    h->set_attempt(key.second);
    h->set_fencing(held.lease.fencing());
    h->set_phase(held.phase);
    h->set_awaits_build(kind_ == Kind::kRunner && !held.answered);
  }
  for (const auto& [key, returned] : returned_) *request.add_returned() = returned;
  for (const auto& [key, record] : owed_)
    if (request.results_size() < kMaxResultsPerSync) *request.add_results() = record;
  for (const auto& [key, race] : owed_races_)
    if (request.races_size() < kMaxRacesPerSync) *request.add_races() = race;
  return request;
}

void Worker::forget() {
  held_.clear();
  returned_.clear();
  returns_.clear();
  working_ = false;
}

void Worker::hear(const v1::SyncReply& reply) {
  for (const v1::Ack& ack : reply.acks()) {
    const Key key{ack.trial_id(), ack.attempt()};
    farm_.note("ack " + ack.trial_id(), ack.attempt());
    // What a liar sent may rightly be nowhere.
    if (owed_.erase(key) > 0 && !lies()) ++farm_.acknowledged[key];
    returned_.erase(key);
    if (owed_races_.erase(key) > 0) farm_.acknowledged_races.insert(key.first);
  }
  for (const v1::Ack& revoked : reply.revoked()) {
    const auto held = held_.find({revoked.trial_id(), revoked.attempt()});
    if (held == held_.end()) continue;
    if (kind_ == Kind::kRunner && !held->second.answered) ++farm_.outcome.let_go;
    held_.erase(held);
  }
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
  for (const v1::LeaseBuilt& built : reply.built()) hear_built(built);
  work();
}

// --- a runner ---

void Worker::hear_built(const v1::LeaseBuilt& built) {
  const Key key{built.trial_id(), built.attempt()};
  const auto held = held_.find(key);
  if (held == held_.end() || held->second.answered) return;
  held->second.answered = true;
  const v1::Lease& lease = held->second.lease;
  const int artifacts = std::max(1, lease.finalists_size());
  if (built.artifacts_size() != artifacts)
    return farm_.violation(str(id_, ": ", built.artifacts_size(), " artifacts of ", lease.trial_id()));
  std::vector<Wanted> wanted;
  for (int i = 0; i < artifacts; ++i) {
    const v1::Built& one = built.artifacts(i);
    const bool race = lease.finalists_size() > 0;
    const std::string& config = race ? lease.finalists(i).config() : lease.config();
    if (one.outcome() == "ok" && !farm_.made_in_this_life.contains(one.artifact().sha256()))
      ++farm_.outcome.recalled;
    if (one.outcome() == "unable" || built.data().outcome() == "unable") {
      // Nobody could make it: as a rule somebody can, later.
      if (++returns_[key.first] > kMostReturns) {
        v1::MeasureRecord record = measured(lease);
        record.set_outcome(v1::DEVICE_LOST);
        record.set_message(one.message() + built.data().message());
        if (!race) owed_[key] = record;
      }
      if (!owed_.contains(key)) give_back(lease);
      held_.erase(key);
      return interrupt();
    }
    if (one.outcome() == "build_error") {
      if (!is_refused(config)) farm_.violation(id_ + ": refused is " + config);
      held->second.refused = i;
      continue;
    }
    wanted.push_back(
        {one.artifact(),
         race ? made_of(lease.finalists(i).template_name(), lease.finalists(i).template_version(), config)
              : made_of(lease.template_name(), lease.template_version(), config)});
  }
  wanted.push_back({built.data().data(0).references(0).blob(),
                    answer_of(lease.workload_key(), built.data().data(0).seed())});
  fetch(key, std::move(wanted));
}

void Worker::fetch(const Key& key, std::vector<Wanted> wanted) {
  if (!held_.contains(key)) return;
  if (wanted.empty()) {
    held_.at(key).fetched = true;
    return work();
  }
  auto request = std::make_shared<v1::ReadBlobRequest>();
  request->set_trial_id(key.first);
  *request->mutable_blob() = wanted.back().blob;
  auto reply = std::make_shared<v1::ReadBlobReply>();
  insist(
      [this, request, reply] {
        request->set_session(session());
        return farm_.daemon()->read_blob(*request, reply.get());
      },
      [=, this](const Status& status) mutable {
        const auto held = held_.find(key);
        if (held == held_.end()) return;
        if (!status) {  // it is gone, or the daemon is new and does not know yet what this lease names
          held->second.answered = false;
          ++farm_.outcome.missed;
          return interrupt();
        }
        ++farm_.outcome.fetched;
        if (reply->bytes() != wanted.back().bytes)
          farm_.violation(str(id_, " was given \"", reply->bytes(), "\" for \"", wanted.back().bytes, "\""));
        wanted.pop_back();
        fetch(key, wanted);
      });
}

// --- all ---

void Worker::work() {
  if (working_) return;
  const auto next = std::ranges::find_if(
      held_, [&](const auto& item) { return kind_ != Kind::kRunner || item.second.fetched; });
  if (next == held_.end()) return;
  working_ = true;
  Held& held = next->second;
  held.phase = v1::RUNNING;
  after(held.lease.finalists_size() > 0 ? farm_.dice.between(500, 8'000) : farm_.dice.between(5, 400),
        [this, key = next->first] { finish(key); });
}

bool Worker::lacks_template(const v1::Lease& lease) const {
  if (kind_ != Kind::kOther && kind_ != Kind::kOtherMute) return false;
  return lease.template_name() == kNewer ||
         std::ranges::any_of(lease.finalists(), [](const auto& f) { return f.template_name() == kNewer; });
}

v1::HeldLease& Worker::give_back(const v1::Lease& lease) {
  v1::HeldLease& returned = returned_[{lease.trial_id(), lease.attempt()}];
  returned.set_trial_id(lease.trial_id());
  returned.set_attempt(lease.attempt());
  returned.set_fencing(lease.fencing());
  returned.set_phase(v1::WAITING);
  ++farm_.outcome.given_back;
  return returned;
}

v1::MeasureRecord Worker::measured(const v1::Lease& lease) const {
  v1::MeasureRecord record;
  to_proto(analytic_record(lease.trial_id(), lease.attempt(), lease.config()), &record);
  record.mutable_environment()->set_worker_id(id_);
  record.mutable_environment()->set_worker_incarnation(life());
  if (is_refused(lease.config())) {
    record.set_outcome(v1::BUILD_ERROR);
    record.set_message("refused");
    record.mutable_run_ns()->Clear();
  }
  return record;
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
    const int refused = held->second.refused;
    held_.erase(held);
    if (lacks_template(lease)) {
      v1::HeldLease& returned = give_back(lease);
      returned.mutable_found()->set_name(kNewer);
      returned.mutable_found()->set_version(kTemplates.back().version - 1);
    } else if (lease.finalists_size() > 0) {
      if (refused >= 0) farm_.violation("a finalist was refused: " + lease.finalists(refused).config());
      owed_races_[key] = raced(lease, static_cast<int>(farm_.dice.below(lease.finalists_size())),
                               farm_.dice.chance(0.8), id_, life());
      ++farm_.outcome.races;
    } else {
      v1::MeasureRecord record = measured(lease);
      owed_[lie(record)] = record;
      ++farm_.outcome.results;
    }
    interrupt();
  }
  work();
}

}  // namespace tuner::sim
