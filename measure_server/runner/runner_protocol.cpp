#include "measure_server/runner/runner_protocol.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tuner {

using nlohmann::json;

namespace {

// Reads members of one JSON object; remembers the first thing that is wrong, so a parser reads like the
// struct.
class Reader {
 public:
  Reader(std::string_view what, std::string_view text) : Reader(what, json::parse(text, nullptr, false)) {}
  Reader(std::string_view what, json value) : what_(what), value_(std::move(value)) {
    if (value_.is_discarded())
      fail("not JSON");
    else if (!value_.is_object())
      fail("expected a JSON object");
  }

  void read(const char* key, std::string& out, bool required = true) {
    if (const json* v = find(key, required))
      v->is_string() ? void(out = v->get<std::string>()) : wrong(key, "a string");
  }
  void read(const char* key, bool& out, bool required = true) {
    if (const json* v = find(key, required))
      v->is_boolean() ? void(out = v->get<bool>()) : wrong(key, "true or false");
  }
  void read(const char* key, uint64_t& out, bool required = true) {
    if (const json* v = find(key, required))
      v->is_number_unsigned() ? void(out = v->get<uint64_t>()) : wrong(key, "an integer >= 0");
  }
  // A finite number of at least `least`.
  void read(const char* key, double& out, double least, bool required = true) {
    const json* v = find(key, required);
    if (v == nullptr) return;
    if (!v->is_number() || !std::isfinite(v->get<double>()) || v->get<double>() < least)
      return wrong(key, str("a number >= ", least));
    out = v->get<double>();
  }
  template <class Int>
  void read_int(const char* key, Int& out, int64_t least, int64_t most, bool required = true) {
    if (const json* v = find(key, required)) to_int(key, *v, out, least, most);
  }
  void read(const char* key, std::vector<double>& out) {
    for_each(key,
             [&](const json& v) { v.is_number() ? out.push_back(v.get<double>()) : wrong(key, "numbers"); });
  }
  void read(const char* key, std::vector<int>& out) {
    for_each(key, [&](const json& v) { to_int(key, v, out.emplace_back(), 0, 1 << 20); });
  }
  void read(const char* key, std::vector<RunRequest::Data>& out) {
    for_each(key, [&](const json& v) {
      if (!v.is_array() || v.size() != 2 || !v[0].is_string() || !v[1].is_string())
        return wrong(key, "[argument, path] pairs");
      out.push_back({v[0].get<std::string>(), v[1].get<std::string>()});
    });
  }
  // Numbers by name; there may be none.
  void read(const char* key, std::map<std::string, double>& out) {
    const json* v = find(key, /*required=*/false);
    if (v == nullptr) return;
    if (!v->is_object()) return wrong(key, "numbers by name");
    for (const auto& [name, number] : v->items())
      number.is_number() ? void(out[name] = number.get<double>()) : wrong(key, "numbers by name");
  }
  // Every object of an optional list; what is wrong in one is wrong here.
  template <class F>
  void read_objects(const char* key, const F& f) {
    if (find(key, /*required=*/false) == nullptr) return;
    for_each(key, [&](const json& v) {
      Reader each(str(what_, ": ", key), v);
      f(each);
      if (status_.is_ok()) status_ = each.status();
    });
  }
  const json* find(const char* key, bool required) {
    if (!status_.is_ok()) return nullptr;
    const auto it = value_.find(key);
    if (it != value_.end()) return &*it;
    if (required) fail(str("key \"", key, "\" is missing"));
    return nullptr;
  }
  void fail(const std::string& why) {
    if (status_.is_ok()) status_ = invalid_argument(what_, ": ", why);
  }
  const Status& status() const { return status_; }

