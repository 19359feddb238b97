// Our own JSON lines. db/records_format.md tells what they mean, db/records.schema.json every field; those of
// a record come from db/record_fields.h.
#include <algorithm>
#include <charconv>

#include "compiler_core/base/base64.h"
#include "db/exchange/formats.h"
#include "db/exchange/json_fields.h"
#include "db/exchange/record_lines.h"
#include "db/plausible.h"

namespace tuner::exchange {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

// Version 3 is for what is of cold constants alone: a reader of version 2 would take such times for warm
// ones. All else is written as version 2, which it still is.
constexpr int kFormat = 2, kColdFormat = 3;
int format_of(Constants constants) { return constants == Constants::kCold ? kColdFormat : kFormat; }

// --- configs: "a=1 b=2" <-> {"a": 1, "b": 2} ---

std::string text_of_config(const json& object) {
  std::string text;
  for (const auto& [name, value] : object.items())  // sorted by name, as the text is
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value.get<int64_t>());
  return text;
}

// An object where that gives the same text back, else the text.
ordered_json config_value(const std::string& text) {
  ordered_json object = ordered_json::object();
  json sorted = json::object();
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size()), equals = text.find('=', at);
    int64_t value = 0;
    if (equals == std::string::npos || equals >= end) return text;
    const char* const last = text.data() + end;
    const auto [rest, error] = std::from_chars(text.data() + equals + 1, last, value);
    if (error != std::errc() || rest != last) return text;
    object[text.substr(at, equals - at)] = value;
    sorted[text.substr(at, equals - at)] = value;
    at = end + 1;
  }
  if (text_of_config(sorted) != text) return text;
  return object;
}

std::string config_from(Fields& in) {
  const json* value = in.any("config");
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_object()) return in.wrong("config", *value, "an object or a text"), std::string();
  for (const auto& [name, v] : value->items())
    if (!v.is_number_integer() || (v.is_number_unsigned() && v.get<uint64_t>() > INT64_MAX) || name.empty() ||
        name.find_first_of(" =\n") != std::string::npos)
      return in.wrong("config", v, "an integer for every knob"), std::string();
  return text_of_config(*value);
}

// --- parts ---

Constants constants_of(Fields& in, const char* key) {
  return in.has(key) ? in.named(key, constants_from_name) : Constants::kWarm;
}

// --- jobs ---

ordered_json job_json(const ExchangedJob& in) {
  const JobRow& j = in.job;
  ordered_json tasks = ordered_json::array();
  for (const JobRow::Task& t : j.tasks)
    tasks.push_back({{"workload", t.workload_key},
                     {"target", t.target},
                     {"algorithms", t.algorithms},
                     {"uses", t.uses},
                     {"constants", constants_name(t.constants)}});
  const bool cold =
      std::ranges::any_of(j.tasks, [](const JobRow::Task& t) { return t.constants == Constants::kCold; });
  return {{"format", format_of(cold ? Constants::kCold : Constants::kWarm)},
          {"kind", "job"},
          {"job_uid", in.uid},
          {"job", j.id},
          {"request", j.request_id},
          {"tasks", std::move(tasks)},
          {"trials", j.trials},
          {"search", j.search},
          {"seed", j.seed},
          {"options", options_value(j.options)},
          {"stop_below", j.stop.below},
          {"time_limit_s", j.stop.time_limit_s},
          {"state", job_state_name(j.state)},
          {"message", j.message},
          {"submitted", time_text(j.submitted_at_us)},
          {"finished", time_text(j.finished_at_us)}};
}

Result<ExchangeRow> job_from(Fields& in) {
  ExchangedJob out;
  out.uid = in.text("job_uid");
  JobRow& j = out.job;
  j.id = in.text("job");
  j.request_id = in.text("request");
  for (const json& task : in.list("tasks")) {
    Fields t(task, "tasks: ");
    j.tasks.push_back({t.text("workload"), t.text("target"), t.text_or("algorithms", ""),
                       t.has("uses") ? t.integer("uses", 1) : 1, constants_of(t, "constants")});
    if (!t.status()) in.fail(t.status().message());
  }
  j.trials = in.integer32("trials", 0);
  j.search = in.text("search");
  j.seed = in.unsigned64("seed");
  j.options = options_from(in);
  j.stop.below = in.number("stop_below");
  j.stop.time_limit_s = in.number("time_limit_s");
  j.state = in.named("state", job_state_from_name);
  j.message = in.text("message");
  j.submitted_at_us = time_from(in, "submitted");
  j.finished_at_us = time_from(in, "finished");
  if (j.tasks.empty()) in.fail("tasks: found none, expected at least one");
  if (!in.status()) return in.status();
  return ExchangeRow(std::move(out));
}

