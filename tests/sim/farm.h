// The farm that simulate() plays, as its members see it: time, dice, the network, and what the oracle wants
// to know.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/blobs/blob_store.h"
#include "db/blobs/made_index.h"
#include "db/store.h"
#include "tests/sim/farm_simulator.h"
#include "tuner/daemon/coordinator.h"

namespace tuner::sim {

// All of the release, the last in a new version.
inline const char* const kNewer = "newer";
inline const std::vector<TemplateVersion> kTemplates = {{"analytic", 1}, {kNewer, 2}};

// What a compiler refuses, wherever it runs.
bool is_refused(const std::string& config);

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

class Member;

class Farm {
 public:
  explicit Farm(const Plan& plan) : plan_(plan), dice(plan.seed) {}
  ~Farm();
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
  std::set<std::string> made_in_this_life;  // of the daemon: digests that builders named
  std::map<std::string, int64_t> tokens;    // the largest fencing token that any worker was given, by trial

 private:
  struct Event {
    int64_t at_ms;
    uint64_t order;
    std::function<void()> f;
    bool operator>(const Event& other) const {
      return std::pair(at_ms, order) > std::pair(other.at_ms, other.order);
    }
  };
  void make_members();
  void start_daemon();
  void kill_daemon();
  void close_daemon();
  void submit(int number);
  void tick();
  void cause_trouble();
  bool all_ended() const;
  bool no_order_is_left() const;
  void check();
  void check_record(const TrialWithRecord& t);
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
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<MadeIndex> made_;
  std::unique_ptr<Coordinator> daemon_;
  int daemon_life_ = 0, sessions_ = 0;
  int64_t artifact_bytes_ = 0;
  std::vector<std::unique_ptr<Member>> members_;
  std::map<int, std::string> submitted_;  // request -> job, as acknowledged
  int wanted_jobs_ = 0;
  double loss_ = 0, repetition_ = 0, trouble_ = 0;
};

}  // namespace tuner::sim
