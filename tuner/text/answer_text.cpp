#include "tuner/text/answer_text.h"

#include <cmath>

#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/terminal.h"

namespace tuner {

using nlohmann::ordered_json;

namespace {

std::string percent(double fraction) { return str(std::lround(100 * fraction), " %"); }

std::string how_known(const Answer& a) {
  switch (a.kind) {
    case AnswerKind::kExact:
      return "exact: this task was tuned";
    case AnswerKind::kSameFamily:
      return "same-family: the shape was tuned with another epilogue or for a near target";
    case AnswerKind::kNearest:
      return "nearest: other shapes were tuned on this target";
    case AnswerKind::kPortable:
      return "portable: a config of a cover set";
    case AnswerKind::kLocked:
      return "locked: " + a.locked_at;
    case AnswerKind::kDefault:
      break;
  }
  return a.known ? "default: no tuned config is predicted to be faster"
                 : "default: nothing comparable was tuned";
}

std::string prediction(const Answer& a) {
  if (!a.known) return "not known";
  std::string text = str(percent(a.predicted), " of the optimum (80 %: ", std::lround(100 * a.low), " .. ",
                         percent(a.high), ")");
  if (a.predicted_default > 0 && a.kind != AnswerKind::kDefault)
    text += str("; the default config ", percent(a.predicted_default));
  return text;
}

// Whether `tuned` is of this task and this config.
bool is_measured(const Answer& a) { return is_choice(a.kind) && a.tuned; }

void add(std::string& out, const char* name, const std::string& value) {
  out += str("  ", name, std::string(12 - std::string_view(name).size(), ' '), value, "\n");
}

}  // namespace

std::string answer_text(const Answer& a, const Workload& workload) {
  std::string out = a.workload_key + "\n";
  add(out, "target", a.target);
  add(out, "answer", how_known(a));
  const bool exact = is_measured(a);
  if (exact) {
    const TunedConfig& t = *a.tuned;
    add(out, "time", format_time(t.time_ns, t.time_low_ns, t.time_high_ns));
    add(out, "", format_certainty(t));
    add(out, "gain", format_gain(t));
    add(out, "speed", format_speed(workload, t));
    add(out, "race", format_race(t));
  } else if (a.kind == AnswerKind::kLocked) {
    add(out, "time", "not known here");
  } else {
    add(out, "predicted", prediction(a));
  }
  add(out, "template", str(a.template_name, ", version ", a.template_version));
  add(out, "config", a.config);
  if (const std::string mark = algorithm_mark(a.template_name); !mark.empty()) add(out, "algorithm", mark);
  if (exact && a.tuned->trials > 0)
    add(out, "rests on",
        str("trial ", a.tuned->trial_id, " of ", a.tuned->trials, " (", format_outcomes(a.tuned->outcomes),
            ")"));
  else
    for (const Basis& b : a.rests_on)
      add(out, "rests on",
          str("trial ", b.trial_id, ", ", format_time(b.time_ns), " there: ", b.workload_key,
              b.target == a.target ? "" : " on \"" + b.target + "\""));
  if (a.learned_shapes > 0)
    add(out, "learned", str("from ", a.learned_records, " records of ", a.learned_shapes, " shapes"));
  if (a.tuned) {
    const Environment& e = a.tuned->environment;
    add(out, "measured",
        str(format_utc(a.tuned->finished_at_us), " on ", printable(e.host), ", worker ",
            printable(e.worker_id)));
    add(out, "hardware", printable(e.hardware));
    add(out, "toolchain", str(printable(e.toolchain), ", harness ABI ", e.harness_abi));
  }
  if (a.stale) add(out, "stale", a.stale_reason);
  return out;
}

ordered_json answer_json(const Answer& a, const Workload& workload) {
  const bool exact = is_measured(a);
  ordered_json out =
      exact ? tuned_json(*a.tuned, workload.flops(), workload.bytes()) : ordered_json::object();
  out["answer"] = answer_kind_name(a.kind);
  if (!a.locked_at.empty()) out["locked_at"] = a.locked_at;
  if (!exact) {
    out["workload"] = a.workload_key;
    out["target"] = a.target;
    out["template"] = a.template_name;
    out["algorithm"] = algorithm_of(a.template_name);
    out["template_version"] = a.template_version;
    out["config"] = config_json(a.config);
    if (a.tuned) out["tuned"] = tuned_json(*a.tuned, 0);
  }
  if (a.known) out["predicted"] = {{"of_optimum", a.predicted}, {"low", a.low}, {"high", a.high}};
  if (a.predicted_default > 0) out["predicted_default"] = a.predicted_default;
  out["rests_on"] = ordered_json::array();
  for (const Basis& b : a.rests_on)
    out["rests_on"].push_back({{"trial", b.trial_id},
                               {"workload", b.workload_key},
                               {"target", b.target},
                               {"time_ns", b.time_ns},
                               {"when", iso_utc(b.finished_at_us)}});
  if (a.learned_shapes > 0)
    out["learned_from"] = {{"shapes", a.learned_shapes}, {"records", a.learned_records}};
  out["stale"] = a.stale;
  if (a.stale) out["stale_reason"] = a.stale_reason;
  out["note"] = a.note;
  return out;
}

}  // namespace tuner
