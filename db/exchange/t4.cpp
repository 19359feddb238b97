// T4 documents: what Kernel Tuner and other tuners that agreed on a schema write as their results.
//
//   {"schema_version": "1.0.0", "results": [{"configuration": {...}, "times": {"runtimes": [ms, ...], ...},
//    "invalidity": "correct", "correctness": 1, "measurements": [{"name", "value", "unit"}, ...],
//    "objectives": ["time"], "timestamp": "..."}, ...]}
#include <algorithm>

#include "compiler_core/base/statistics.h"
#include "db/exchange/formats.h"
#include "db/exchange/json_fields.h"
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

// Walks over JSON text knowing strings, escapes and depth, and nothing else.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}
  bool at_end() const { return at_ >= text_.size(); }
  char here() const { return text_[at_]; }
  size_t at() const { return at_; }
  int64_t line() const { return line_; }
  void step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  void skip_blank() {
    while (!at_end() && (here() == ' ' || here() == '\t' || here() == '\n' || here() == '\r')) step();
  }
  // Past the string that begins here; false: it does not end.
  bool string() {
    step();
    while (!at_end() && here() != '"') {
      if (here() == '\\') step();
      if (!at_end()) step();
    }
    if (at_end()) return false;
    step();
    return true;
  }
  // Past the value that begins here: to the bracket that closes it, or to a comma or bracket after it.
  bool value() {
    int depth = 0;
    while (!at_end()) {
      const char c = here();
      if (c == '"') {
        if (!string()) return false;
        if (depth == 0) return true;
        continue;
      }
      if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) return true;
        step();
        if (--depth == 0) return true;
        continue;
      } else if (c == ',' && depth == 0) {
        return true;
      }
      step();
    }
    return depth == 0;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace

Result<T4Document> split_t4(std::string_view text) {
  T4Document out;
  Walker w(text);
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
  if (out.outcome == Outcome::kOk) {
    std::vector<double> ms = times.has("runtimes") ? times.numbers("runtimes") : std::vector<double>{};
    if (!times.status()) return times.status();
    for (const double each : ms)
      if (!is_plausible_call(each * 1e6))
        return invalid_argument("times.runtimes: found ", each, " ms, expected ", kPlausibleCall);
    if (!ms.empty()) {
      out.time_ns = median(ms) * 1e6;
    } else {
      // Without them, the measurement that is called "time".
      const json& measurements = in.has("measurements") ? in.list("measurements") : json::array();
      for (const json& m : measurements)
        if (m.is_object() && m.value("name", json()) == "time" && m.contains("value") &&
            m["value"].is_number())
          out.time_ns =
              m["value"].get<double>() *
              unit_ns(m.contains("unit") && m["unit"].is_string() ? m["unit"].get<std::string>() : "");
    }
    if (!in.status()) return in.status();
    if (out.time_ns == 0)
      return invalid_argument(
          "a correct result without a time: expected times.runtimes in ms, all > 0, or a "
          "measurement \"time\" with its unit");
    if (!is_plausible_call(out.time_ns))
      return invalid_argument("measurements: found a time of ", out.time_ns, " ns, expected ",
                              kPlausibleCall);
  }
  if (in.has("timestamp"))
    if (const auto* text = document["timestamp"].get_ptr<const std::string*>())
      out.finished_at_us = time_from_text(*text).value_or(0);
  const json header = json::parse(header_text_json, nullptr, false);
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
