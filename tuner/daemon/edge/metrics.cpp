#include "tuner/daemon/edge/metrics.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "compiler_core/base/status.h"
#include "tuner/transport/frame_limits.h"

namespace tuner {
namespace {

constexpr std::array<std::string_view, kLostWhys> kLostNames = {"expired", "worker_lost", "given_back",
                                                                "fault"};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

// As the format wants the value of a label.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

double resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t all = 0, resident = 0;
  in >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

int open_descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int n = 0;
  while (readdir(folder) != nullptr) ++n;
  closedir(folder);
  return std::max(0, n - 3);  // "." and "..", and the folder itself
}

void add_gate(MetricsText& out, const transport::GateStats& gate) {
  out.gauge("tuner_gate_connections", "Connections that are open.", static_cast<double>(gate.open_now));
  out.counter("tuner_gate_accepted_total", "Connections taken.", static_cast<double>(gate.accepted));
  out.begin("tuner_gate_turned_away_total", "counter", "Connections closed at once, by the lack.");
  out.sample("lack", "room", static_cast<double>(gate.turned_away_full));
  out.sample("lack", "descriptors", static_cast<double>(gate.turned_away_descriptors));
  out.begin("tuner_gate_closed_total", "counter", "Connections that broke a limit, by the limit.");
  for (int i = 1; i < transport::kCauses; ++i)
    out.sample("cause", transport::cause_name(static_cast<transport::Cause>(i)),
               static_cast<double>(gate.closed_by_guard.at(static_cast<size_t>(i))));
  out.sample("cause", "slow_reader", static_cast<double>(gate.closed_slow_reader));
  out.sample("cause", "half_open", static_cast<double>(gate.closed_half_open));
  out.sample("cause", "tls", static_cast<double>(gate.closed_tls));
  out.counter("tuner_gate_handshakes_total", "Handshakes of TLS that were done.",
              static_cast<double>(gate.handshakes));
  out.counter("tuner_gate_accept_pauses_total", "Times new connections had to wait: they came too fast.",
              static_cast<double>(gate.accept_pauses));
  out.counter("tuner_gate_slowed_down_total", "Times a client was read later: it sent too much.",
              static_cast<double>(gate.slowed_down));
  out.begin("tuner_gate_bytes_total", "counter", "Bytes passed on.");
  out.sample("direction", "in", static_cast<double>(gate.bytes_in));
  out.sample("direction", "out", static_cast<double>(gate.bytes_out));
  out.gauge("tuner_gate_buffers", "Buffers of 64 KiB held for slow readers.",
            static_cast<double>(gate.buffers));
}

void add_counts(MetricsText& out, const DaemonMetrics& m) {
  out.counter("tuner_leases_granted_total", "Leases of trials and races given to workers.",
              static_cast<double>(m.leases_granted.value()));
  out.begin("tuner_leases_lost_total", "counter", "Leases that ended without a result, by the reason.");
  for (size_t i = 0; i < kLostWhys; ++i)
    out.sample("reason", kLostNames.at(i), static_cast<double>(m.leases_lost.at(i).value()));
  out.begin("tuner_results_total", "counter", "Results stored and acknowledged, by outcome.");
  for (size_t i = 1; i < m.results.size(); ++i)
    out.sample("outcome", outcome_name(static_cast<Outcome>(i)),
               static_cast<double>(m.results.at(i).value()));
  out.counter("tuner_results_refused_total", "Results that could not be read.",
              static_cast<double>(m.results_refused.value()));
  out.counter("tuner_results_not_stored_total", "Results that the disk refused; they come again.",
              static_cast<double>(m.results_not_stored.value()));
  out.counter("tuner_device_lost_answers_total", "Answers of workers that could not measure.",
              static_cast<double>(m.device_lost.value()));
  out.counter("tuner_results_not_leased_total",
              "Results of trials and races that their sender had not been given.",
              static_cast<double>(m.results_not_leased.value()));
  out.counter("tuner_results_quarantined_total", "Results that cannot be, kept apart.",
              static_cast<double>(m.results_quarantined.value()));
  out.counter("tuner_configs_poisoned_total", "Configs that workers died of, not sent any more.",
              static_cast<double>(m.configs_poisoned.value()));
  out.counter("tuner_trials_given_up_total", "Trials recorded as device_lost after all attempts.",
              static_cast<double>(m.trials_given_up.value()));
  out.counter("tuner_races_ended_total", "Races that ended, with or without a winner.",
              static_cast<double>(m.races_ended.value()));
  out.counter("tuner_syncs_answered_total", "Calls of workers that were answered.",
              static_cast<double>(m.syncs_answered.value()));
  out.gauge("tuner_syncs_waiting", "Calls of workers that wait for news.",
            static_cast<double>(m.syncs_waiting.load()));
}

void add_now(MetricsText& out, const DaemonNow& now) {
  out.begin("tuner_trials", "gauge", "Open trials and races.");
  out.sample("state", "queued", static_cast<double>(now.queued));
  out.sample("state", "leased", static_cast<double>(now.leased));
  out.gauge("tuner_oldest_queued_seconds", "For how long the next trial of a queue has waited, the longest.",
            now.oldest_queued_s);
  out.begin("tuner_jobs", "gauge", "Jobs that have not ended.");
  out.sample("state", "queued", static_cast<double>(now.jobs_queued));
  out.sample("state", "running", static_cast<double>(now.jobs_running));
  out.gauge("tuner_races_open", "Races and remeasurements that have not ended.",
            static_cast<double>(now.races_open));
  out.begin("tuner_build_orders", "gauge", "What leases of runners need made and nobody has made yet.");
  out.sample("state", "waiting", static_cast<double>(now.orders_waiting));
  out.sample("state", "at_builder", static_cast<double>(now.orders_at_builders));
  out.gauge("tuner_artifact_bytes", "Kept on disk of what builders have made for runners.",
            static_cast<double>(now.artifact_bytes));
  out.begin("tuner_workers", "gauge", "Workers, each in one state.");
  out.sample("state", "here", static_cast<double>(now.workers_here));
  out.sample("state", "unfit", static_cast<double>(now.workers_unfit));
  out.sample("state", "paused", static_cast<double>(now.workers_paused));
  out.sample("state", "silent", static_cast<double>(now.workers_silent));
}

}  // namespace