 private:
  template <class Int>
  void to_int(const char* key, const json& v, Int& out, int64_t least, int64_t most) {
    // An unsigned number above the int64 range would wrap when read as signed.
    const bool fits =
        v.is_number_integer() && (!v.is_number_unsigned() || v.get<uint64_t>() <= uint64_t{INT64_MAX});
    if (!fits || v.get<int64_t>() < least || v.get<int64_t>() > most)
      return wrong(key, str("an integer in ", least, "..", most));
    out = static_cast<Int>(v.get<int64_t>());
  }
  template <class F>
  void for_each(const char* key, const F& f) {
    const json* v = find(key, true);
    if (v == nullptr) return;
    if (!v->is_array()) return wrong(key, "an array");
    for (const json& element : *v) f(element);
  }
  void wrong(const char* key, const std::string& expected) {
    const std::string found = value_[key].dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80);
    fail(str("key \"", key, "\": expected ", expected, ", found ", found));
  }

  std::string what_;
  json value_;
  Status status_;
};

std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

DeviceInfo read_device(Reader& in) {
  DeviceInfo d;
  in.read_int("ordinal", d.ordinal, 0, 1023);
  in.read("name", d.name);
  in.read("arch", d.arch);
  in.read("uuid", d.uuid);
  in.read_int("multiprocessors", d.multiprocessors, 0, 1 << 20);
  in.read_int("driver_version", d.driver_version, 0, 1 << 30);
  in.read_int("memory_bytes", d.memory_bytes, 0, INT64_MAX);
  in.read_int("l2_bytes", d.l2_bytes, 0, INT64_MAX);
  in.read("peak_gflops", d.peak_gflops, 0);
  in.read("fingerprint", d.fingerprint);
  return d;
}

json pairs(const std::vector<RunRequest::Data>& data) {
  json out = json::array();
  for (const RunRequest::Data& d : data) out.push_back({d.arg, d.path});
  return out;
}

json run_json(const RunRequest& r) {
  return json({{"kind", "run"},
               {"id", r.id},
               {"artifact_dir", r.artifact_dir},
               {"digest", r.digest},
               {"inputs", pairs(r.inputs)},
               {"references", pairs(r.references)},
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
               {"caches", caches_name(r.caches)}});
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
               {"outcome", r.outcome},
               {"message", r.message},
               {"run_ns", r.run_ns},
               {"cpu_ns", r.cpu_ns},
               {"cut", r.cut},
               {"max_error", std::isfinite(r.max_error) ? r.max_error : std::numeric_limits<double>::max()},
               {"sentinel_before_ns", r.sentinel_before_ns},
               {"sentinel_after_ns", r.sentinel_after_ns},
               {"memory_before_ns", r.memory_before_ns},
               {"memory_after_ns", r.memory_after_ns},
               {"disturbed", r.disturbed},
               {"retaken", r.retaken},
               {"pulse_ns", r.pulse_ns},
               {"run_ms", r.run_ms},
               {"check_ms", r.check_ms},
               {"device_state", r.device_state},
               {"facts", r.facts},
               {"error", r.error},
               {"device_sick", r.device_sick}});
}

std::string to_json(const RaceReply& r) {
  json candidates = json::array();
  for (const RaceReply::Candidate& c : r.candidates)
    candidates.push_back(
        {{"outcome", c.outcome},
         {"message", c.message},
         {"run_ns", c.run_ns},
         {"cpu_ns", c.cpu_ns},
         {"sentinel_ns", c.sentinel_ns},
         {"memory_ns", c.memory_ns},
         {"other_ns", c.other_ns},
         {"turns", c.turns},
         {"discarded", c.discarded},
         {"disturbed", c.disturbed},
         {"pulse_ns", c.pulse_ns},
         {"max_error", std::isfinite(c.max_error) ? c.max_error : std::numeric_limits<double>::max()}});
  return dump({{"id", r.id}, {"candidates", candidates}, {"run_ms", r.run_ms}, {"error", r.error}});
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
    devices.push_back({{"ordinal", d.ordinal},
                       {"name", d.name},
                       {"arch", d.arch},
                       {"uuid", d.uuid},
                       {"multiprocessors", d.multiprocessors},
                       {"driver_version", d.driver_version},
                       {"memory_bytes", d.memory_bytes},
                       {"l2_bytes", d.l2_bytes},
                       {"peak_gflops", d.peak_gflops},
                       {"fingerprint", d.fingerprint}});
  return dump({{"harness_abi", r.harness_abi},
               {"version", r.version},
               {"hardware", r.hardware},
               {"isolation", r.isolation},
               {"peak_gflops", r.peaks.float32},
               {"peak_gflops_bfloat16", r.peaks.bfloat16},
               {"peak_gflops_int8", r.peaks.int8},
               {"read_gbps", levels},
               {"devices", devices},
               {"no_device", r.no_device}});
}

