// AutoTVM logs, version 0.2:
//
//   {"input": [target, task name, [arguments], {}],
//    "config": {"index": 12, "code_hash": null, "entity": [[knob, "sp" | "re" | "an" | "ot", value], ...]},
//    "result": [[seconds, ...], error number, seconds in all, Unix time], "version": 0.2, "tvm_version":
//    "..."}
#include "compiler_core/base/statistics.h"
#include "db/exchange/formats.h"
#include "db/exchange/json_fields.h"
#include "db/plausible.h"

namespace tuner::exchange {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

// AutoTVM's error numbers, 0 to 8. It has one for a kernel that failed on the device, whatever the reason,
// and one (8) for what it could not tell.
constexpr Outcome kOutcomes[] = {Outcome::kOk,           Outcome::kInvalidConfig, Outcome::kBuildError,
                                 Outcome::kBuildError,   Outcome::kCrashed,       Outcome::kWrongAnswer,
                                 Outcome::kBuildTimeout, Outcome::kRunTimeout,    Outcome::kDeviceLost};
int error_number(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return 0;
    case Outcome::kInvalidConfig:
      return 1;
    case Outcome::kBuildError:
      return 2;
    case Outcome::kCrashed:
    case Outcome::kOutOfMemory:
      return 4;
    case Outcome::kWrongAnswer:
      return 5;
    case Outcome::kBuildTimeout:
      return 6;
    case Outcome::kRunTimeout:
      return 7;
    case Outcome::kDeviceLost:
      return 8;
  }
  return 8;
}
constexpr double kFailedCost = 1e9;  // what AutoTVM writes as the time of a failed config

bool is_finite_number(const json& value) { return value.is_number() && std::isfinite(value.get<double>()); }

constexpr char kNotRead[] =
    "AutoTVM logs of version 0.2 are read, as TVM writes them since 0.7. Tune again there, or write the "
    "times as a CSV "
    "table with a column time_ms";

std::string dumped(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// Lines of TVM's other tuners, and of AutoTVM's first form.
Status no_other_tuner(const json& line) {
  if (line.is_array() && line.size() == 2 && line[0].is_number_integer() && line[1].is_array())
    return invalid_argument("a database of MetaSchedule, of which nothing is read; ", kNotRead);
  if (!line.is_object() || !line.contains("i") || !line.contains("r") || !line.contains("v"))
    return Status::ok();
  if (line["v"].is_string())
    return invalid_argument("a log of auto_scheduler (Ansor), version ", shown(line["v"]),
                            ", of which nothing is read; ", kNotRead);
  return invalid_argument("an AutoTVM log of version ", shown(line["v"]), ", which is not read; ", kNotRead);
}

}  // namespace

Status check_other_tuner(std::string_view line) {
  if (depth_of(line, kDeepestRecord) > kDeepestRecord) return Status::ok();
  const json document = json::parse(line, nullptr, false);
  return document.is_discarded() ? Status::ok() : no_other_tuner(document);
}

Result<ForeignRecord> parse_autotvm_line(std::string_view line) {
  ASSIGN_OR_RETURN(const json document, parse_json(line));
  RETURN_IF_ERROR(no_other_tuner(document));
  Fields in(document);
  if (!in.status()) return in.status();
  const double version = in.number("version");
  if (!in.status()) return in.status();
  if (version != 0.2) return invalid_argument("version: found ", version, ", expected 0.2; ", kNotRead);
  const json& input = in.list("input");
  if (!in.status()) return in.status();
  if (input.size() < 3 || !input[0].is_string() || !input[1].is_string() || !input[2].is_array())
    return invalid_argument("input: found ", shown(input),
                            ", expected [target, task name, [arguments], ...]");
  Fields config(in.object("config"), "config: ");
  for (const json& entity : config.list("entity"))
    if (!entity.is_array() || entity.size() != 3 || !entity[0].is_string() || !entity[1].is_string())
      config.wrong("entity", entity, "[knob, kind, value]");
  if (!config.status()) return config.status();
  const json& result = in.list("result");
  if (!in.status()) return in.status();
  if (result.size() != 4 || !result[0].is_array() || !result[1].is_number_integer() ||
      !is_finite_number(result[2]) || !is_finite_number(result[3]))
    return invalid_argument("result: found ", shown(result),
                            ", expected [[seconds, ...], error, seconds in all, Unix time]");
  if (result[1].is_number_unsigned() && result[1].get<uint64_t>() >= std::size(kOutcomes))
    return invalid_argument("result: error number ", shown(result[1]), ", expected 0 to ",
                            std::size(kOutcomes) - 1);
  const auto error = result[1].get<int64_t>();
  if (error < 0)
    return invalid_argument("result: error number ", error, ", expected 0 to ", std::size(kOutcomes) - 1);

  ForeignRecord out{.format = std::string(format_name(Format::kAutotvm)),
                    .task = input[1].get<std::string>() + " " + dumped(input[2]),
                    .target = input[0].get<std::string>(),
                    .outcome = kOutcomes[error]};
  if (out.outcome == Outcome::kOk) {
    std::vector<double> ns;
    for (const json& cost : result[0]) {
      if (!cost.is_number() || !is_plausible_call(cost.get<double>() * 1e9))
        return invalid_argument("result: time ", shown(cost), " s of a config without error, expected ",
                                kPlausibleCall);
      ns.push_back(cost.get<double>() * 1e9);
    }
    if (ns.empty()) return invalid_argument("result: no error and no time");
    out.time_ns = median(ns);
  }
  const double when = result[3].get<double>();
  constexpr double kLast = 4e12;  // microseconds since 1970 must fit 63 bits
  if (when < 0 || when > kLast) return invalid_argument("result: ", when, " is no Unix time");
  out.finished_at_us = static_cast<int64_t>(when * 1e6);
  out.document = line;
  return out;
}

std::string autotvm_line(const ExchangedTrial& trial) {
  if (!trial.record) return "";
  const MeasureRecord& r = *trial.record;
  ordered_json entity = ordered_json::array();
  const std::string& config = trial.trial.config;
  for (size_t at = 0; at < config.size();) {
    const size_t end = std::min(config.find(' ', at), config.size());
    const std::string knob = config.substr(at, end - at);
    const size_t equals = knob.find('=');
    // Integers, as every knob of ours is; text that is none stays text.
    const json value =
        equals == std::string::npos ? json() : json::parse(knob.substr(equals + 1), nullptr, false);
    if (value.is_number_integer())
      entity.push_back({knob.substr(0, equals), "ot", value});
    else
      entity.push_back(
          {knob.substr(0, equals), "ot", equals == std::string::npos ? "" : knob.substr(equals + 1)});
    at = end + 1;
  }
  ordered_json costs = ordered_json::array();
  if (r.outcome == Outcome::kOk)
    for (const double ns : r.run_ns) costs.push_back(ns * 1e-9);
  else
    costs.push_back(kFailedCost);
  const ordered_json line{{"input", ordered_json::array({trial.task.target, trial.trial.template_name,
                                                         ordered_json::array({trial.task.workload_key}),
                                                         ordered_json::object()})},
                          // The place in a space of AutoTVM's is not known; its readers go by the entity.
                          {"config", {{"index", -1}, {"code_hash", nullptr}, {"entity", std::move(entity)}}},
                          {"result", ordered_json::array({std::move(costs), error_number(r.outcome),
                                                          (r.build_ms + r.run_ms) * 1e-3,
                                                          static_cast<double>(r.finished_at_us) * 1e-6})},
                          {"version", 0.2},
                          {"tvm_version", "tuner"}};
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace tuner::exchange