Histogram::Histogram(std::initializer_list<double> bounds) : bounds_(bounds.size()) {
  CHECK(bounds.size() <= kMost && std::ranges::is_sorted(bounds)) << bounds.size() << " bounds";
  std::ranges::copy(bounds, bound_.begin());
}

void Histogram::observe(double value) {
  const auto end = bound_.begin() + static_cast<std::ptrdiff_t>(bounds_);
  const auto bucket = static_cast<size_t>(std::lower_bound(bound_.begin(), end, value) - bound_.begin());
  counts_.at(bucket).fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

uint64_t Histogram::up_to(size_t bucket) const {
  uint64_t sum = 0;
  for (size_t i = 0; i <= bucket; ++i) sum += counts_.at(i).load(std::memory_order_relaxed);
  return sum;
}

void MetricsText::begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += str("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void MetricsText::sample(double value) { text_ += str(name_, " ", number(value), "\n"); }

void MetricsText::sample(std::string_view label, std::string_view label_value, double value) {
  text_ += str(name_, "{", label, "=\"", escaped(label_value), "\"} ", number(value), "\n");
}

void MetricsText::counter(std::string_view name, std::string_view help, double value) {
  begin(name, "counter", help);
  sample(value);
}

void MetricsText::gauge(std::string_view name, std::string_view help, double value) {
  begin(name, "gauge", help);
  sample(value);
}

void MetricsText::histogram(std::string_view name, std::string_view help, const Histogram& values) {
  begin(name, "histogram", help);
  name_ = str(name, "_bucket");
  uint64_t all = 0;  // read once, bucket by bucket, so that the last bucket and the count agree
  for (size_t i = 0; i <= values.buckets(); ++i) {
    all = std::max(all, values.up_to(i));
    sample("le", i == values.buckets() ? "+Inf" : number(values.bound(i)), static_cast<double>(all));
  }
  text_ += str(name, "_sum ", number(values.sum()), "\n", name, "_count ", all, "\n");
}

DaemonMetrics::DaemonMetrics()
    : desk_turn_s({0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3}),
      desk_calls({0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512}),
      result_commit_s({0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3}),
      lease_commit_s({0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3}),
      search_turn_s({0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30}) {}

uint64_t DaemonMetrics::results_stored() const {
  uint64_t sum = 0;
  for (const Counter& outcome : results) sum += outcome.value();
  return sum;
}

std::string metrics_page(const DaemonMetrics& metrics, const DaemonNow& now, const transport::GateStats& gate,
                         bool ready) {
  MetricsText out;
  out.gauge("tuner_ready", "1 while the daemon is ready (see /readyz).", ready ? 1 : 0);
  out.gauge("tuner_up_seconds", "For how long the daemon has run.", now.up_s);
  add_now(out, now);
  out.counter("tuner_database_checks_total", "Times every row of the database was read and compared.",
              static_cast<double>(now.database_checks));
  out.gauge("tuner_database_checked_rows", "Rows that the last such check read.",
            static_cast<double>(now.checked_rows));
  out.gauge("tuner_database_faults", "Damage that the last such check found.",
            static_cast<double>(now.database_faults));
  add_counts(out, metrics);
  out.histogram("tuner_desk_turn_seconds", "A turn of the desk that answers workers.", metrics.desk_turn_s);
  out.histogram("tuner_desk_turn_calls", "Calls that arrived for one turn of the desk.", metrics.desk_calls);
  out.histogram("tuner_result_commit_seconds", "Storing the results of one turn.", metrics.result_commit_s);
  out.histogram("tuner_lease_commit_seconds", "Storing the leases of one turn.", metrics.lease_commit_s);
  out.histogram("tuner_search_turn_seconds", "One turn of a job's search.", metrics.search_turn_s);
  add_gate(out, gate);
  out.gauge("process_resident_memory_bytes", "Resident size of the daemon.", resident_bytes());
  out.gauge("process_open_fds", "Open descriptors of the daemon.", open_descriptors());
  return out.text();
}

}  // namespace tuner
