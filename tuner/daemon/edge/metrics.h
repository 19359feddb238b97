// Metrics: what a daemon counts while it works, and the text that Prometheus reads (format 0.0.4).
//
// Written by hand and not with prometheus-cpp: the set is fixed and small, so a counter is an atomic member
// that is named where it counts, and the text is one function. The library would add a package to build and
// run, a registry with a lock, and label maps that grow with what peers send; its server (civetweb) is fuzzed
// surface that we do not need.
//
// Labels are of enumerations only: no trial, worker or text of a peer ever becomes one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "db/records.h"
#include "tuner/transport/gate_limits.h"

namespace tuner {

// Any thread counts.
class Counter {
 public:
  void add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// How often a value fell below each of a few bounds. Any thread observes.
class Histogram {
 public:
  static constexpr size_t kMost = 16;
  // At most kMost bounds, growing.
  Histogram(std::initializer_list<double> bounds);
  void observe(double value);

  size_t buckets() const { return bounds_; }
  double bound(size_t bucket) const { return bound_.at(bucket); }
  // Observations up to that bound; of bucket buckets(): all.
  uint64_t up_to(size_t bucket) const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  size_t bounds_;
  std::array<double, kMost> bound_{};
  std::array<std::atomic<uint64_t>, kMost + 1>
      counts_{};  // each of its own bucket; the last: above all bounds
  std::atomic<double> sum_{0};
};

// Writes metrics as text: a header each, then its samples.
class MetricsText {
 public:
  // `type`: counter, gauge or histogram. `help`: one line.
  void begin(std::string_view name, std::string_view type, std::string_view help);
  // A sample of the metric begun last; with one label, whose value is escaped.
  void sample(double value);
  void sample(std::string_view label, std::string_view label_value, double value);
  void counter(std::string_view name, std::string_view help, double value);
  void gauge(std::string_view name, std::string_view help, double value);
  void histogram(std::string_view name, std::string_view help, const Histogram& values);
  const std::string& text() const { return text_; }

 private:
  std::string text_, name_;
};

enum class LostWhy : uint8_t { kExpired, kWorkerLost, kGivenBack, kFault };
inline constexpr size_t kLostWhys = 4;

// Owned by the Coordinator, which counts where things happen.
struct DaemonMetrics {
  // Seconds, from a tenth of a millisecond on.
  DaemonMetrics();

  Counter leases_granted;
  std::array<Counter, kLostWhys> leases_lost;
  std::array<Counter, static_cast<size_t>(Outcome::kDeviceLost) + 1> results;  // stored, by outcome
  Counter results_refused;      // unusable: acknowledged and measured again
  Counter results_not_stored;   // the disk: they come again
  Counter device_lost;          // answers of workers that could not measure
  Counter results_not_leased;   // from somebody who did not have that attempt: acknowledged, stored nowhere
  Counter results_quarantined;  // that cannot be: kept apart
  Counter configs_poisoned;     // not sent to workers any more
  Counter trials_given_up;      // stored as device_lost after all attempts
  Counter races_ended;
  Counter syncs_answered;
  std::atomic<int64_t> syncs_waiting{0};
  Histogram desk_turn_s, desk_calls, result_commit_s, lease_commit_s, search_turn_s;

  // For health.h: when each last turned, by the coordinator's clock, and whether the last commit failed.
  std::atomic<int64_t> desk_turned_ms{0}, search_turned_ms{0};
  std::atomic<bool> commit_failed{false};

  void lost(LostWhy why, size_t n) { leases_lost.at(static_cast<size_t>(why)).add(n); }
  uint64_t results_stored() const;
};

// What the tables hold at one moment.
struct DaemonNow {
  size_t queued = 0, leased = 0;
  double oldest_queued_s = 0;
  size_t jobs_queued = 0, jobs_running = 0, races_open = 0;
  size_t workers_here = 0, workers_silent = 0, workers_unfit = 0, workers_paused = 0;
  size_t orders_waiting = 0, orders_at_builders = 0;
  int64_t artifact_bytes = 0;  // kept of what builders made
  double up_s = 0;
  // Of the last whole look at the database (integrity_check.h).
  int64_t database_checks = 0, checked_rows = 0, database_faults = 0;
};

// The whole page. Reads the size and the descriptors of this process, too.
std::string metrics_page(const DaemonMetrics& metrics, const DaemonNow& now, const transport::GateStats& gate,
                         bool ready);

}  // namespace tuner
