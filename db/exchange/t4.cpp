// T4 documents: what Kernel Tuner and other tuners that agreed on a schema write as their results.
//
//   {"schema_version": "1.0.0", "results": [{"configuration": {...}, "times": {"runtimes": [ms, ...], ...},
//    "invalidity": "correct", "correctness": 1, "measurements": [{"name", "value", "unit"}, ...],
//    "objectives": ["time"], "timestamp": "..."}, ...]}
#include <algorithm>

#include "compiler_core/base/statistics.h"
#include "db/exchange/formats.h"
#include "db/exchange/json_fields.h"
#include "db/exchange/json_walker.h"
#include "db/plausible.h"

namespace tuner::exchange {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr std::pair<std::string_view, Outcome> kInvalidity[] = {
    {"correct", Outcome::kOk},         {"constraints", Outcome::kInvalidConfig},
    {"compile", Outcome::kBuildError}, {"timeout", Outcome::kRunTimeout},
    {"runtime", Outcome::kCrashed},    {"correctness", Outcome::kWrongAnswer}};

std::string_view invalidity_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "correct";
    case Outcome::kInvalidConfig:
      return "constraints";
    case Outcome::kBuildError:
      return "compile";
    case Outcome::kBuildTimeout:
    case Outcome::kRunTimeout:
      return "timeout";
    case Outcome::kWrongAnswer:
      return "correctness";
    default:
      return "runtime";
  }
}

// Nanoseconds of one of the unit; 0: not a unit of time.
double unit_ns(std::string_view unit) {
  if (unit == "s" || unit == "seconds") return 1e9;
  if (unit == "ms" || unit == "milliseconds" || unit.empty())
    return 1e6;  // the schema's examples leave out "ms"
  if (unit == "us" || unit == "microseconds") return 1e3;
  if (unit == "ns" || unit == "nanoseconds") return 1;
  return 0;
}

// KTT writes "2026-03-05 09:04:43 UTC".
std::string_view without_utc(std::string_view text) {
  if (text.ends_with(" UTC")) text.remove_suffix(4);
  return text;
}

// The first of the keys that is a text, in the header or one level below it.
std::string header_text(const json& header, std::initializer_list<const char*> keys) {
  if (!header.is_object()) return {};
  for (const char* key : keys) {
    if (header.contains(key) && header[key].is_string()) return header[key].get<std::string>();
    if (header.contains("metadata") && header["metadata"].is_object() && header["metadata"].contains(key) &&
        header["metadata"][key].is_string())
      return header["metadata"][key].get<std::string>();
  }
  return {};
}

}  // namespace

Result<T4Document> split_t4(std::string_view text) {
  T4Document out;
  JsonWalker w(text);
  w.skip_blank();
  if (w.at_end() || w.here() != '{')
    return invalid_argument("no T4 document: expected an object with a list \"results\"");
  w.step();
  const auto cut = [&](std::string_view what) {
    out.broken = str("line ", w.line(), ": ", what);
    return out;
  };
  std::string_view before, after;
  bool found = false;
  for (;;) {
    w.skip_blank();
    if (!w.at_end() && w.here() == ',') {
      w.step();
      continue;
    }
    if (w.at_end() || w.here() == '}') break;
    if (w.here() != '"') {
      if (!found) break;
      return cut("expected a key in quotes");
    }
    const size_t key_at = w.at();
    if (!w.string()) break;
    const std::string_view key = text.substr(key_at, w.at() - key_at);
    w.skip_blank();
    if (w.at_end() || w.here() != ':') break;
    w.step();
    w.skip_blank();
    if (w.at_end()) break;
    if (found || key != "\"results\"" || w.here() != '[') {
      if (!w.value()) break;
      continue;
    }
    found = true;
    w.step();
    before = text.substr(0, w.at());
    out.header = std::string(before) + "]}";
    for (;;) {
      w.skip_blank();
      if (!w.at_end() && w.here() == ',') {
        w.step();
        continue;
      }
      if (w.at_end()) return cut("the document is cut off here, inside \"results\"");
      if (w.here() == ']') break;
      const size_t from = w.at();
      const int64_t line = w.line();
      if (!w.value()) {
        out.broken = str("line ", line, ": the document is cut off inside the result that begins here");
        return out;
      }
      if (w.at() == from) {
        w.step();
        out.broken = str("line ", line, ": a bracket too many inside \"results\"");
        return out;
      }
      out.elements.push_back({text.substr(from, w.at() - from), line});
    }
    after = text.substr(w.at());
    w.step();
  }
  if (!found) return invalid_argument("no T4 document: expected an object with a list \"results\"");
  if (w.at_end()) return cut("the document is cut off here: its last bracket is missing");
  const std::string whole = std::string(before) + std::string(after);
  if (!json::accept(whole)) return cut("what stands beside \"results\" is no JSON");
  out.header = whole;
  return out;
}