// --- trials and their records ---

ordered_json trial_json(const ExchangedTrial& in) {
  const TrialRow& t = in.trial;
  ordered_json out{{"format", format_of(in.task.constants)},
                   {"kind", "trial"},
                   {"job_uid", in.job_uid},
                   {"job", t.job_id},
                   {"trial", t.id},
                   {"home_seq", in.home_seq},
                   {"task_index", t.task_index},
                   {"workload", in.task.workload_key},
                   {"target", in.task.target},
                   {"algorithms", in.task.algorithms},
                   {"constants", constants_name(in.task.constants)},
                   {"template", t.template_name},
                   {"template_version", t.template_version},
                   {"config", config_value(t.config)},
                   {"state", trial_state_name(t.state)},
                   {"leases", t.attempt},
                   {"rng_counter", t.rng_counter},
                   {"model_digest", t.model_digest}};
  if (!in.record) return out;
  out["terminal"] = in.terminal;
  add_record(out, *in.record);
  return out;
}

Result<ExchangeRow> trial_from(Fields& in, int format) {
  ExchangedTrial out;
  TrialRow& t = out.trial;
  t.job_id = in.text("job");
  // Version 1 did not say which database a job was of.
  out.job_uid = format == 1 ? str(t.job_id, "@") : in.text("job_uid");
  out.home_seq = in.integer(format == 1 ? "seq" : "home_seq", 0);
  t.task_index = format == 1 ? 0 : in.integer32("task_index", 0);
  out.task = {in.text("workload"), in.text("target"), in.text_or("algorithms", ""), 1,
              constants_of(in, "constants")};
  t.template_name = in.text("template");
  t.template_version = in.integer32("template_version");
  t.config = config_from(in);
  t.rng_counter = in.unsigned64("rng_counter");
  t.model_digest = in.text("model_digest");
  if (format > 1) {
    t.state = in.named("state", trial_state_from_name);
    t.attempt = in.integer32("leases", 0);
  }
  if (in.has("outcome")) {
    out.terminal = format == 1 || in.flag("terminal");
    out.record = record_from(in);
  }
  if (!in.status()) return in.status();
  return ExchangeRow(std::move(out));
}

// --- races ---

ordered_json race_json(const ExchangedRace& in) {
  const RaceRow& r = in.race;
  ordered_json finalists = ordered_json::array();
  for (const RaceFinalist& f : r.finalists) {
    finalists.push_back({{"trial", f.trial_id},
                         {"samples_ns", f.samples_ns},
                         {"sentinel_ns", f.sentinel_ns},
                         {"process", f.process},
                         {"memory_ns", f.memory_ns},
                         {"other_ns", f.other_ns},
                         {"other_process", f.other_process}});
    if (f.exact_clock) finalists.back()["exact_clock"] = true;
  }
  ordered_json out{{"format", format_of(in.task.constants)},
                   {"kind", "race"},
                   {"job_uid", in.job_uid},
                   {"job", r.job_id},
                   {"task_index", r.task_index},
                   {"workload", in.task.workload_key},
                   {"target", in.task.target},
                   {"algorithms", in.task.algorithms},
                   {"constants", constants_name(in.task.constants)},
                   {"winner", r.winner_trial_id},
                   {"tied", r.tie_set},
                   {"finalists", std::move(finalists)},
                   {"time_ns", r.time_ns},
                   {"time_low_ns", r.time_low_ns},
                   {"time_high_ns", r.time_high_ns},
                   {"ratio", r.ratio},
                   {"ratio_low", r.ratio_low},
                   {"ratio_high", r.ratio_high},
                   {"regret_bound", r.regret_bound},
                   {"certified", r.certified},
                   {"uncertified_why", r.uncertified_why},
                   {"turns", r.turns},
                   {"discarded", r.discarded},
                   {"disturbed", r.disturbed},
                   {"default_trial", r.default_trial_id},
                   {"default_time_ns", r.default_time_ns},
                   {"other_time_ns", r.other_time_ns},
                   {"options",
                    {{"min_repeat_ms", r.options.min_repeat_ms},
                     {"processes", r.options.processes},
                     {"rounds", r.options.rounds},
                     {"limit_s", r.options.limit_s},
                     {"constants", constants_name(r.options.constants)}}}};
  // Not of races from before there was a choice.
  if (!r.stored_trial_id.empty()) out["stored_trial"] = r.stored_trial_id;
  if (r.won_by != WonBy::kFastest) out["won_by"] = won_by_name(r.won_by);
  if (r.slices != 0) out["slices"] = r.slices;
  if (r.retaken != 0) out["retaken"] = r.retaken;
  add_environment(out, r.environment);
  out["when"] = time_text(r.finished_at_us);
  return out;
}

