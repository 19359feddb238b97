// PoisonLedger: configs at which workers died, known to the whole farm and kept over restarts (db/death.h).
//
// A worker may die of the config that it builds or runs, or for reasons of its own: killed, rebooted, cut
// off. One death tells nothing. So the config goes to another worker, and that one has nothing else meanwhile
// (LeaseTable): if it dies too, nothing else can have killed it. Whether that is enough depends on how often
// workers here die anyhow. The ledger knows: it counts results, and lives that ended at other configs.
//
//   chance    of losing a worker during one lease for no fault of the config: (lives lost at others + 1)
//             divided by (results + 25), both of about the last hour
//   poison    if that chance to the power of the config's deaths is at most one in a million; and two
//             different workers died, or one of them three times
//
// On a farm that has measured a thousand trials since it last lost a worker, two deaths do. Where workers are
// killed at random it takes more, up to the five of LeaseOptions::max_faults, which hold without this ledger.
// A result of the config, also a bad one, clears it: it can be survived.
//
// Pure: the caller says what time it is (microseconds of Unix time), stores the lines, and holds its own
// lock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "db/death.h"
#include "tuner/daemon/tables/work.h"

namespace tuner {

class PoisonLedger {
 public:
  // Takes a line in, in the order of the store. True: by this line the config has become poison, and the line
  // that says so is to be stored as well (condemned()).
  bool take(const DeathRow& line);
  void count_result(int64_t now_us);  // of any config: a lease that nobody died of

  // Did somebody die at this config, and nobody measure it since? Then who gets it is to have nothing else.
  bool suspects(const Work& work) const;
  // Why it is not sent to workers any more, for people; nothing if it is.
  std::optional<std::string> verdict(const Work& work) const;
  bool empty() const { return configs_.empty(); }

  // Lines for the store: somebody died at the work; a result of it came; it is poison.
  static DeathRow line(const Work& work, const WorkerLife& life, DeathPhase phase, bool alone,
                       int64_t now_us);

 private:
  struct Config {
    std::set<WorkerLife> lives;  // that ended at it
    int evidence = 0;            // deaths that count: the first, and those of workers that had nothing else
    DeathPhase phase = DeathPhase::kRunning;  // of the last death
    bool poison = false;
  };
  struct Lost {
    int64_t at_us = 0;
    WorkerLife life;
  };
  double chance_of_losing_a_worker(const Config& config, int64_t now_us) const;
  bool is_poison(const Config& config, int64_t now_us) const;

  std::map<std::string, Config> configs_;
  std::deque<Lost> lost_;  // lives that ended at any config, the latest
  double results_ = 0;     // of about the last hour
  int64_t counted_us_ = 0;
};

}  // namespace tuner
