// Metrics: the text that Prometheus reads, and the pages and logs beside it.
#include "tuner/daemon/edge/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

namespace tuner {
namespace {

using ::testing::HasSubstr;

TEST(Histogram, CountsUpToEachBoundInclusive) {
  Histogram h({1, 2, 5});
  for (const double value : {0.5, 1.0, 1.5, 5.0, 9.0}) h.observe(value);
  EXPECT_EQ(h.up_to(0), 2u) << "1 is not above 1";
  EXPECT_EQ(h.up_to(1), 3u);
  EXPECT_EQ(h.up_to(2), 4u);
  EXPECT_EQ(h.up_to(3), 5u) << "all";
  EXPECT_DOUBLE_EQ(h.sum(), 17);
}

TEST(MetricsText, IsTheFormatOfPrometheus) {
  Histogram h({0.1, 1});
  h.observe(0.05);
  h.observe(3);
  MetricsText out;
  out.counter("a_total", "What a is.", 3);
  out.begin("b", "gauge", "By kind.");
  out.sample("kind", "odd \"one\"\\\n", 0.5);
  out.histogram("c_seconds", "How long.", h);
  EXPECT_EQ(out.text(), R"(# HELP a_total What a is.
# TYPE a_total counter
a_total 3
# HELP b By kind.
# TYPE b gauge
b{kind="odd \"one\"\\\n"} 0.5
# HELP c_seconds How long.
# TYPE c_seconds histogram
c_seconds_bucket{le="0.1"} 1
c_seconds_bucket{le="1"} 1
c_seconds_bucket{le="+Inf"} 2
c_seconds_sum 3.05
c_seconds_count 2
)");
}

// Each line is a header or a sample; each sample belongs to the metric of the headers above it; nothing
// twice.
TEST(MetricsPage, EverySampleHasItsHeadersAndStandsOnce) {
  DaemonMetrics metrics;
  metrics.leases_granted.add(7);
  metrics.lost(LostWhy::kFault, 2);
  metrics.results[static_cast<size_t>(Outcome::kOk)].add(5);
  metrics.results[static_cast<size_t>(Outcome::kCrashed)].add(1);
  EXPECT_EQ(metrics.results_stored(), 6u);
  DaemonNow now;
  now.queued = 3;
  now.workers_paused = 1;
  const std::string page = metrics_page(metrics, now, {}, /*ready=*/true);
  for (const char* line :
       {"tuner_ready 1\n", "tuner_leases_granted_total 7\n", "tuner_leases_lost_total{reason=\"fault\"} 2\n",
        "tuner_results_total{outcome=\"ok\"} 5\n", "tuner_results_total{outcome=\"crashed\"} 1\n",
        "tuner_trials{state=\"queued\"} 3\n", "tuner_workers{state=\"paused\"} 1\n",
        "tuner_gate_closed_total{cause=\"resets\"} 0\n", "tuner_gate_closed_total{cause=\"tls\"} 0\n",
        "tuner_gate_handshakes_total 0\n", "tuner_desk_turn_seconds_count 0\n"})
    EXPECT_THAT(page, HasSubstr(line));
  const std::regex help("# HELP ([a-z_]+) [A-Z/1].*\\."), type("# TYPE ([a-z_]+) (counter|gauge|histogram)"),
      sample("([a-z_]+)(\\{[a-z]+=\"[^\"]*\"\\})? [-+.e0-9]+");
  std::istringstream lines(page);
  std::string helped, typed;
  std::set<std::string> metrics_seen, samples_seen;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      helped = match[1];
      EXPECT_TRUE(metrics_seen.insert(helped).second) << line;
    } else if (std::regex_match(line, match, type)) {
      typed = match[1];
      EXPECT_EQ(typed, helped) << line;
      EXPECT_EQ(typed.ends_with("_total"), match[2] == "counter") << line;
    } else {
      ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
      EXPECT_TRUE(match[1].str().starts_with(typed)) << line;
      EXPECT_TRUE(samples_seen.insert(match[1].str() + match[2].str()).second) << line;
    }
  }
  EXPECT_GT(samples_seen.size(), 80u);
}