std::vector<int> processes(Fields& in, const char* key) {
  std::vector<int> out;
  for (const json& process : in.list(key)) {
    if (!process.is_number_integer())
      in.wrong(key, process, "integers");
    else
      out.push_back(static_cast<int>(process.get<int64_t>()));
  }
  return out;
}

Result<ExchangeRow> race_from(Fields& in) {
  ExchangedRace out;
  out.job_uid = in.text("job_uid");
  RaceRow& r = out.race;
  r.job_id = in.text("job");
  r.task_index = in.integer32("task_index", 0);
  out.task = {in.text("workload"), in.text("target"), in.text_or("algorithms", ""), 1,
              constants_of(in, "constants")};
  r.winner_trial_id = in.text("winner");
  for (const json& id : in.list("tied")) {
    if (!id.is_string()) in.wrong("tied", id, "names of trials");
    if (id.is_string()) r.tie_set.push_back(id.get<std::string>());
  }
  for (const json& finalist : in.list("finalists")) {
    Fields f(finalist, "finalists: ");
    RaceFinalist to{f.text("trial"), f.numbers("samples_ns"), f.numbers("sentinel_ns"),
                    processes(f, "process")};
    if (f.has("memory_ns")) to.memory_ns = f.numbers("memory_ns");
    if (f.has("other_ns")) to.other_ns = f.numbers("other_ns");
    if (f.has("other_process")) to.other_process = processes(f, "other_process");
    to.exact_clock = f.has("exact_clock") && f.flag("exact_clock");
    if (!f.status()) in.fail(f.status().message());
    r.finalists.push_back(std::move(to));
  }
  r.time_ns = in.number("time_ns");
  r.time_low_ns = in.number("time_low_ns");
  r.time_high_ns = in.number("time_high_ns");
  r.ratio = in.number("ratio");
  r.ratio_low = in.number("ratio_low");
  r.ratio_high = in.number("ratio_high");
  r.regret_bound = in.number("regret_bound");
  Fields options(in.object("options"), "options: ");
  r.options = {options.number("min_repeat_ms"), options.integer32("processes"), options.integer32("rounds"),
               options.number("limit_s"), constants_of(options, "constants")};
  const double half_width = r.time_ns > 0 ? (r.time_high_ns - r.time_low_ns) / 2 / r.time_ns : 0;
  r.certified = in.has("certified") ? in.flag("certified") : half_width <= kCertifiedHalfWidth;
  r.uncertified_why =
      in.text_or("uncertified_why", r.certified ? "" : "its interval is wider than 5 % to either side");
  r.turns = in.has("turns") ? in.integer32("turns", 0) : 0;
  r.discarded = in.has("discarded") ? in.integer32("discarded", 0) : 0;
  r.disturbed = in.has("disturbed") ? in.integer32("disturbed", 0) : 0;
  r.slices = in.has("slices") ? in.integer32("slices", 0) : 0;
  r.retaken = in.has("retaken") ? in.integer32("retaken", 0) : 0;
  r.default_trial_id = in.text_or("default_trial", "");
  r.default_time_ns = in.number_or("default_time_ns", 0);
  r.stored_trial_id = in.text_or("stored_trial", "");
  if (in.has("won_by")) r.won_by = in.named("won_by", won_by_from_name);
  r.other_time_ns = in.number_or("other_time_ns", 0);
  if (!options.status()) in.fail(options.status().message());
  r.environment = environment_from(in);
  r.finished_at_us = time_from(in, "when");
  if (!in.status()) return in.status();
  return ExchangeRow(std::move(out));
}

