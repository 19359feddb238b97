// Workers: who has registered, what each can measure, and who is here.
//
//   enter         a worker begins; what it held in an earlier life has died with that life
//   begin_sync    each of its Syncs; while the call waits, check() tells whether another has taken over
//
// A worker that is not heard of for `silent_ms` counts as away: nobody plans with it, but it stays registered
// and may be back with its next Sync. After ten minutes it leaves the list. What an absent worker held is
// none of this table's business: leases run out by themselves (lease_table.h).
//
// An id belongs to one process at a time. Another process that comes with it is refused while the first is
// here; it takes over once the first one's connection has closed, or has been silent for five seconds. So a
// restarted worker gets its id back at once, and two that were given the same id do not evict each other.
//
// A worker that keeps failing to measure is left alone for a while (the breaker): after five failures in a
// row it gets nothing for 30 s, then one trial; if that fails, too, nothing for twice as long, at most ten
// minutes.
//
// A worker whose results cannot be, or whose machine has become slower, is left alone, too (standing.h). What
// it says of its machine at registration is held against what such a machine can do: one that claims more
// gets nothing at all.
//
// A worker of another release lacks templates, or has them in another version. It says at registration what
// it has (Offer::templates) and gets nothing else; that is no failure, and its breaker knows nothing of it.
//
// A builder measures nothing; a runner builds nothing, so it measures what some builder that is here builds
// (builds.h).
//
// Nobody fills the list: a registrar (a certificate or token, else a connection) has a number of workers, and
// so have all together. Those that are away leave first.
//
// Pure: no clock, no threads, no random numbers. The caller says what time it is (milliseconds, monotonic),
// thinks up the names of sessions, and holds its own lock around every call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/daemon/tables/standing.h"
#include "tuner/daemon/tables/work.h"

