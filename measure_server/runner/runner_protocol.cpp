#include "measure_server/runner/runner_protocol.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "compiler_core/base/json_reader.h"
#include "compiler_core/base/measure_limits.h"

namespace tuner {

using json_input::kRequired;
using json_input::Reader;
using nlohmann::json;

namespace {

Result<json> parsed(std::string_view what, std::string_view text) {
  Result<json> document = json_input::parse(text);
  if (!document) return document.status().with_context(str(what, ": "));
  return document;
}

void read_pairs(Reader& in, const char* key, std::vector<RunRequest::Data>& out) {
  const json* list = in.list(key, kRequired);
  if (list == nullptr) return;
  for (const json& v : *list) {
    if (!v.is_array() || v.size() != 2 || !v[0].is_string() || !v[1].is_string())
      return in.refuse(key, "expected [argument, path] pairs, found ", json_input::found(v), ".");
    out.push_back({v[0].get<std::string>(), v[1].get<std::string>()});
  }
}

// Numbers by name; there may be none.
void read_numbers(Reader& in, const char* key, std::map<std::string, double>& out) {
  const json* numbers = in.get(key);
  if (numbers == nullptr) return;
  if (!numbers->is_object())
    return in.refuse(key, "expected numbers by name, found ", json_input::found(*numbers), ".");
  for (const auto& [name, number] : numbers->items()) {
    if (!number.is_number())
      return in.refuse(key, "expected numbers by name, found ", json_input::found(*numbers), ".");
    out[name] = number.get<double>();
  }
}

std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

DeviceInfo read_device(Reader& in) {
  DeviceInfo d;
  in.read("family", d.family, kRequired);
  in.read("ordinal", d.ordinal, 0, 1023, kRequired);
  in.read("name", d.name, kRequired);
  in.read("arch", d.arch, kRequired);
  in.read("uuid", d.uuid, kRequired);
  in.read("multiprocessors", d.multiprocessors, 0, 1 << 20, kRequired);
  in.read("driver_version", d.driver_version, 0, 1 << 30, kRequired);
  in.read("memory_bytes", d.memory_bytes, 0, INT64_MAX, kRequired);
  in.read("l2_bytes", d.l2_bytes, 0, INT64_MAX, kRequired);
  in.read_at_least("peak_gflops", d.peak_gflops, 0, kRequired);
  in.read_at_least("half_peak_gflops", d.half_peak_gflops, 0);  // runners of before did not say it
  in.read_at_least("byte_peak_gflops", d.byte_peak_gflops, 0);
  in.read("fingerprint", d.fingerprint, kRequired);
  return d;
}

json pairs(const std::vector<RunRequest::Data>& data) {
  json out = json::array();
  for (const RunRequest::Data& d : data) out.push_back({d.arg, d.path});
  return out;
}

json input_sets(const std::vector<RunRequest::InputSet>& sets) {
  json out = json::array();
  for (const RunRequest::InputSet& s : sets)
    out.push_back({{"inputs", pairs(s.inputs)}, {"references", pairs(s.references)}});
  return out;
}

json run_json(const RunRequest& r) {
  return json({{"kind", "run"},
               {"id", r.id},
               {"artifact_dir", r.artifact_dir},
               {"digest", r.digest},
               {"inputs", pairs(r.inputs)},
               {"references", pairs(r.references)},
               {"others", input_sets(r.others)},
               {"prove_with", r.prove_with},
               {"absolute", r.check.absolute},
               {"relative", r.check.relative},
               {"min_repeat_ms", r.min_repeat_ms},
               {"repeats", r.repeats},
               {"precision", r.precision},
               {"run_timeout_s", r.run_timeout_s},
               {"memory_limit_bytes", r.memory_limit_bytes},
               {"cut_above_ns", r.cut_above_ns},
               {"slow_above_ns", r.slow_above_ns},
               {"constants", r.cold_constants ? "cold" : "warm"},
               {"calm_pulse_ns", r.calm_pulse_ns},
               {"patience_ms", r.patience_ms},
               {"cpus", r.cpus},
               {"device", r.device},
               {"caches", caches_name(r.caches)},
               {"checker", r.checker},
               {"wary", r.wary}});
}
json difference_json(const Difference& d) {
  return json({{"output", d.output}, {"index", d.index}, {"found", d.found}, {"expected", d.expected}});
}
void read_difference(Reader& in, Difference& d) {
  const json* object = in.get("difference");
  if (object == nullptr) return;
  Reader each(*object, "difference.");
  each.read("output", d.output);
  if (const json* index = each.list("index"))
    for (const json& one : *index) {
      if (!one.is_number_integer()) return in.refuse("difference.index", "expected integers.");
      d.index.push_back(one.get<int64_t>());
    }
  each.read("found", d.found);
  each.read("expected", d.expected);
  in.adopt(each.status());
}
// None is "".
std::string text_of(const std::optional<Outcome>& outcome) {
  return outcome ? std::string(outcome_name(*outcome)) : std::string();
}
void read_outcome(Reader& in, std::optional<Outcome>& outcome) {
  std::string text;
  in.read("outcome", text, kRequired);
  outcome = outcome_from_name(text);
  if (!outcome && !text.empty()) in.refuse("outcome", "expected a known one, found \"", text, "\".");
}

}  // namespace

std::string_view caches_name(Caches caches) {
  switch (caches) {
    case Caches::kWarm:
      return "warm";
    case Caches::kFlush:
      return "flush";
    case Caches::kRotate:
      return "rotate";
  }
  return "warm";
}

std::optional<Caches> caches_from_name(std::string_view name) {
  for (const Caches caches : {Caches::kWarm, Caches::kFlush, Caches::kRotate})
    if (caches_name(caches) == name) return caches;
  return std::nullopt;
}

std::chrono::seconds first_device_start() {
  constexpr int64_t kDefaultS = 120, kMostS = 3600;
  const char* given = std::getenv("TUNER_DEVICE_START_S");
  const int64_t s = given != nullptr ? std::atoll(given) : 0;
  return std::chrono::seconds(s > 0 ? std::min(s, kMostS) : kDefaultS);
}

std::string to_json(const RunRequest& r) { return dump(run_json(r)); }

std::string to_json(const RaceRequest& r) {
  json candidates = json::array();
  for (const RaceRequest::Candidate& c : r.candidates)
    candidates.push_back(
        {{"digest", c.digest}, {"absolute", c.check.absolute}, {"relative", c.check.relative}});
  return dump({{"kind", "race"},
               {"base", run_json(r.base)},
               {"candidates", candidates},
               {"rounds", r.rounds},
               {"samples", r.samples},
               {"other_samples", r.other_samples},
               {"memory_disturbed_above_ns", r.memory_disturbed_above_ns}});
}

std::string to_json(const ProbeRequest& r) {
  return dump({{"kind", "probe"}, {"max_threads", r.max_threads}, {"devices_only", r.devices_only}});
}
std::string to_json(const CancelRequest& r) { return dump({{"kind", "cancel"}, {"id", r.id}}); }

std::string to_json(const RunReply& r) {
  // max_error is infinite when an output is NaN; JSON has no infinity, so it travels as the largest double.
  return dump({{"id", r.id},
               {"outcome", text_of(r.outcome)},
               {"message", r.message},
               {"difference", difference_json(r.difference)},
               {"doubted", r.doubted},
               {"run_ns", r.run_ns},
               {"cpu_ns", r.cpu_ns},
               {"cut", r.cut},
               {"isolation", r.isolation},
               {"input_sets", r.input_sets},
               {"max_error", std::isfinite(r.max_error) ? r.max_error : std::numeric_limits<double>::max()},
               {"sentinel_before_ns", r.sentinel_before_ns},
               {"sentinel_after_ns", r.sentinel_after_ns},
               {"memory_before_ns", r.memory_before_ns},
               {"memory_after_ns", r.memory_after_ns},
               {"disturbed", r.disturbed},
               {"slices", r.slices},
               {"retaken", r.retaken},
               {"pulse_ns", r.pulse_ns},
               {"exact_clock", r.exact_clock},
               {"run_ms", r.run_ms},
               {"check_ms", r.check_ms},
               {"device_state", r.device_state},
               {"facts", r.facts},
               {"error", r.error},
               {"refused", r.refused},
               {"device_sick", r.device_sick}});
}

std::string to_json(const RaceReply& r) {
  json candidates = json::array();
  for (const RaceReply::Candidate& c : r.candidates)
    candidates.push_back(
        {{"outcome", text_of(c.outcome)},
         {"message", c.message},
         {"difference", difference_json(c.difference)},
         {"doubted", c.doubted},
         {"run_ns", c.run_ns},
         {"cpu_ns", c.cpu_ns},
         {"sentinel_ns", c.sentinel_ns},
         {"memory_ns", c.memory_ns},
         {"other_ns", c.other_ns},
         {"turns", c.turns},
         {"discarded", c.discarded},
         {"disturbed", c.disturbed},
         {"slices", c.slices},
         {"retaken", c.retaken},
         {"pulse_ns", c.pulse_ns},
         {"exact_clock", c.exact_clock},
         {"max_error", std::isfinite(c.max_error) ? c.max_error : std::numeric_limits<double>::max()}});
  return dump({{"id", r.id},
               {"candidates", candidates},
               {"run_ms", r.run_ms},
               {"error", r.error},
               {"device_sick", r.device_sick}});
}

double CpuPeaks::of(DType dtype, int threads) const {
  const std::vector<double>& peaks = dtype == DType::kBFloat16 ? bfloat16
                                     : dtype == DType::kInt8   ? int8
                                                               : float32;
  const auto n = static_cast<size_t>(threads);
  return n >= 1 && n <= peaks.size() ? peaks[n - 1] : 0;
}

double CpuBandwidths::of(int64_t bytes, int threads) const {
  const auto n = static_cast<size_t>(threads);
  for (const Level& level : levels)
    if (bytes / std::max(threads, 1) <= level.capacity_bytes)
      return n >= 1 && n <= level.gbps.size() ? level.gbps[n - 1] : 0;
  return 0;
}

std::string to_json(const ProbeReply& r) {
  json levels = json::array();
  for (const CpuBandwidths::Level& l : r.bandwidths.levels)
    levels.push_back({{"capacity_bytes", l.capacity_bytes}, {"gbps", l.gbps}});
  json devices = json::array();
  for (const DeviceInfo& d : r.devices)
    devices.push_back({{"family", d.family},
                       {"ordinal", d.ordinal},
                       {"name", d.name},
                       {"arch", d.arch},
                       {"uuid", d.uuid},
                       {"multiprocessors", d.multiprocessors},
                       {"driver_version", d.driver_version},
                       {"memory_bytes", d.memory_bytes},
                       {"l2_bytes", d.l2_bytes},
                       {"peak_gflops", d.peak_gflops},
                       {"half_peak_gflops", d.half_peak_gflops},
                       {"byte_peak_gflops", d.byte_peak_gflops},
                       {"fingerprint", d.fingerprint}});
  return dump({{"harness_abi", r.harness_abi},
               {"version", r.version},
               {"hardware", r.hardware},
               {"isolation", r.isolation},
               {"isolation_missing", r.isolation_missing},
               {"peak_gflops", r.peaks.float32},
               {"peak_gflops_bfloat16", r.peaks.bfloat16},
               {"peak_gflops_int8", r.peaks.int8},
               {"read_gbps", levels},
               {"devices", devices},
               {"no_device", r.no_device}});
}

namespace {

// `runs`: how many candidates share the request's time.
Result<RunRequest> run_request(const json& document, double runs = 1) {
  Reader in(document, "run request: ");
  RunRequest r;
  std::string kind;
  in.read("kind", kind, kRequired);
  if (kind != "run") in.refuse("kind", "expected \"run\", found \"", kind, "\".");
  in.read("id", r.id, kRequired);
  in.read("artifact_dir", r.artifact_dir, kRequired);
  in.read("digest", r.digest, kRequired);
  read_pairs(in, "inputs", r.inputs);
  read_pairs(in, "references", r.references);
  in.read_objects("others", [&](Reader& each) {
    RunRequest::InputSet& set = r.others.emplace_back();
    read_pairs(each, "inputs", set.inputs);
    read_pairs(each, "references", set.references);
  });
  in.read("prove_with", r.prove_with, 0, static_cast<int64_t>(r.others.size()));
  in.read_at_least("absolute", r.check.absolute, 0, kRequired);
  in.read_at_least("relative", r.check.relative, 0, kRequired);
  in.read_within("min_repeat_ms", r.min_repeat_ms, kMinRepeatMs.least, kMinRepeatMs.most, kRequired);
  in.read("repeats", r.repeats, 1, static_cast<int>(kRepeats.most), kRequired);
  in.read_within("precision", r.precision, kPrecision.least, kPrecision.most, kRequired);
  in.read_within("run_timeout_s", r.run_timeout_s, 0, runs * kRunTimeoutS.most, kRequired);
  in.read("memory_limit_bytes", r.memory_limit_bytes, 1, INT64_MAX, kRequired);
  in.read_at_least("cut_above_ns", r.cut_above_ns, 0, kRequired);
  in.read_at_least("slow_above_ns", r.slow_above_ns, 0, kRequired);
  std::string constants = "warm";
  in.read("constants", constants);
  if (constants != "warm" && constants != "cold")
    in.refuse("constants", "expected warm or cold, found \"", constants, "\".");
  r.cold_constants = constants == "cold";
  in.read_at_least("calm_pulse_ns", r.calm_pulse_ns, 0);
  in.read_at_least("patience_ms", r.patience_ms, 0);
  in.read("cpus", r.cpus, 0, 1 << 20, kRequired);
  in.read("device", r.device, 0, 1023);
  std::string name = "warm";
  in.read("checker", r.checker);
  in.read("wary", r.wary);
  in.read("caches", name);
  const std::optional<Caches> caches = caches_from_name(name);
  if (!caches) in.refuse("caches", "expected warm, flush or rotate, found \"", name, "\".");
  r.caches = caches.value_or(Caches::kWarm);
  RETURN_IF_ERROR(in.status());
  return r;
}

Result<RaceRequest> race_request(Reader& in) {
  RaceRequest r;
  const json* base = in.get("base", kRequired);
  RETURN_IF_ERROR(in.status());
  ASSIGN_OR_RETURN(r.base, run_request(*base, kRaceFinalists.most));
  in.read_objects("candidates", [&](Reader& each) {
    RaceRequest::Candidate& c = r.candidates.emplace_back();
    each.read("digest", c.digest, kRequired);
    each.read_at_least("absolute", c.check.absolute, 0, kRequired);
    each.read_at_least("relative", c.check.relative, 0, kRequired);
  });
  if (!kRaceFinalists.holds(static_cast<double>(r.candidates.size())))
    in.refuse("candidates", "expected 1 to ", kRaceFinalists.most, ", found ", r.candidates.size(), ".");
  in.read("rounds", r.rounds, 1, static_cast<int>(kRaceRounds.most), kRequired);
  in.read("samples", r.samples, 1, 100);
  in.read("other_samples", r.other_samples, 0, 100);
  in.read_at_least("memory_disturbed_above_ns", r.memory_disturbed_above_ns, 0);
  RETURN_IF_ERROR(in.status());
  return r;
}

}  // namespace

Result<RunRequest> parse_run_request(std::string_view text) {
  ASSIGN_OR_RETURN(const json document, parsed("run request", text));
  return run_request(document);
}

Result<RunnerMessage> parse_runner_message(std::string_view text) {
  ASSIGN_OR_RETURN(const json document, parsed("message to the runner", text));
  Reader in(document, "message to the runner: ");
  std::string kind;
  in.read("kind", kind, kRequired);
  RETURN_IF_ERROR(in.status());
  if (kind == "run") {
    ASSIGN_OR_RETURN(RunRequest r, run_request(document));
    return RunnerMessage(std::move(r));
  }
  if (kind == "race") {
    ASSIGN_OR_RETURN(RaceRequest r, race_request(in));
    return RunnerMessage(std::move(r));
  }
  if (kind == "probe") {
    ProbeRequest r;
    in.read("max_threads", r.max_threads, -1, 4096, kRequired);
    in.read("devices_only", r.devices_only);
    RETURN_IF_ERROR(in.status());
    return RunnerMessage(r);
  }
  if (kind == "cancel") {
    CancelRequest r;
    in.read("id", r.id, kRequired);
    RETURN_IF_ERROR(in.status());
    return RunnerMessage(r);
  }
  in.refuse("kind", "expected run, race, probe or cancel, found \"", kind, "\".");
  return in.status();
}

Result<RunReply> parse_run_reply(std::string_view text) {
  ASSIGN_OR_RETURN(const json document, parsed("run reply", text));
  Reader in(document, "run reply: ");
  RunReply r;
  in.read("id", r.id, kRequired);
  read_outcome(in, r.outcome);
  in.read("message", r.message, kRequired);
  read_difference(in, r.difference);
  in.read("doubted", r.doubted);
  in.read("run_ns", r.run_ns, kRequired);
  in.read("cpu_ns", r.cpu_ns, kRequired);
  in.read("cut", r.cut, kRequired);
  in.read("isolation", r.isolation);
  in.read("input_sets", r.input_sets, 1, 1 << 10);
  in.read_at_least("max_error", r.max_error, 0, kRequired);
  in.read_at_least("sentinel_before_ns", r.sentinel_before_ns, 0, kRequired);
  in.read_at_least("sentinel_after_ns", r.sentinel_after_ns, 0, kRequired);
  in.read_at_least("memory_before_ns", r.memory_before_ns, 0);
  in.read_at_least("memory_after_ns", r.memory_after_ns, 0);
  in.read("disturbed", r.disturbed, 0, INT32_MAX);
  in.read("slices", r.slices, 0, INT32_MAX);
  in.read("retaken", r.retaken, 0, INT32_MAX);
  in.read_at_least("pulse_ns", r.pulse_ns, 0);
  in.read("exact_clock", r.exact_clock);
  in.read_at_least("run_ms", r.run_ms, 0, kRequired);
  in.read_at_least("check_ms", r.check_ms, 0, kRequired);
  in.read("device_state", r.device_state);
  read_numbers(in, "facts", r.facts);
  in.read("error", r.error);
  in.read("refused", r.refused);
  in.read("device_sick", r.device_sick);
  RETURN_IF_ERROR(in.status());
  if (r.outcome.has_value() != r.error.empty())
    return invalid_argument("run reply: expected either an outcome or an error, found ",
                            r.outcome ? "both" : "neither");
  return r;
}

Result<RaceReply> parse_race_reply(std::string_view text) {
  ASSIGN_OR_RETURN(const json document, parsed("race reply", text));
  Reader in(document, "race reply: ");
  RaceReply r;
  in.read("id", r.id, kRequired);
  in.read_objects("candidates", [&](Reader& each) {
    RaceReply::Candidate& c = r.candidates.emplace_back();
    read_outcome(each, c.outcome);
    each.read("message", c.message, kRequired);
    read_difference(each, c.difference);
    each.read("doubted", c.doubted);
    each.read("run_ns", c.run_ns, kRequired);
    each.read("cpu_ns", c.cpu_ns, kRequired);
    each.read("sentinel_ns", c.sentinel_ns, kRequired);
    each.read("memory_ns", c.memory_ns, kRequired);
    each.read("other_ns", c.other_ns, kRequired);
    each.read("turns", c.turns, 0, INT32_MAX, kRequired);
    each.read("discarded", c.discarded, 0, INT32_MAX, kRequired);
    each.read("disturbed", c.disturbed, 0, INT32_MAX, kRequired);
    each.read("slices", c.slices, 0, INT32_MAX);
    each.read("retaken", c.retaken, 0, INT32_MAX);
    each.read_at_least("pulse_ns", c.pulse_ns, 0);
    each.read("exact_clock", c.exact_clock);
    each.read_at_least("max_error", c.max_error, 0, kRequired);
  });
  in.read_at_least("run_ms", r.run_ms, 0, kRequired);
  in.read("error", r.error);
  in.read("refused", r.refused);
  in.read("device_sick", r.device_sick);
  RETURN_IF_ERROR(in.status());
  return r;
}

Result<ProbeReply> parse_probe_reply(std::string_view text) {
  ASSIGN_OR_RETURN(const json document, parsed("probe reply", text));
  Reader in(document, "probe reply: ");
  ProbeReply r;
  in.read("harness_abi", r.harness_abi, 1, 1 << 20, kRequired);
  in.read("version", r.version, kRequired);
  in.read("hardware", r.hardware, kRequired);
  in.read("isolation", r.isolation, kRequired);
  in.read("isolation_missing", r.isolation_missing);
  in.read("peak_gflops", r.peaks.float32, kRequired);
  in.read("peak_gflops_bfloat16", r.peaks.bfloat16, kRequired);
  in.read("peak_gflops_int8", r.peaks.int8, kRequired);
  in.read_objects("read_gbps", [&](Reader& each) {
    CpuBandwidths::Level& level = r.bandwidths.levels.emplace_back();
    each.read("capacity_bytes", level.capacity_bytes, 1, INT64_MAX, kRequired);
    each.read("gbps", level.gbps, kRequired);
  });
  in.read("no_device", r.no_device);
  in.read_objects("devices", [&](Reader& each) { r.devices.push_back(read_device(each)); });
  RETURN_IF_ERROR(in.status());
  return r;
}

std::string gib_text(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

}  // namespace tuner
