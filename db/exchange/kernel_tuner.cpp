// Cache files of Kernel Tuner (schema 1.0 and 1.1, and those before it had one):
//
//   {"device_name": "...", "kernel_name": "...", "problem_size": [4096, 4096],
//    "tune_params_keys": ["block", ...], "tune_params": {"block": [16, 32], ...}, "objective": "time",
//    "cache": {
//    "16,1": {"block": 16, ..., "time": ms, "times": [ms, ...], "timestamp": "..."}, ...}}
//
// A config that failed has a word in place of its time.
#include <cmath>

#include "db/exchange/formats.h"
#include "db/exchange/json_fields.h"
#include "db/exchange/json_walker.h"

namespace tuner::exchange {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr char kNoCache[] =
    "no cache file of Kernel Tuner: expected an object with \"tune_params_keys\" and \"cache\"";
constexpr double kFailedTime = 1e20;  // what Kernel Tuner wrote before it had words for failures

// The word in place of a time, as T4 says it; empty: none of Kernel Tuner's.
std::string_view invalidity_of(std::string_view word) {
  if (word == "InvalidConfig") return "constraints";
  if (word == "CompilationFailedConfig") return "compile";
  if (word == "RuntimeFailedConfig") return "runtime";
  return "";
}

// Goes to the first row. False: there is no object "cache".
bool enter_cache(JsonWalker& w, std::string_view text) {
  w.skip_blank();
  if (w.at_end() || w.here() != '{') return false;
  w.step();
  for (;;) {
    w.skip_blank();
    if (!w.at_end() && w.here() == ',') {
      w.step();
      continue;
    }
    if (w.at_end() || w.here() != '"') return false;
    const size_t key_at = w.at();
    if (!w.string()) return false;
    const std::string_view key = text.substr(key_at, w.at() - key_at);
    w.skip_blank();
    if (w.at_end() || w.here() != ':') return false;
    w.step();
    w.skip_blank();
    if (w.at_end()) return false;
    if (key == "\"cache\"" && w.here() == '{') {
      w.step();
      return true;
    }
    const size_t value_at = w.at();
    if (!w.value() || w.at() == value_at) return false;
  }
}

// The rows, and what is wrong with the text between or in them.
std::string take_rows(JsonWalker& w, std::string_view text, std::vector<T4Document::Element>& rows) {
  const auto wrong = [&w](std::string_view what) { return str("line ", w.line(), ": ", what); };
  for (;;) {
    w.skip_blank();
    if (!w.at_end() && w.here() == ',') {
      w.step();
      continue;
    }
    if (w.at_end() || w.here() == '}') return "";
    const int64_t line = w.line();
    const std::string cut = str("line ", line, ": the file is cut off inside the row that begins here");
    if (w.here() != '"') return wrong("expected the name of a row, in quotes");
    if (!w.string()) return cut;
    w.skip_blank();
    if (w.at_end()) return cut;
    if (w.here() != ':') return wrong("expected a colon behind the name of a row");
    w.step();
    w.skip_blank();
    if (w.at_end()) return cut;
    const size_t from = w.at();
    if (!w.value()) return cut;
    if (w.at() == from) return wrong("expected a row behind the colon");
    rows.push_back({text.substr(from, w.at() - from), line});
  }
}

// What the file says of all its rows, as a T4 document without results.
Result<std::string> header_of(const json& document) {
  const auto text = [&](const char* key) {
    return document.contains(key) && document[key].is_string() ? document[key].get<std::string>() : "";
  };
  json keys = document.value("tune_params_keys", json());
  if (!keys.is_array() && document.contains("tune_params") && document["tune_params"].is_object()) {
    keys = json::array();
    for (const auto& [name, values] : document["tune_params"].items()) keys.push_back(name);
  }
  if (!keys.is_array() || keys.empty()) return invalid_argument(kNoCache);
  for (const json& key : keys)
    if (!key.is_string())
      return invalid_argument("tune_params_keys: found ", shown(key), ", expected names of parameters");
  const std::string objective = text("objective");
  return ordered_json{{"schema_version", "1.0.0"},
                      {"metadata",
                       {{"autotuner", "KernelTuner"},
                        {"kernel_name", text("kernel_name")},
                        {"device", text("device_name")},
                        {"timeunit", "milliseconds"},
                        {"problem_size", document.value("problem_size", json())},
                        {"parameters", keys},
                        {"objective", objective.empty() ? "time" : objective}}},
                      {"results", ordered_json::array()}}
      .dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// Why a row has no time, in T4's word; "correct" if it has one.
Result<std::string> invalidity(const json& row, const std::string& objective) {
  for (const std::string& key : {std::string("__error__"), objective, std::string("time")}) {
    const auto value = row.find(key);
    if (value == row.end()) continue;
    if (key == "time" && value->is_number() && value->get<double>() >= kFailedTime)
      return std::string("runtime");
    if (!value->is_string()) continue;
    const std::string_view known = invalidity_of(value->get_ref<const std::string&>());
    if (!known.empty()) return std::string(known);
    return invalid_argument(
        on_one_line(key), ": found ", shown(*value),
        ", expected a number, InvalidConfig, CompilationFailedConfig or RuntimeFailedConfig");
  }
  return std::string("correct");
}

}  // namespace

Result<T4Document> split_kernel_tuner(std::string_view text) {
  JsonWalker w(text);
  if (!enter_cache(w, text)) return invalid_argument(kNoCache);
  const std::string_view before = text.substr(0, w.at());
  T4Document out;
  out.broken = take_rows(w, text, out.elements);
  std::string whole(before);
  const bool closed = out.broken.empty() && !w.at_end();
  const std::string_view after = closed ? text.substr(w.at() + 1) : std::string_view();
  whole += '}';
  const bool ends = after.find_first_not_of(" \t\r\n") != std::string_view::npos;
  whole += ends ? after : std::string_view("}");
  const Result<json> document = json_input::parse(whole);
  if (!document) return invalid_argument("what stands beside \"cache\": ", document.message());
  if (!document->is_object()) return invalid_argument(kNoCache);
  ASSIGN_OR_RETURN(out.header, header_of(*document));
  return out;
}

Result<ForeignRecord> parse_kernel_tuner_row(std::string_view row_text, std::string_view header_json,
                                             const std::string& task, const std::string& target) {
  ASSIGN_OR_RETURN(const json row, json_input::parse(row_text));
  if (!row.is_object()) return invalid_argument("expected an object, found ", shown(row));
  const json header = json::parse(header_json, nullptr, false);
  CHECK(header.is_object()) << "a header is what split_kernel_tuner() made: " << std::string(header_json);
  const json& about = header.at("metadata");
  ordered_json configuration = ordered_json::object();
  for (const json& key : about.at("parameters")) {
    const std::string name = key.get<std::string>();
    if (!row.contains(name))
      return invalid_argument("expected a value of the parameter ", on_one_line(name), ", found none");
    configuration[name] = row[name];
  }
  ASSIGN_OR_RETURN(const std::string why, invalidity(row, about.at("objective").get<std::string>()));
  ordered_json times = ordered_json::object(), measurements = ordered_json::array();
  if (row.contains("compile_time") && row["compile_time"].is_number())
    times["compilation_time"] = row["compile_time"];
  if (why == "correct") {
    times["runtimes"] = row.contains("times") ? row["times"] : json::array();
    if (row.contains("time") && row["time"].is_number())
      measurements.push_back({{"name", "time"}, {"value", row["time"]}, {"unit", "ms"}});
  }
  ordered_json result{{"configuration", std::move(configuration)},
                      {"times", std::move(times)},
                      {"invalidity", why},
                      {"correctness", why == "correct" ? 1 : 0},
                      {"measurements", std::move(measurements)},
                      {"objectives", {about.at("objective")}}};
  if (row.contains("timestamp") && row["timestamp"].is_string()) result["timestamp"] = row["timestamp"];
  return parse_t4_result(result.dump(-1, ' ', false, ordered_json::error_handler_t::replace), header_json,
                         task, target);
}

}  // namespace tuner::exchange
