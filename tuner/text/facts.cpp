#include "tuner/text/facts.h"

#include "templates/workload/needed_work.h"
#include "tuner/text/format.h"
#include "tuner/text/time_words.h"

namespace tuner {

using nlohmann::ordered_json;

ordered_json config_json(std::string_view config_text) {
  const Result<Config> config = config_from_text(config_text);
  if (!config) return std::string(config_text);
  ordered_json out = ordered_json::object();
  for (const auto& [name, value] : config->values()) out[name] = value;
  return out;
}

std::string algorithm_of(std::string_view template_name) {
  const AnyTemplate* t = find_template(template_name);
  return t == nullptr ? std::string() : std::string(t->algorithm());
}

std::string algorithm_mark(std::string_view template_name) {
  const std::string algorithm = algorithm_of(template_name);
  return algorithm.empty() || algorithm == "direct" ? "" : algorithm + ": rounds differently from direct";
}

ordered_json race_json(const TunedConfig& t) {
  return {{"race", t.race_id},
          {"finalists", t.finalists},
          {"tied", t.tied},
          {"won_by", won_by_name(t.won_by)},
          {"regret_bound", t.regret_bound},
          {"ratio_to_sentinel", t.ratio},
          {"ratio_low", t.ratio_low},
          {"ratio_high", t.ratio_high},
          {"turns", t.turns},
          {"discarded", t.discarded}};
}

ordered_json tuned_json(const TunedConfig& t, int64_t flops, int64_t bytes) {
  ordered_json out{{"workload", t.workload_key}, {"target", t.target}, {"time_ns", t.time_ns}};
  if (t.certified) {
    out["time_low_ns"] = t.time_low_ns;
    out["time_high_ns"] = t.time_high_ns;
    out["half_width"] = half_width(t);
  }
  out["certified"] = t.certified;
  if (!t.certified) out["uncertified_why"] = t.uncertified_why;
  out["constants"] = constants_name(t.constants);
  if (t.other_time_ns > 0)
    out[t.constants == Constants::kWarm ? "cold_time_ns" : "warm_time_ns"] = t.other_time_ns;
  if (t.default_time_ns > 0) out["default_time_ns"] = t.default_time_ns;
  if (const double gain = claimed_gain(t); gain > 0) out["gain"] = gain;
  if (t.race_id != 0) out["race"] = race_json(t);
  if (flops > 0 && t.time_ns > 0) {
    out["gflops"] = static_cast<double>(flops) / t.time_ns;
    const Result<Workload> workload = workload_from_key(t.workload_key);
    const auto needed = static_cast<double>(workload ? needed_flops(*workload) : flops);
    out["gflops_without_padding"] = needed / t.time_ns;
    if (t.peak_gflops > 0) out["percent_of_peak"] = 100 * needed / t.time_ns / t.peak_gflops;
  }
  if (bytes > 0 && t.time_ns > 0) out["gb_per_s"] = static_cast<double>(bytes) / t.time_ns;
  out["peak_gflops"] = t.peak_gflops;
  out["read_gbps"] = t.read_gbps;
  out["template"] = t.template_name;
  out["algorithm"] = algorithm_of(t.template_name);
  out["template_version"] = t.template_version;
  out["config"] = config_json(t.config);
  out["trial"] = t.trial_name.empty() ? t.trial_id : t.trial_name;
  out["artifact"] = t.artifact_digest;
  out["trials"] = t.trials;
  out["outcomes"] = ordered_json::object();
  for (const auto& [outcome, count] : t.outcomes) out["outcomes"][std::string(outcome_name(outcome))] = count;
  out["fingerprint"] = {{"hardware", t.environment.hardware},
                        {"toolchain", t.environment.toolchain},
                        {"harness_abi", t.environment.harness_abi}};
  out["worker"] = t.environment.worker_id;
  out["host"] = t.environment.host;
  out["when"] = iso_utc(t.finished_at_us);
  return out;
}

ordered_json options_json(const MeasureOptions& o) {
  return {{"min_repeat_ms", o.min_repeat_ms},
          {"repeats", o.repeats},
          {"build_timeout_s", o.build_timeout_s},
          {"run_timeout_s", o.run_timeout_s},
          {"memory_limit_bytes", o.memory_limit_bytes},
          {"cut_factor", o.cut_factor},
          {"precision", o.precision},
          {"constants", constants_name(o.constants)}};
}

ordered_json new_and_known_json(int64_t added, int64_t known) { return {{"new", added}, {"known", known}}; }

std::string one_line(const ordered_json& document) {
  return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}
std::string pretty(const ordered_json& document) {
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace tuner
