#include "tuner/text/answer_text.h"

#include <cmath>
#include <utility>

#include "compiler_core/base/printable.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/terminal.h"
#include "tuner/text/time_words.h"

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

// The lines of an answer: a name, and what is to be said under it.
class Lines {
 public:
  Lines(const std::string& head, int width) : out_(shortened(head, width) + "\n"), width_(width) {}
  void add(const char* name, const std::string& value) {
    if (value.empty()) return;
    const std::string start = str("  ", name, std::string(kIndent - 2 - std::string_view(name).size(), ' '));
    out_ += wrapped(start + value, width_, kIndent) + "\n";
  }
  std::string take() { return std::move(out_); }

 private:
  static constexpr int kIndent = 14;
  std::string out_;
  int width_;
};

// Whether `tuned` is of this task and this config.
bool is_measured(const Answer& a) { return is_choice(a.kind) && a.tuned; }

}  // namespace

std::string answer_text(const Answer& a, const Workload& workload, int width) {
  Lines out(a.workload_key, width);
  out.add("target", a.target);
  out.add("answer", how_known(a));
  const bool exact = is_measured(a);
  if (exact) {
    const TunedConfig& t = *a.tuned;
    const TimeWords words = time_words(t);
    out.add("time", words.time);
    out.add("", words.certainty);
    out.add("", words.other);
    out.add("gain", words.gain);
    out.add("speed", format_speed(workload, t));
    out.add("", format_roofline(workload, t));
    out.add("race", format_race(t));
  } else if (a.kind == AnswerKind::kLocked) {
    out.add("time", "not known here");
  } else {
    out.add("predicted", prediction(a));
  }
  out.add("template", str(a.template_name, ", version ", a.template_version));
  out.add("config", a.config);
  out.add("algorithm", algorithm_mark(a.template_name));
  out.add("right", std::string(workload.caveat()));
  if (exact && a.tuned->trials > 0)
    out.add("rests on", str("trial ", a.tuned->trial_name, "; ", a.tuned->trials, " trials of this task (",
                            format_outcomes(a.tuned->outcomes), ")"));
  else
    for (const Basis& b : a.rests_on)
      out.add("rests on", str("trial ", b.trial_name, ", ", format_time(b.time_ns), " there: ",
                              b.workload_key, b.target == a.target ? "" : " on \"" + b.target + "\""));
  if (a.learned_shapes > 0)
    out.add("learned", str("from ", a.learned_records, " records of ", a.learned_shapes, " shapes"));
  if (a.tuned) {
    const Environment& e = a.tuned->environment;
    out.add("measured", str(format_utc(a.tuned->finished_at_us), " on ", printable(e.host), ", worker ",
                            printable(e.worker_id)));
    out.add("hardware", printable(e.hardware));
    out.add("toolchain", str(printable(e.toolchain), ", harness ABI ", e.harness_abi));
  }
  if (a.stale) out.add("stale", a.stale_reason);
  return out.take();
}

ordered_json answer_json(const Answer& a, const Workload& workload) {
  const bool exact = is_measured(a);
  ordered_json out =
      exact ? tuned_json(*a.tuned, workload.flops(), workload.bytes()) : ordered_json::object();
  out["answer"] = answer_kind_name(a.kind);
  if (!a.locked_at.empty()) out["locked_at"] = a.locked_at;
  if (exact) out["target"] = a.target;  // what was asked for; rests_on has the name of the record
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
    out["rests_on"].push_back({{"trial", b.trial_name},
                               {"workload", b.workload_key},
                               {"target", b.target},
                               {"time_ns", b.time_ns},
                               {"when", iso_utc(b.finished_at_us)}});
  if (a.learned_shapes > 0)
    out["learned_from"] = {{"shapes", a.learned_shapes}, {"records", a.learned_records}};
  if (!workload.caveat().empty()) out["right"] = workload.caveat();
  out["stale"] = a.stale;
  if (a.stale) out["stale_reason"] = a.stale_reason;
  out["note"] = a.note;
  return out;
}

}  // namespace tuner