// --- kernels ---

ordered_json kernel_json(const KernelRow& k) {
  return {{"format", kFormat},
          {"kind", "source"},
          {"digest", k.digest},
          {"brought", time_text(k.brought_at_us)},
          {"document", to_base64(k.document)}};
}

Result<ExchangeRow> kernel_from(Fields& in) {
  KernelRow k;
  k.digest = in.text("digest");
  k.brought_at_us = time_from(in, "brought");
  const std::string document = in.text("document");
  if (!in.status()) return in.status();
  std::optional<std::string> bytes = from_base64(document);
  if (!bytes) return invalid_argument("document: expected base64");
  k.document = *std::move(bytes);
  return ExchangeRow(std::move(k));
}

// --- foreign records ---

ordered_json foreign_json(const ForeignRecord& r) {
  return {{"format", kFormat},
          {"kind", "foreign"},
          {"of", r.format},
          {"task", r.task},
          {"target", r.target},
          {"outcome", outcome_name(r.outcome)},
          {"time_ns", r.time_ns},
          {"when", time_text(r.finished_at_us)},
          {"source", r.origin.source},
          {"source_format", r.origin.format},
          {"source_header", r.origin.header},
          {"imported", time_text(r.origin.imported_at_us)},
          {"document", r.document}};
}

Result<ExchangeRow> foreign_from(Fields& in) {
  ForeignRecord r;
  r.format = in.text("of");
  r.task = in.text("task");
  r.target = in.text("target");
  r.outcome = in.named("outcome", outcome_from_name);
  r.time_ns = in.number("time_ns");
  r.finished_at_us = time_from(in, "when");
  r.origin = {in.text("source"), in.text("source_format"), in.text("source_header"),
              time_from(in, "imported")};
  r.document = in.text("document");
  if (r.format != "autotvm" && r.format != "t4" && r.format != "csv")
    in.fail(str("of: found \"", r.format, "\", expected autotvm, t4 or csv"));
  if (r.outcome == Outcome::kOk ? !is_plausible_call(r.time_ns) : !is_plausible_or_none(r.time_ns))
    in.fail(str("time_ns: found ", r.time_ns, ", expected ", kPlausibleCall));
  if (!in.status()) return in.status();
  return ExchangeRow(std::move(r));
}

}  // namespace

Result<ExchangeRow> parse_json_line(std::string_view line) {
  ASSIGN_OR_RETURN(const json document, parse_json(line));
  Fields in(document);
  const auto format = in.integer("format");
  if (!in.status()) return in.status();
  if (format < 1 || format > kColdFormat)
    return invalid_argument("format: found ", format, ", this tuner reads 1 to ", kColdFormat,
                            "; import it with the tuner that wrote it");
  if (format == 1) return trial_from(in, 1);
  const std::string kind = in.text("kind");
  if (kind == "trial") return trial_from(in, kFormat);
  if (kind == "job") return job_from(in);
  if (kind == "race") return race_from(in);
  if (kind == "foreign") return foreign_from(in);
  if (kind == "source") return kernel_from(in);
  if (!in.status()) return in.status();
  return invalid_argument("kind: found \"", on_one_line(kind),
                          "\", expected job, trial, race, foreign or source");
}

std::string json_line(const ExchangeRow& row) {
  struct ToJson {
    ordered_json operator()(const ExchangedJob& r) const { return job_json(r); }
    ordered_json operator()(const ExchangedTrial& r) const { return trial_json(r); }
    ordered_json operator()(const ExchangedRace& r) const { return race_json(r); }
    ordered_json operator()(const ForeignRecord& r) const { return foreign_json(r); }
    ordered_json operator()(const KernelRow& r) const { return kernel_json(r); }
  };
  return std::visit(ToJson{}, row).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace tuner::exchange