Result<RunRequest> parse_run_request(std::string_view text) {
  Reader in("run request", text);
  RunRequest r;
  std::string kind;
  in.read("kind", kind);
  if (in.status().is_ok() && kind != "run")
    in.fail(str("key \"kind\": expected \"run\", found \"", kind, "\""));
  in.read("id", r.id);
  in.read("artifact_dir", r.artifact_dir);
  in.read("digest", r.digest);
  in.read("inputs", r.inputs);
  in.read("references", r.references);
  in.read("absolute", r.check.absolute, 0);
  in.read("relative", r.check.relative, 0);
  in.read("min_repeat_ms", r.min_repeat_ms, 0);
  in.read_int("repeats", r.repeats, 1, 1000);
  in.read("precision", r.precision, 0);
  in.read("run_timeout_s", r.run_timeout_s, 0);
  in.read_int("memory_limit_bytes", r.memory_limit_bytes, 1, INT64_MAX);
  in.read("cut_above_ns", r.cut_above_ns, 0);
  in.read("slow_above_ns", r.slow_above_ns, 0);
  std::string constants = "warm";
  in.read("constants", constants, /*required=*/false);
  if (constants != "warm" && constants != "cold")
    in.fail(str("key \"constants\": expected warm or cold, found \"", constants, "\""));
  r.cold_constants = constants == "cold";
  in.read("calm_pulse_ns", r.calm_pulse_ns, 0, /*required=*/false);
  in.read("patience_ms", r.patience_ms, 0, /*required=*/false);
  in.read("cpus", r.cpus);
  in.read_int("device", r.device, 0, 1023, /*required=*/false);
  std::string name = "warm";
  in.read("caches", name, /*required=*/false);
  const std::optional<Caches> caches = caches_from_name(name);
  if (!caches) in.fail(str("key \"caches\": expected warm, flush or rotate, found \"", name, "\""));
  r.caches = caches.value_or(Caches::kWarm);
  RETURN_IF_ERROR(in.status());
  return r;
}

Result<RunnerMessage> parse_runner_message(std::string_view text) {
  Reader in("message to the runner", text);
  std::string kind;
  in.read("kind", kind);
  RETURN_IF_ERROR(in.status());
  if (kind == "run") {
    ASSIGN_OR_RETURN(RunRequest r, parse_run_request(text));
    return RunnerMessage(std::move(r));
  }
  if (kind == "race") {
    RaceRequest r;
    const json* base = in.find("base", /*required=*/true);
    RETURN_IF_ERROR(in.status());
    ASSIGN_OR_RETURN(r.base, parse_run_request(dump(*base)));
    in.read_objects("candidates", [&](Reader& each) {
      RaceRequest::Candidate& c = r.candidates.emplace_back();
      each.read("digest", c.digest);
      each.read("absolute", c.check.absolute, 0);
      each.read("relative", c.check.relative, 0);
    });
    if (in.status().is_ok() && (r.candidates.empty() || r.candidates.size() > 64))
      in.fail(str("key \"candidates\": expected 1..64, found ", r.candidates.size()));
    in.read_int("rounds", r.rounds, 1, 500);
    in.read_int("samples", r.samples, 1, 100, /*required=*/false);
    in.read_int("other_samples", r.other_samples, 0, 100, /*required=*/false);
    in.read("memory_disturbed_above_ns", r.memory_disturbed_above_ns, 0, /*required=*/false);
    RETURN_IF_ERROR(in.status());
    return RunnerMessage(std::move(r));
  }
  if (kind == "probe") {
    ProbeRequest r;
    in.read_int("max_threads", r.max_threads, -1, 4096);
    in.read("devices_only", r.devices_only, /*required=*/false);
    RETURN_IF_ERROR(in.status());
    return RunnerMessage(r);
  }
  if (kind == "cancel") {
    CancelRequest r;
    in.read("id", r.id);
    RETURN_IF_ERROR(in.status());
    return RunnerMessage(r);
  }
  return invalid_argument(
      "message to the runner: key \"kind\": expected run, race, probe or cancel, found \"", kind, "\"");
}