// Every figure another number, so that none can stand under another's name.
TEST(MetricsPage, EachFigureStandsUnderItsOwnName) {
  DaemonMetrics m;
  m.leases_granted.add(101);
  for (const auto& [why, n] : {std::pair(LostWhy::kExpired, 102), std::pair(LostWhy::kWorkerLost, 103),
                               std::pair(LostWhy::kGivenBack, 104), std::pair(LostWhy::kFault, 105)})
    m.lost(why, static_cast<size_t>(n));
  m.results[static_cast<size_t>(Outcome::kOk)].add(106);
  m.results[static_cast<size_t>(Outcome::kDeviceLost)].add(107);
  m.results_refused.add(108);
  m.results_not_stored.add(109);
  m.device_lost.add(110);
  m.results_not_leased.add(111);
  m.results_quarantined.add(112);
  m.configs_poisoned.add(113);
  m.trials_given_up.add(114);
  m.races_ended.add(115);
  m.syncs_answered.add(116);
  m.syncs_waiting = 117;
  const auto observe = [](Histogram& h, int times) {
    for (int i = 0; i < times; ++i) h.observe(2);
  };
  observe(m.desk_turn_s, 1);
  observe(m.desk_calls, 2);
  observe(m.result_commit_s, 3);
  observe(m.lease_commit_s, 4);
  observe(m.search_turn_s, 5);
  const DaemonNow now{.queued = 1,
                      .leased = 2,
                      .oldest_queued_s = 3,
                      .jobs_queued = 4,
                      .jobs_running = 5,
                      .races_open = 6,
                      .workers_here = 7,
                      .workers_silent = 8,
                      .workers_unfit = 9,
                      .workers_paused = 10,
                      .orders_waiting = 11,
                      .orders_at_builders = 12,
                      .artifact_bytes = 13,
                      .up_s = 14,
                      .database_checks = 15,
                      .checked_rows = 16,
                      .database_faults = 17};
  transport::GateStats gate{.accepted = 21,
                            .turned_away_full = 22,
                            .turned_away_descriptors = 23,
                            .accept_pauses = 24,
                            .slowed_down = 25,
                            .closed_slow_reader = 26,
                            .closed_half_open = 27,
                            .closed_tls = 28,
                            .handshakes = 29,
                            .bytes_in = 30,
                            .bytes_out = 31,
                            .open_now = 32,
                            .buffers = 33};
  gate.closed_by_guard[static_cast<size_t>(transport::Cause::kResets)] = 34;
  gate.closed_by_guard[static_cast<size_t>(transport::Cause::kSharedBytes)] = 35;
  const std::string page = metrics_page(m, now, gate, /*ready=*/false);
  std::istringstream expected(R"(tuner_ready 0
tuner_up_seconds 14
tuner_trials{state="queued"} 1
tuner_trials{state="leased"} 2
tuner_oldest_queued_seconds 3
tuner_jobs{state="queued"} 4
tuner_jobs{state="running"} 5
tuner_races_open 6
tuner_workers{state="here"} 7
tuner_workers{state="silent"} 8
tuner_workers{state="unfit"} 9
tuner_workers{state="paused"} 10
tuner_build_orders{state="waiting"} 11
tuner_build_orders{state="at_builder"} 12
tuner_artifact_bytes 13
tuner_database_checks_total 15
tuner_database_checked_rows 16
tuner_database_faults 17
tuner_gate_accepted_total 21
tuner_gate_turned_away_total{lack="room"} 22
tuner_gate_turned_away_total{lack="descriptors"} 23
tuner_gate_accept_pauses_total 24
tuner_gate_slowed_down_total 25
tuner_gate_closed_total{cause="slow_reader"} 26
tuner_gate_closed_total{cause="half_open"} 27
tuner_gate_closed_total{cause="tls"} 28
tuner_gate_handshakes_total 29
tuner_gate_bytes_total{direction="in"} 30
tuner_gate_bytes_total{direction="out"} 31
tuner_gate_connections 32
tuner_gate_buffers 33
tuner_gate_closed_total{cause="resets"} 34
tuner_gate_closed_total{cause="shared_bytes"} 35
tuner_gate_closed_total{cause="pings"} 0
tuner_leases_granted_total 101
tuner_leases_lost_total{reason="expired"} 102
tuner_leases_lost_total{reason="worker_lost"} 103
tuner_leases_lost_total{reason="given_back"} 104
tuner_leases_lost_total{reason="fault"} 105
tuner_results_total{outcome="ok"} 106
tuner_results_total{outcome="device_lost"} 107
tuner_results_refused_total 108
tuner_results_not_stored_total 109
tuner_device_lost_answers_total 110
tuner_results_not_leased_total 111
tuner_results_quarantined_total 112
tuner_configs_poisoned_total 113
tuner_trials_given_up_total 114
tuner_races_ended_total 115
tuner_syncs_answered_total 116
tuner_syncs_waiting 117
tuner_desk_turn_seconds_count 1
tuner_desk_turn_calls_count 2
tuner_result_commit_seconds_count 3
tuner_lease_commit_seconds_count 4
tuner_search_turn_seconds_count 5)");
  for (std::string line; std::getline(expected, line);) EXPECT_THAT(page, HasSubstr("\n" + line + "\n"));
}

TEST(MetricsPage, TellsSizeAndDescriptorsOfThisProcess) {
  const std::string page = metrics_page(DaemonMetrics(), {}, {}, false);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(page, match, std::regex("process_resident_memory_bytes ([0-9.e+]+)")));
  EXPECT_GT(std::stod(match[1]), 1e6);
  ASSERT_TRUE(std::regex_search(page, match, std::regex("process_open_fds ([0-9]+)")));
  EXPECT_GE(std::stoi(match[1]), 1);
  EXPECT_LT(std::stoi(match[1]), 10'000);
}

}  // namespace
}  // namespace tuner