Result<ForeignRecord> parse_t4_result(std::string_view element, std::string_view header_text_json,
                                      const std::string& task, const std::string& target) {
  ASSIGN_OR_RETURN(const json document, parse_json(element));
  Fields in(document);
  (void)in.object("configuration");
  Fields times(in.object("times"), "times: ");
  const std::string invalidity = in.text("invalidity");
  if (!in.status()) return in.status();
  const auto* const known = std::ranges::find(kInvalidity, std::string_view(invalidity),
                                              &std::pair<std::string_view, Outcome>::first);
  if (known == std::end(kInvalidity))
    return invalid_argument("invalidity: found \"", on_one_line(invalidity),
                            "\", expected correct, constraints, compile, timeout, runtime or correctness");
  ForeignRecord out{.format = std::string(format_name(Format::kT4)), .outcome = known->second};
  const json header = json::parse(header_text_json, nullptr, false);
  if (out.outcome == Outcome::kOk) {
    // The unit of all times of the document; a measurement may have one of its own.
    const std::string unit = header_text(header, {"timeunit"});
    const double one_ns = unit_ns(unit);
    if (one_ns == 0)
      return invalid_argument("metadata.timeunit: found \"", on_one_line(unit),
                              "\", expected nanoseconds, microseconds, milliseconds or seconds");
    std::vector<double> runtimes = times.has("runtimes") ? times.numbers("runtimes") : std::vector<double>{};
    if (!times.status()) return times.status();
    for (const double each : runtimes)
      if (!is_plausible_call(each * one_ns))
        return invalid_argument("times.runtimes: found ", each, " ", unit.empty() ? "ms" : unit,
                                ", expected ", kPlausibleCall);
    if (!runtimes.empty()) {
      out.time_ns = median(runtimes) * one_ns;
    } else {
      // Without them, the measurement that is called "time".
      const json& measurements = in.has("measurements") ? in.list("measurements") : json::array();
      for (const json& m : measurements)
        if (m.is_object() && m.value("name", json()) == "time" && m.contains("value") &&
            m["value"].is_number()) {
          const std::string own =
              m.contains("unit") && m["unit"].is_string() ? m["unit"].get<std::string>() : "";
          out.time_ns = m["value"].get<double>() * (own.empty() ? one_ns : unit_ns(own));
        }
    }
    if (!in.status()) return in.status();
    if (out.time_ns == 0)
      return invalid_argument(
          "a correct result without a time: expected times.runtimes in ms or metadata.timeunit, all > 0, or "
          "a measurement \"time\" with its unit");
    if (!is_plausible_call(out.time_ns))
      return invalid_argument("measurements: found a time of ", out.time_ns, " ns, expected ",
                              kPlausibleCall);
  }
  if (in.has("timestamp"))
    if (const auto* text = document["timestamp"].get_ptr<const std::string*>())
      out.finished_at_us = time_from_text(without_utc(*text)).value_or(0);
  out.task = header_text(header, {"task", "kernel_name", "kernel"});
  out.target = header_text(header, {"target", "device_name", "device"});
  if (out.task.empty()) out.task = task;
  if (out.target.empty()) out.target = target;
  out.document = element;
  return out;
}

std::string t4_header(const JobRow::Task& task) {
  return ordered_json{{"schema_version", "1.0.0"},
                      {"metadata", {{"task", task.workload_key}, {"target", task.target}}},
                      {"results", ordered_json::array()}}
      .dump();
}

std::string t4_result(const ExchangedTrial& trial) {
  if (!trial.record) return "";
  const MeasureRecord& r = *trial.record;
  ordered_json configuration{{"template", trial.trial.template_name},
                             {"template_version", trial.trial.template_version}};
  const std::string& config = trial.trial.config;
  for (size_t at = 0; at < config.size();) {
    const size_t end = std::min(config.find(' ', at), config.size());
    const std::string knob = config.substr(at, end - at);
    const size_t equals = std::min(knob.find('='), knob.size());
    const std::string text = equals < knob.size() ? knob.substr(equals + 1) : "";
    const json value = json::parse(text, nullptr, false);
    configuration[knob.substr(0, equals)] = value.is_number() ? value : json(text);
    at = end + 1;
  }
  const bool ok = r.outcome == Outcome::kOk;
  ordered_json runtimes = ordered_json::array(), measurements = ordered_json::array();
  if (ok) {
    for (const double ns : r.run_ns) runtimes.push_back(ns * 1e-6);
    measurements.push_back({{"name", "time"}, {"value", record_time_ns(r) * 1e-6}, {"unit", "ms"}});
  }
  return ordered_json{{"timestamp", time_text(r.finished_at_us)},
                      {"configuration", std::move(configuration)},
                      {"objectives", ordered_json::array({"time"})},
                      {"times",
                       {{"compilation_time", r.build_ms},
                        {"runtimes", std::move(runtimes)},
                        {"framework", r.queue_ms},
                        {"search_algorithm", 0},
                        {"validation", 0}}},
                      {"invalidity", invalidity_name(r.outcome)},
                      {"correctness", ok ? 1 : 0},
                      {"measurements", std::move(measurements)}}
      .dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string t4_document(std::string_view header, const std::vector<std::string>& results) {
  // The header's list is the empty one; what else it says goes around the results as it stands.
  const Result<T4Document> split = split_t4(header);
  CHECK(split.is_ok() && split->elements.empty())
      << "a header is a document without results: " << std::string(header);
  size_t at = header.find("\"results\"");
  at = header.find('[', at) + 1;
  std::string out(header.substr(0, at));
  for (size_t i = 0; i < results.size(); ++i) out += (i > 0 ? ",\n" : "\n") + results[i];
  out += results.empty() ? "" : "\n";
  out += header.substr(at);
  return out + "\n";
}

}  // namespace tuner::exchange