namespace tuner {

// " with an NVRTC of CUDA 12 or older"; empty for 0.
std::string toolkit_text(int newest_toolkit);

class Workers {
 public:
  // `take_over_ms`: how long a worker may be silent before another process may have its id. `own`: the
  // templates of the daemon's release.
  explicit Workers(int64_t silent_ms, int64_t take_over_ms = 5'000, std::vector<TemplateVersion> own = {})
      : silent_ms_(silent_ms), take_over_ms_(take_over_ms), own_(std::move(own)) {}

  // On whose behalf a worker registers, and how many workers those may have on the list. Nobody in
  // particular: any number.
  struct Registrar {
    std::string name;
    size_t most = 0;
  };
  // What a worker says of itself.
  struct Offer {
    WorkerLife life;
    std::string host;
    std::vector<std::string> targets;   // canonical names
    std::vector<std::string> features;  // of its host: they decide what code it measures (Backend::measures)
    int max_threads = 1;
    bool races = false;
    std::map<std::string, int> templates = {};  // all it builds, in which version; empty: it does not say
    WorkerKind kind = WorkerKind::kFull;
    std::map<std::string, std::string> compilers = {};  // of a builder: family of targets -> toolchain
    // That may compile users' sources: name -> toolchain, as records say it.
    std::map<std::string, std::string> source_compilers = {};
    int cuda_driver = 0;        // of a runner: 12040 is CUDA 12.4; 0: no GPU
    std::string hardware = {};  // fingerprint
    // What it measured of its machine: one CPU thread in float32, its fastest cache, the calm sentinel. 0:
    // not measured.
    double peak_gflops = 0, read_gbps = 0, sentinel_ns = 0, memory_sentinel_ns = 0;
    std::string impossible;  // why what it says of itself cannot be; empty: it can
    Registrar registrar = {};
  };
  // Registers the worker under a new session. Its earlier sessions are unknown from now on; returns those of
  // its earlier lives (other incarnations), whose leases are lost. It keeps its count of trials. Aborted:
  // another process with this id is here. Failed: there are as many workers as may be, of its registrar or of
  // all.
  Result<std::vector<WorkerLife>> enter(const std::string& session, Offer offer, int64_t now_ms);
  // The connection of the session's latest call has closed.
  void connection_closed(const std::string& session);
  // It has ended by itself, and leaves the list. No effect on one that is not there.
  void leave(const std::string& session);

  // A Sync of the session, whose worker has room for `capacity` leases, those it holds included. Returns the
  // number of the call; nothing when the session is unknown.
  std::optional<uint64_t> begin_sync(const std::string& session, int capacity, int64_t now_ms);
  enum class Call { kCurrent, kOvertaken, kUnknown };
  // Whether that call still speaks for the worker, or a newer one does. A current call is a sign of life.
  Call check(const std::string& session, uint64_t call, int64_t now_ms);

  const WorkerLife* life(const std::string& session) const;  // null: unknown; good until the next enter()
  void count_trial(const std::string& session);              // it has measured one more; closes its breaker
  // It could not measure a trial that it had. Returns for how long it gets nothing now; 0: it goes on.
  int64_t count_failure(const std::string& session, int64_t now_ms);
  // It sent a result that cannot be. Returns for how long it gets nothing now; 0: it goes on.
  int64_t count_quarantined(const std::string& session, const std::string& why, int64_t now_ms);
  // The same of a worker that is not here: what an earlier daemon on this database found out.
  void remember_quarantined(const std::string& worker_id, const std::string& why, int64_t now_ms);
  // The better sentinel of a trial on its CPU. What it says about the pace of its machine.
  Standing::News observe_sentinel(const std::string& session, double sentinel_ns, int64_t now_ms);
  // Why it takes nothing now, in its own words; empty: it is fit. True: that has changed.
  bool set_unfit(const std::string& session, const std::string& why);
  // It gave work back: it has the template `wanted` in the version `found` (0: not at all). From now on it
  // gets nothing that needs `wanted`. True: that is news.
  bool note_lacks(const std::string& session, const TemplateVersion& wanted, int found);
  // The worker is to finish what it holds, get nothing more, and end. Returns its life; null: it is not here.
  const WorkerLife* drain(const std::string& worker_id);
  enum class Drain { kNo, kNews, kKnown };  // kNews: the worker does not know of it yet, but from now on
  Drain take_drain(const std::string& session);
  // How many leases more it may be given at once: none while it is unfit or its breaker is open, one to try.
  int allowance(const std::string& session, int64_t now_ms) const;

  // Whether the session's worker measures what has these needs: it offers the target, or its CPU runs code
  // for it with enough threads; it has the templates in these versions, or has not said which it has; it
  // races, where a race is needed. False when the session is unknown.
  bool serves(const std::string& session, const Needs& needs) const;
  // The same of any worker on the list.
  bool served(const Needs& needs) const;
  // The same of a worker that is here and fit, none of `except`.
  bool others_serve(const Needs& needs, const std::set<std::string>& except, int64_t now_ms) const;
  // Of the workers that are here:
  int serving(const Needs& needs, int64_t now_ms) const;  // how many measure what has these needs
  bool some_serve(const Needs& needs, int64_t now_ms) const;
  // Why none of those takes anything now, by their own word: "gpu1: the disk is full; gpu2: ...". Empty: one
  // does.
  std::string all_unfit(const Needs& needs, int64_t now_ms) const;
  int capacity(int64_t now_ms) const;  // leases they have room for, as they last said
  // By id, what those lack of the needs that measure for the target otherwise.
  std::map<std::string, std::vector<Lack>> lacking(const Needs& needs, int64_t now_ms) const;
  std::vector<Lack> lacks(const std::string& session) const;  // of the daemon's templates
  // The session's builder is here and fit, and such a compiler.
  bool builds(const std::string& session, const CompilerNeed& need) const;
  // The same of any builder but those with these ids.
  bool some_build(const CompilerNeed& need, int64_t now_ms, const std::set<std::string>& except = {}) const;
  int cuda_driver(const std::string& worker_id) const;  // as it said; 0: not here
  // Whether a compiler that is here makes what has this toolchain in its records.
  bool has_toolchain(const CompilerNeed& need, const std::string& toolchain, int64_t now_ms) const;
  WorkerKind kind(const std::string& session) const;  // of an unknown session: full
  // Ids of runners that measure all else of it, while nobody builds for them. Empty: nobody waits for a
  // builder.
  std::vector<std::string> waiting_for_builder(const Needs& needs, int64_t now_ms) const;
  // Grows when a worker has registered or was found to lack a template.
  int64_t news() const { return news_; }

  // CPU targets on offer, each with the most threads that a worker has for it. Workers that have left count
  // only where none with a CPU is here.
  std::map<std::string, int> cpus(int64_t now_ms) const;
  struct Entry {
    Offer offer;
    int64_t trials_done = 0, silent_ms = 0;
    std::string unfit;        // why it takes nothing now; empty: it does
    int64_t paused_ms = 0;    // for how long it still gets nothing
    std::string paused_why;   // if paused_ms > 0
    int64_t quarantined = 0;  // results of it that cannot be
    bool here = true;         // heard of lately
    std::vector<Lack> lacks;  // of the daemon's templates
  };
  std::vector<Entry> list(int64_t now_ms) const;  // in order of sessions

 private:
  struct Worker {
    Offer offer;
    int64_t last_seen_ms = 0, trials_done = 0;
    int capacity = 0;
    uint64_t latest_call = 0;
    bool closed = false;  // its connection, since its last call
    std::string unfit;
    Drain drain = Drain::kNo;
    int failures = 0;  // in a row
    int64_t nothing_until_ms = 0;
    // Target -> may it be measured here; filled as asked.
    mutable std::map<std::string, bool> serves;
    std::map<TemplateVersion, int> lacks;  // what it gave work back for -> the version it has
  };
  static bool measures(const Worker& worker, WorkKind kind, const std::string& target);
  bool measures(const Worker& worker, const Needs& needs) const;
  bool all_built(const Worker& runner, const Needs& needs) const;
  static bool compiles_source(const Worker& worker, const std::string& compiler);
  static bool makes(const Worker& worker, const CompilerNeed& need);
  static bool toolkits_fit(const Worker& worker, const CompilerNeed& need, const std::string& compiler);
  std::vector<Lack> lacks_of(const Worker& worker) const;
  static std::optional<Lack> lack_of(const Worker& worker, const TemplateVersion& wanted);
  bool fit(const Worker& worker, int64_t now_ms) const;
  // Does another worker that is here, of full trust, measure something that this one offers?
  bool can_be_spared(const Worker& worker, int64_t now_ms) const;
  const Standing* standing_of(const Worker& worker) const;
  Status has_room(const Offer& offer, int64_t now_ms);
  bool here(const Worker& worker, int64_t now_ms) const { return now_ms - worker.last_seen_ms <= silent_ms_; }

  int64_t silent_ms_, take_over_ms_;
  int64_t now_ms_ = 0;  // of the latest call that told
  std::vector<TemplateVersion> own_;
  int64_t news_ = 0;
  std::map<std::string, Worker> workers_;      // by session
  std::map<std::string, Standing> standings_;  // by worker id; those with strikes outlive their worker
};

}  // namespace tuner
