// A worker of the simulated farm: holds leases, works at one at a time, and owes results until they are
// acknowledged. What it owes survives it; what it holds does not. As a runner it fetches what builders have
// made of a lease before it works at it.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "tests/sim/member.h"

namespace tuner::sim {

class Worker final : public Member {
 public:
  enum class Kind : uint8_t {
    kHonest,
    kRunner,     // honest, and builds nothing
    kLiar,       // sends what cannot be, or what it was not given, instead of some of its results
    kOther,      // of another release, and says so: has a template in another version
    kOtherMute,  // the same, but it finds out when it is to build
  };
  Worker(Farm& farm, int number, Kind kind) : Member(farm, str("w", number)), kind_(kind) {}

 protected:
  v1::RegisterRequest hello() const override;
  v1::SyncRequest what_to_say() override;
  void hear(const v1::SyncReply& reply) override;
  void forget() override;

 private:
  struct Held {
    v1::Lease lease;
    v1::LeasePhase phase = v1::WAITING;
    // Of a runner:
    bool answered = false;  // it has heard what became of its builds
    bool fetched = false;
    int refused = -1;  // the artifact that a compiler refused; -1: none
  };
  using Key = std::pair<std::string, int>;
  // A blob that a lease names, and what has to be in it.
  struct Wanted {
    v1::Blob blob;
    std::string bytes;
  };

  void work();
  void finish(const Key& key);
  Key lie(v1::MeasureRecord& record);
  bool lies() const { return kind_ == Kind::kLiar; }
  bool lacks_template(const v1::Lease& lease) const;
  v1::HeldLease& give_back(const v1::Lease& lease);
  v1::MeasureRecord measured(const v1::Lease& lease) const;
  void hear_built(const v1::LeaseBuilt& built);
  void fetch(const Key& key, std::vector<Wanted> wanted);

  const Kind kind_;
  bool working_ = false;
  std::map<Key, Held> held_;
  std::map<Key, v1::MeasureRecord> owed_;
  std::map<Key, v1::RaceResult> owed_races_;
  std::map<Key, v1::HeldLease> returned_;  // until a reply: the daemon has heard
  std::map<std::string, int> returns_;     // by trial: the fourth time it is given up
};

}  // namespace tuner::sim
