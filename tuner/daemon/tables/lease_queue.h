// LeaseQueue: what waits for a worker, and which of it comes next. Part of the lease table; pure, like it.
//
// Those that wait stand in lines, one for each job and what it needs of a worker. Next is, of the lines that
// a worker serves:
//
//   1. the tenant whose turn it is (shares.h), if it has room for one more lease
//   2. what somebody waits for: a trial measured again
//   3. the highest priority; five minutes of waiting raise a line by one
//   4. what was put back, and races: they have waited before
//   5. the job that this worker measured last, for a batch of leases: times that one machine took are
//      compared best
//   6. the oldest
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/daemon/tables/shares.h"
#include "tuner/daemon/tables/work.h"

namespace tuner {

class LeaseQueue {
 public:
  struct Item {
    std::string id;
    Needs needs;
    std::string tenant, job_id;
    int priority = 0;
    bool urgent = false;    // somebody waits for it
    bool first = false;     // before those that are there
    int64_t queued_ms = 0;  // since when it waits
  };

  void put(const Item& item);
  void take(const std::string& id);  // no effect if it is not there
  bool contains(const std::string& id) const { return where_.contains(id); }
  size_t size() const { return where_.size(); }

  // Calls `f` with each id that waits.
  void for_each(const std::function<void(const std::string&)>& f) const;
  // Since when the first of a line has waited, the longest of all; nothing when none waits.
  std::optional<int64_t> oldest_queued_ms() const;
  // What the job's lines need of a worker, and how many wait for one.
  struct JobLine {
    Needs needs;
    size_t count = 0;
  };
  std::vector<JobLine> lines_of(const std::string& job_id) const;
  std::vector<std::string> ids_of(const std::string& job_id, const Needs& needs) const;
  // How many wait, by tenant.
  std::map<std::string, int64_t> waiting_by_tenant() const;

  // Who chooses.
  struct Chooser {
    std::function<bool(const Needs&)> serves;
    std::function<bool(const std::string& id)> may_have;  // asked of few
    std::string worker_id;
    int64_t now_ms = 0;
  };
  // Takes what is next for the chooser out; nothing when there is nothing for it.
  std::optional<std::string> choose(const Chooser& chooser, const Shares& shares);

 private:
  struct LineKey {
    Needs needs;
    std::string tenant, job_id;
    int priority = 0;
    bool urgent = false;
    auto operator<=>(const LineKey&) const = default;
  };
  struct Waiting {
    std::string id;
    int64_t queued_ms = 0;
  };
  using Line = std::map<int64_t, Waiting>;  // by place
  // Smaller comes first: clock of the tenant, not urgent, less priority, not put back, not sticky, place.
  using Rank = std::tuple<double, bool, int64_t, bool, bool, int64_t>;
  struct Batch {
    std::string job_id;
    int left = 0;
  };
  void note_choice(const std::string& worker_id, const std::string& job_id);

  std::map<LineKey, Line> lines_;
  std::unordered_map<std::string, std::pair<LineKey, int64_t>> where_;  // id -> line, place
  std::unordered_map<std::string, Batch> batches_;                      // by worker
  int64_t first_place_ = 0, last_place_ = 0;
};

}  // namespace tuner
