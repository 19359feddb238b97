// Metrics: the text that Prometheus reads, and the pages and logs beside it.
#include "tuner/daemon/metrics.h"

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

// Each line is a header or a sample; each sample belongs to the metric of the headers above it; nothing twice.
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
