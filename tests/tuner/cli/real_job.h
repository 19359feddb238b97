// A small job for the built programs, and what its database says about it.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "db/store.h"
#include "tests/tuner/analytic_task.h"
#include "tests/tuner/processes.h"

namespace tuner::testing {

// Where `tuner serve` listens, as it prints; empty: it does not yet.
inline std::string address_of(const Process& serve) {
  const std::string text = serve.out(), start = "listening on ";
  const size_t at = text.find(start);
  const size_t end = text.find('\n', at);
  return at == std::string::npos || end == std::string::npos
             ? ""
             : text.substr(at + start.size(), end - at - start.size());
}

// How long tasks of a job race: for one round, where nobody asks who wins, or as those of users.
enum class Races : uint8_t { kOneRound, kInFull };

// A scratch home with a database, and the job file of a matmul that takes microseconds.
class RealJob {
 public:
  explicit RealJob(Races races = Races::kOneRound) {
    setenv("TUNER_RACE_LIMIT_S", races == Races::kOneRound ? "0.001" : "", 1);
    setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
    setenv("XDG_CACHE_HOME", folder.file("cache").c_str(), 1);
    setenv("XDG_DATA_HOME", folder.file("data").c_str(), 1);
    std::ofstream(file)
        << R"({"op": "matmul", "a": [48, 64], "b": [64, 96], "target": "cpu", "search": "random",)"
        << R"( "measure": {"min_repeat_ms": 0.05, "repeats": 3}})";
  }
  std::vector<std::string> tuner(std::vector<std::string> words) const {
    words.insert(words.begin(), std::string(TUNER_BIN_DIR) + "/tuner");
    return words;
  }
  std::vector<std::string> submit(int trials, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words =
        tuner({"submit", file, "--trials", std::to_string(trials), "--stop-below", "0", "--db", db});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Everything recorded by now, by trial; empty when there is no database yet.
  std::map<std::string, TrialWithRecord> recorded() const {
    std::map<std::string, TrialWithRecord> found;
    const Result<std::unique_ptr<Store>> store = Store::open(db, Store::Mode::kRead);
    if (!store) return found;
    const Status read = (*store)->for_each_record("", [&](const TrialWithRecord& t) {
      found[t.trial.id] = t;
      return true;
    });
    EXPECT_TRUE(read.is_ok()) << read.message();
    return found;
  }
  // `n` trials, each config once, every one answered.
  void expect_complete(size_t n) const {
    const std::map<std::string, TrialWithRecord> all = recorded();
    EXPECT_EQ(all.size(), n);
    std::set<std::string> configs;
    size_t ok = 0;
    for (const auto& [id, t] : all) {
      EXPECT_TRUE(configs.insert(t.trial.template_name + " " + t.trial.config).second)
          << t.trial.config << " twice";
      ok += t.record->outcome == Outcome::kOk ? 1 : 0;
      EXPECT_NE(t.record->outcome, Outcome::kDeviceLost) << id << ": " << t.record->message;
    }
    EXPECT_GT(ok, n / 2);
  }

  TemporaryFolder folder;
  const std::string db = folder.file("tuner.db");
  const std::string file = folder.file("matmul.json");
};

}  // namespace tuner::testing
