#include "tuner/study/estimate_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"

namespace tuner {
namespace {

std::string gain_text(const std::optional<Gain>& gain) {
  if (!gain) return "?";
  char text[64];
  std::snprintf(text, sizeof text, "%.1f %% (%.1f .. %.1f)", 100 * gain->expected, 100 * gain->low,
                100 * gain->high);
  return text;
}

nlohmann::ordered_json gain_json(const std::optional<Gain>& gain) {
  if (!gain) return nullptr;
  return {{"expected", gain->expected}, {"low", gain->low}, {"high", gain->high}};
}

nlohmann::ordered_json to_json(const TaskEstimate& l) {
  return {{"workload", l.task.key},
          {"target", l.task.target_name},
          {"uses", l.uses},
          {"answer", answer_kind_name(l.answer.kind)},
          {"verdict", l.verdict()},
          {"gain", gain_json(l.gain)},
          {"now_ns", l.now_ns},
          {"now_measured", l.answer.kind == AnswerKind::kExact},
          {"bound_ns", l.bound_ns},
          {"bound_decides", l.bound_decides()},
          {"trials_so_far", l.trials_so_far},
          {"trials", l.cost.trials},
          {"seconds", l.cost.seconds},
          {"rate_known", l.cost.known},
          {"stale", l.staleness.stale()},
          {"note", l.note}};
}

}  // namespace

EstimateTotal total_of(const std::vector<TaskEstimate>& lines) {
  EstimateTotal t;
  double saved = 0, below = 0, above = 0;
  for (const TaskEstimate& l : lines) {
    t.unknown += l.gain ? 0 : 1;
    t.skip += l.skip() ? 1 : 0;
    t.tune += l.gain && !l.skip() ? 1 : 0;
    if (!l.skip()) {
      t.cost.trials += l.cost.trials;
      t.cost.seconds += l.cost.seconds;
    }
    if (!l.gain || l.now_ns <= 0) continue;
    const double ns = l.now_ns * static_cast<double>(l.uses);
    t.now_ns += ns;
    if (l.skip()) continue;  // is not tuned, gains nothing
    saved += ns * l.gain->expected;
    below += std::pow(ns * (l.gain->expected - l.gain->low), 2);
    above += std::pow(ns * (l.gain->high - l.gain->expected), 2);
  }
  if (t.now_ns > 0)
    t.gain = Gain{saved / t.now_ns, std::max(0.0, saved - std::sqrt(below)) / t.now_ns,
                  (saved + std::sqrt(above)) / t.now_ns};
  return t;
}

std::string estimate_text(const std::vector<TaskEstimate>& lines, const EstimateTotal& total) {
  std::string out;
  append_format(out, "%-8s %-24s %7s %8s  %10s  %-12s  %s\n", "", "gain, 80 % interval", "trials", "minutes",
                "now", "answered by", "task");
  for (const TaskEstimate& l : lines) {
    char minutes[32], trials[32];
    std::snprintf(minutes, sizeof minutes, "%.1f", l.cost.seconds / 60);
    std::snprintf(trials, sizeof trials, "%lld", static_cast<long long>(l.cost.trials));
    const std::string now = l.now_ns <= 0                         ? "?"
                            : l.answer.kind == AnswerKind::kExact ? format_time(l.now_ns)
                                                                  : "~" + format_time(l.now_ns);
    char columns[160];
    std::snprintf(columns, sizeof columns, "%-8s %-24s %7s %8s  %10s  %-12s  ",
                  std::string(l.verdict()).c_str(), gain_text(l.gain).c_str(), l.skip() ? "-" : trials,
                  l.skip() ? "-" : minutes, now.c_str(),
                  std::string(answer_kind_name(l.answer.kind)).c_str());
    append_format(
        out, "%s\n",
        on_a_line(str(columns, l.task.key, l.uses > 1 ? str(" x ", l.uses) : std::string())).c_str());
    if (l.bound_decides())
      append_format(out, "         not below %s: roofline of this machine\n",
                    format_time(l.bound_ns).c_str());
    if (!l.note.empty()) append_format(out, "         %s\n", with_commands(l.note).c_str());
  }
  append_format(out, "\ntotal    %s of %s; %lld trials, %.1f min", gain_text(total.gain).c_str(),
                total.now_ns > 0 ? format_time(total.now_ns).c_str() : "an unknown time",
                static_cast<long long>(total.cost.trials), total.cost.seconds / 60);
  append_format(out, " (%d to tune, %d to skip, %d unknown)\n", total.tune, total.skip, total.unknown);
  if (total.tune + total.unknown == 0)
    append_format(out, "skip     nothing here is expected to gain %.0f %%\n", 100 * kSkipBelow);
  return out;
}

nlohmann::ordered_json estimate_json(const std::vector<TaskEstimate>& lines, const EstimateTotal& total) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TaskEstimate& l : lines) list.push_back(to_json(l));
  return {{"tasks", list},
          {"total",
           {{"gain", gain_json(total.gain)},
            {"now_ns", total.now_ns > 0 ? nlohmann::ordered_json(total.now_ns) : nullptr},
            {"trials", total.cost.trials},
            {"seconds", total.cost.seconds},
            {"tune", total.tune},
            {"skip", total.skip},
            {"unknown", total.unknown}}}};
}

std::vector<CalibrationLine> calibration_of(const GainEstimate& estimate) {
  std::vector<CalibrationLine> lines = {
      {"over the default", calibrate_tuning(estimate, Before::kDefault)},
      {"over a chosen config", calibrate_tuning(estimate, Before::kChosen)}};
  for (const int64_t n : {16, 32, 64, 128})
    lines.push_back({str("after ", n, " trials"), calibrate_more_trials(estimate, n)});
  return lines;
}

std::string calibration_text(const std::vector<CalibrationLine>& lines) {
  std::string out;
  append_format(
      out,
      "Each task hidden in turn. Median width of the 80 %% intervals and mean error in points; () that "
      "of the others' mean.\n%-24s %4s %8s %8s %14s %13s\n",
      "gain", "n", "inside", "width", "error", "skips right");
  for (const auto& [what, c] : lines)
    append_format(out, "%-24s %4lld %6.0f %% %8.1f %7.1f (%4.1f) %8lld of %lld\n", what.c_str(),
                  static_cast<long long>(c.tasks), 100 * c.inside_share(), 100 * c.median_width,
                  100 * c.mean_error, 100 * c.error_of_constant, static_cast<long long>(c.right_skips),
                  static_cast<long long>(c.skips));
  return out;
}

nlohmann::ordered_json calibration_json(const std::vector<CalibrationLine>& lines) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [what, c] : lines)
    list.push_back({{"of", what},
                    {"tasks", c.tasks},
                    {"inside", c.inside_share()},
                    {"median_width", c.median_width},
                    {"mean_error", c.mean_error},
                    {"mean_error_of_constant", c.error_of_constant},
                    {"skips", c.skips},
                    {"right_skips", c.right_skips}});
  return list;
}

}  // namespace tuner
