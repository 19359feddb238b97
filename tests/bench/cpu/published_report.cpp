#include <cstdio>
#include <span>

#include "tests/bench/cpu/json_file.h"
#include "tests/bench/cpu/published.h"
#include "tuner/text/time_words.h"
#include "tuner/verify/published.h"

namespace tuner {
namespace {

using nlohmann::ordered_json;

constexpr double kNarrow = 0.05;

bool has_interval(const PublishedShape& s) { return s.published.time_ns > 0 && s.published.certified; }

ordered_json of(const PublishedShape& s) {
  ordered_json j = {{"set", s.shape.set}, {"name", s.shape.name}, {"workload", s.shape.workload.key()}};
  if (!s.error.empty()) j["error"] = s.error;
  const TunedConfig& p = s.published;
  if (p.time_ns <= 0) return j;
  j["trial"] = p.trial_id;
  j["template"] = p.template_name;
  j["config"] = p.config;
  j["certified"] = has_interval(s);
  j["time_ns"] = {{"low", p.time_low_ns}, {"middle", p.time_ns}, {"high", p.time_high_ns}};
  j["ratio_to_sentinel"] = {{"low", p.ratio_low}, {"middle", p.ratio}, {"high", p.ratio_high}};
  j["half_width"] = half_width(p);
  j["again"] = ordered_json::array();
  for (const RaceRow& now : s.again) {
    const Judgement judged = judge(p, now);
    ordered_json again = verdict_json(judged.verdict, p, now, std::span(&judged, 1));
    again["to_published"] = to_published(p, now);
    again["verdict"] = verdict(s, now);
    j["again"].push_back(std::move(again));
  }
  return j;
}

}  // namespace

std::string verdict(const PublishedShape& shape, const RaceRow& now) {
  if (!has_interval(shape)) return "not certified";
  return verdict_name(judge(shape.published, now).verdict);
}

std::string why(const PublishedShape& shape, const RaceRow& now) {
  const Judgement judged = judge(shape.published, now);
  return has_interval(shape) && judged.verdict == TimeVerdict::kCannotTell ? ", " + judged.busy : "";
}

PublishedSummary summarise(const PublishedReport& report) {
  PublishedSummary sum;
  for (const PublishedShape& s : report.shapes) {
    sum.times += report.options.times;
    if (!has_interval(s)) {
      ++sum.uncertified;
      continue;
    }
    sum.narrow += half_width(s.published) <= kNarrow ? 1 : 0;
    for (const RaceRow& now : s.again) {
      const bool inside = judge(s.published, now).verdict == TimeVerdict::kInside;
      const bool between = s.published.time_low_ns <= now.time_ns && now.time_ns <= s.published.time_high_ns;
      sum.inside += inside ? 1 : 0;
      sum.alone += inside && between ? 1 : 0;
    }
  }
  return sum;
}

Status write_json(const PublishedReport& report, const std::string& path) {
  const PublishedSummary sum = summarise(report);
  ordered_json j = {{"format", 1},
                    {"bench", "bench_cpu --published"},
                    {"date", report.date},
                    {"cpu", report.cpu},
                    {"target", report.target},
                    {"toolchain", report.toolchain},
                    {"threads", report.options.threads},
                    {"trials", report.options.trials},
                    {"seed", nullptr},
                    {"times", report.options.times},
                    {"stopped", report.stopped},
                    {"inside", sum.inside},
                    {"inside_by_the_interval_alone", sum.alone},
                    {"of", sum.times},
                    {"half_width_at_most_5_percent", sum.narrow},
                    {"not_certified", sum.uncertified},
                    {"shapes", ordered_json::array()}};
  if (report.options.seed) j["seed"] = *report.options.seed;
  for (const PublishedShape& s : report.shapes) j["shapes"].push_back(of(s));
  return write_json_file(j, path);
}

}  // namespace tuner
