// Builds: what runners need made, which builder makes it, and what became of it.
//
//   want       a runner has a lease: its artifact (of a race: one for each finalist) and its task's data are
//              ordered, unless they are known
//   take       a builder has room: the orders that have waited longest, of those that it can make
//   done       what became of one; all leases that want it hear of it
//
// An order is named by what it asks for, so that it is made once, whoever asks, and a builder that lived
// through a restart of the daemon answers the new one. A builder that is lost blames nobody: its orders wait
// again. Only an order that kMostLosses builders were lost at, or could not make, is given up ("unable"):
// then its leases go back, and their trials are tried elsewhere.
//
// Pure: no clock, no disk, no threads. The caller says what time it is (milliseconds, monotonic), and holds
// its own lock around every call.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler_core/base/outcome.h"
#include "db/blobs/blob_store.h"
#include "tuner/daemon/tables/work.h"

namespace tuner {

// What is to be made: an artifact, or the inputs and reference answer of a task.
struct BuildNeed {
  bool data = false;  // then `wanted`, `config` and `target` are unused
  std::string workload_key, target;
  TemplateVersion wanted = {};
  std::string config;
  uint64_t input_seed = 0;  // of data
  int newest_toolkit = 0;   // CompilerNeed
  std::string source_compiler = {};
  auto operator<=>(const BuildNeed&) const = default;
  CompilerNeed compiler() const;
};

// What became of it; build.proto, Built.
struct Made {
  BuildOutcome outcome = BuildOutcome::kUnable;
  std::string message, toolchain;
  double build_ms = 0;
  BlobName artifact;
  double absolute = 0, relative = 0;
  bool direct = false;
  struct File {
    std::string arg;
    BlobName blob;
  };
  struct Set {
    uint64_t seed = 0;
    std::vector<File> inputs, references;  // inputs: never in the store, made where they are used
  };
  std::vector<Set> data;

  std::vector<BlobName> blobs() const;  // that it names and that are sent
};

class Builds {
 public:
  static constexpr int kMostLosses = 5;

  // `ttl_ms`: how long a builder may be silent before its orders wait again.
  explicit Builds(int64_t ttl_ms = 8'000) : ttl_ms_(ttl_ms) {}

  // Whether what is known may be used still: its blobs are in the store, its toolchain is one of today.
  using Usable = std::function<bool(const BuildNeed&, const Made&)>;
  // What became of an order that is not remembered here: long ago, or in the daemon's life before.
  using Recall = std::function<std::optional<Made>(const std::string& id, const BuildNeed&)>;
  // The lease of that trial needs all of these. Twice is once.
  void want(const std::string& trial_id, const std::vector<BuildNeed>& needs, double limit_s, int64_t now_ms,
            const Usable& usable, const Recall& recall = {});
  bool wants(const std::string& trial_id) const { return wanted_by_.contains(trial_id); }
  // What became of all its needs, in their order; empty: some are still being made, or it wants nothing.
  std::vector<const Made*> answers(const std::string& trial_id) const;
  // True if what became of its needs names that blob.
  bool names(const std::string& trial_id, const BlobName& blob) const;
  // The lease has ended. Orders that nobody wants any more and that wait are dropped; a builder that has one
  // is told.
  void forget(const std::string& trial_id);
  // Every trial that wants something, for which `ended` holds, is forgotten.
  void forget_if(const std::function<bool(const std::string& trial_id)>& ended);
  // The store has that blob no more: what names it is made again where it is wanted.
  void lost_blob(const BlobName& blob, int64_t now_ms);

  struct Order {
    std::string id;
    BuildNeed need;
    double limit_s = 0;
  };
  // Up to n orders that wait, and for which `makes` holds. What this builder could not make is left to others
  // while `others` holds: a builder that is here, none of `except`, makes it, too.
  struct Asker {
    std::function<bool(const BuildNeed&)> makes;
    std::function<bool(const BuildNeed&, const std::set<std::string>& except)> others;
  };
  std::vector<Order> take(const WorkerLife& builder, size_t n, const Asker& asker, int64_t now_ms);
  struct Held {
    std::string id;
    bool at_work = false;
  };
  struct Heartbeat {
    std::vector<std::string> stop;  // nobody waits for them, or they are another builder's
    std::vector<Order> missing;     // this builder's, yet it does not hold them: its reply got lost
  };
  // Renews what the builder holds. `first`: with a new Sync, which names all that it holds.
  Heartbeat heartbeat(const WorkerLife& builder, const std::vector<Held>& held, bool first, int64_t now_ms);
  bool holds(const WorkerLife& builder, const std::string& id) const;
  // What a builder says became of an order. False: it was known already, or nobody asked. An answer counts
  // whoever has the order now: what is made is made.
  bool done(const std::string& id, Made made);
  // The builder could not make it, through its own fault: another one is to have it next.
  void could_not(const std::string& id, const WorkerLife& builder, const std::string& why, int64_t now_ms);
  // The builder gives it back, or is gone.
  void give_back(const std::string& id, const WorkerLife& builder);
  void builder_lost(const WorkerLife& builder, int64_t now_ms);
  // Builders that were silent for too long.
  void expire(int64_t now_ms);

  std::optional<BuildNeed> need_of(const std::string& id) const;  // nothing: no such order
  size_t waiting() const { return queue_.size(); }
  size_t at_builders() const;
  size_t orders_of(const WorkerLife& builder) const;
  // Since when the order that waits longest has waited; `of`: those for which it holds.
  std::optional<int64_t> oldest_ms(const std::function<bool(const BuildNeed&)>& of) const;
  // Those that wait, for which `of` holds, and the trials that want them.
  std::vector<std::pair<BuildNeed, std::set<std::string>>> waiting_of(
      const std::function<bool(const BuildNeed&)>& of) const;

 private:
  enum class State : uint8_t { kWaiting, kAtBuilder, kDone };
  struct Entry {
    BuildNeed need;
    double limit_s = 0;
    State state = State::kWaiting;
    int64_t since_ms = 0;                                   // waiting: since when
    std::optional<std::list<std::string>::iterator> place;  // in queue_ or known_
    std::optional<WorkerLife> builder;
    int64_t expires_ms = 0;
    bool at_work = false;
    int losses = 0;
    std::set<std::string> could_not;  // ids of builders
    Made made;
    std::set<std::string> trials;  // that want it
  };
  using Entries = std::map<std::string, Entry>;

  void wait(const std::string& id, Entry& entry, int64_t now_ms, bool first);
  void finish(const std::string& id, Entry& entry, Made made);
  void leave(const std::string& trial_id, const std::string& id);
  void lose(const std::string& id, Entry& entry, const std::string& why, int64_t now_ms);
  void take_place(Entry& entry);
  void drop_oldest();

  int64_t ttl_ms_;
  Entries entries_;
  std::list<std::string> queue_;  // ids of orders that wait, in order
  std::list<std::string> known_;  // of those that are done, least recently wanted first
  std::map<std::string, std::vector<std::string>> wanted_by_;  // trial -> orders, in the order of its needs
  std::map<WorkerLife, std::set<std::string>> by_builder_;
};

// The id of an order: 24 hexadecimal digits.
std::string order_id(const BuildNeed& need);

}  // namespace tuner