Result<RunReply> parse_run_reply(std::string_view text) {
  Reader in("run reply", text);
  RunReply r;
  in.read("id", r.id);
  in.read("outcome", r.outcome);
  in.read("message", r.message);
  in.read("run_ns", r.run_ns);
  in.read("cpu_ns", r.cpu_ns);
  in.read("cut", r.cut);
  in.read("max_error", r.max_error, 0);
  in.read("sentinel_before_ns", r.sentinel_before_ns, 0);
  in.read("sentinel_after_ns", r.sentinel_after_ns, 0);
  in.read("memory_before_ns", r.memory_before_ns, 0, /*required=*/false);
  in.read("memory_after_ns", r.memory_after_ns, 0, /*required=*/false);
  in.read_int("disturbed", r.disturbed, 0, INT32_MAX, /*required=*/false);
  in.read_int("retaken", r.retaken, 0, INT32_MAX, /*required=*/false);
  in.read("pulse_ns", r.pulse_ns, 0, /*required=*/false);
  in.read("run_ms", r.run_ms, 0);
  in.read("check_ms", r.check_ms, 0);
  in.read("device_state", r.device_state, /*required=*/false);
  in.read("facts", r.facts);
  in.read("error", r.error, /*required=*/false);
  in.read("device_sick", r.device_sick, /*required=*/false);
  RETURN_IF_ERROR(in.status());
  if (r.outcome.empty() == r.error.empty())
    return invalid_argument("run reply: expected either an outcome or an error, found ",
                            r.outcome.empty() ? "neither" : "both");
  return r;
}

Result<RaceReply> parse_race_reply(std::string_view text) {
  Reader in("race reply", text);
  RaceReply r;
  in.read("id", r.id);
  in.read_objects("candidates", [&](Reader& each) {
    RaceReply::Candidate& c = r.candidates.emplace_back();
    each.read("outcome", c.outcome);
    each.read("message", c.message);
    each.read("run_ns", c.run_ns);
    each.read("cpu_ns", c.cpu_ns);
    each.read("sentinel_ns", c.sentinel_ns);
    each.read("memory_ns", c.memory_ns);
    each.read("other_ns", c.other_ns);
    each.read_int("turns", c.turns, 0, INT32_MAX);
    each.read_int("discarded", c.discarded, 0, INT32_MAX);
    each.read_int("disturbed", c.disturbed, 0, INT32_MAX);
    each.read("pulse_ns", c.pulse_ns, 0, /*required=*/false);
    each.read("max_error", c.max_error, 0);
  });
  in.read("run_ms", r.run_ms, 0);
  in.read("error", r.error, /*required=*/false);
  RETURN_IF_ERROR(in.status());
  return r;
}

Result<ProbeReply> parse_probe_reply(std::string_view text) {
  Reader in("probe reply", text);
  ProbeReply r;
  in.read_int("harness_abi", r.harness_abi, 1, 1 << 20);
  in.read("version", r.version);
  in.read("hardware", r.hardware);
  in.read("isolation", r.isolation);
  in.read("peak_gflops", r.peaks.float32);
  in.read("peak_gflops_bfloat16", r.peaks.bfloat16);
  in.read("peak_gflops_int8", r.peaks.int8);
  in.read_objects("read_gbps", [&](Reader& each) {
    CpuBandwidths::Level& level = r.bandwidths.levels.emplace_back();
    each.read_int("capacity_bytes", level.capacity_bytes, 1, INT64_MAX);
    each.read("gbps", level.gbps);
  });
  in.read("no_device", r.no_device, /*required=*/false);
  in.read_objects("devices", [&](Reader& each) { r.devices.push_back(read_device(each)); });
  RETURN_IF_ERROR(in.status());
  return r;
}

}  // namespace tuner
