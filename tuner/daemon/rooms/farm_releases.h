// Workers of another release, as free functions over the farm's state: what nobody here can build, why, and
// what a job is told of it. Such workers get nothing that they cannot build (Workers::serves).
//
// They know no clock, lock or store: the caller holds the lock and says what time it is (milliseconds,
// monotonic).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "measure.pb.h"
#include "tuner/daemon/edge/sync_call.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/tables/lease_queue.h"
#include "tuner/daemon/tables/lease_table.h"
#include "tuner/daemon/tables/work.h"

namespace tuner {

// What a job was told of workers of other releases, and what was looked at for that.
struct ReleasesTold {
  int64_t news_seen = -1;  // Workers::news()
  size_t needs_seen = 0;
  std::set<std::pair<std::string, Lack>> lacks;  // by worker id
  struct Unbuildable {
    int64_t since_ms = 0;
    bool told = false;
  };
  std::map<Needs, Unbuildable> unbuildable;  // queued, and nobody here has its template
};

// A worker gives work back that its programs cannot build: it gets no more of that. Nothing if it is given
// back for another reason.
std::optional<Lack> take_lack(FarmState& farm, const SyncCall& call, const v1::HeldLease& returned);

// Does the release with these templates have it?
bool has_template(const std::vector<TemplateVersion>& own, const TemplateVersion& wanted);
// Workers are here that measure all else of it, and each lacks a template.
bool nobody_builds(const FarmState& farm, const Needs& needs, int64_t now_ms);
// Why work that somebody waits for would wait for ever. Empty: a worker here has what it needs.
std::string why_unbuildable(const FarmState& farm, const Needs& needs, int64_t now_ms);
// Queued trials of the job that nobody here can build. Races end by themselves (Races::give_up_unserved).
std::vector<LeaseQueue::JobLine> unbuildable_of(const FarmState& farm, const std::string& job_id,
                                                int64_t now_ms);

// One line for each worker that lacks what the job `needs`, when it has come or was found out. `own`:
// templates of the daemon's release.
std::vector<std::string> lacks_to_tell(const FarmState& farm, const std::set<Needs>& needs,
                                       const std::vector<TemplateVersion>& own, int64_t now_ms,
                                       ReleasesTold& told);
// What nobody has been able to build for a while (no_worker_hint_ms): the job says so once, and waits. What
// the daemon's release has not either, trials of an earlier release, is given up: added to `lost`.
std::vector<std::string> unbuildable_to_tell(const FarmState& farm, const std::string& job_id,
                                             const CoordinatorOptions& options, int64_t now_ms,
                                             ReleasesTold& told, std::vector<LeaseTable::Loss>& lost);

}  // namespace tuner
