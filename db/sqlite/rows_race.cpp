// Rows of races.
#include <charconv>

#include "db/sqlite/row_codec.h"

namespace tuner::db {

using nlohmann::json;

namespace {

json race_options_json(const RaceOptions& o) {
  json out{{"min_repeat_ms", o.min_repeat_ms},
           {"processes", o.processes},
           {"rounds", o.rounds},
           {"limit_s", o.limit_s}};
  if (o.constants != Constants::kWarm) out["constants"] = constants_name(o.constants);
  return out;
}
// Throws json::exception on what race_options_json() does not write.
RaceOptions race_options_from(const json& j) {
  return {.min_repeat_ms = j.at("min_repeat_ms").get<double>(),
          .processes = j.at("processes").get<int>(),
          .rounds = j.at("rounds").get<int>(),
          .limit_s = j.at("limit_s").get<double>(),
          .constants = constants_from_name(j.value("constants", "warm")).value_or(Constants::kWarm)};
}

// How it was raced, and what came out beside the times: keys that rows of older programs do not have, so no
// new column and no migration.
Result<json> options_and_outcome(const RaceRow& r) {
  json out = race_options_json(r.options);
  out["certified"] = r.certified;
  if (!r.uncertified_why.empty()) out["uncertified_why"] = r.uncertified_why;
  if (r.turns != 0) out["turns"] = r.turns;
  if (r.discarded != 0) out["discarded"] = r.discarded;
  if (r.disturbed != 0) out["disturbed"] = r.disturbed;
  if (r.slices != 0) out["slices"] = r.slices;
  if (r.retaken != 0) out["retaken"] = r.retaken;
  if (!r.default_trial_id.empty()) {
    ASSIGN_OR_RETURN(out["default_trial"], trial_seq(r.default_trial_id));
    out["default_time_ns"] = r.default_time_ns;
  }
  if (!r.stored_trial_id.empty()) {
    ASSIGN_OR_RETURN(out["stored_trial"], trial_seq(r.stored_trial_id));
  }
  if (r.won_by != WonBy::kFastest) out["won_by"] = won_by_name(r.won_by);
  if (r.other_time_ns != 0) out["other_time_ns"] = r.other_time_ns;
  // Stands here because an answer needs it, and is read without the samples.
  for (const RaceFinalist& f : r.finalists)
    if (const double ns = raced_memory_ns(f); f.trial_id == r.winner_trial_id && ns > 0)
      out["memory_ns"] = ns;
  return out;
}
void read_options_and_outcome(const json& j, RowReader& reader, RaceRow& r) {
  try {
    r.options = race_options_from(j);
    const double half_width = r.time_ns > 0 ? (r.time_high_ns - r.time_low_ns) / 2 / r.time_ns : 0;
    r.certified = j.value("certified", half_width <= kCertifiedHalfWidth);
    r.uncertified_why = j.value("uncertified_why", std::string());
    r.turns = j.value("turns", 0);
    r.discarded = j.value("discarded", 0);
    r.disturbed = j.value("disturbed", 0);
    r.slices = j.value("slices", 0);
    r.retaken = j.value("retaken", 0);
    if (j.contains("default_trial")) r.default_trial_id = trial_id_text(j.at("default_trial").get<int64_t>());
    r.default_time_ns = j.value("default_time_ns", 0.0);
    if (j.contains("stored_trial")) r.stored_trial_id = trial_id_text(j.at("stored_trial").get<int64_t>());
    const std::optional<WonBy> won_by = won_by_from_name(j.value("won_by", "fastest"));
    if (!won_by) reader.mark_wrong();
    r.won_by = won_by.value_or(WonBy::kFastest);
    r.other_time_ns = j.value("other_time_ns", 0.0);
    r.memory_ns = j.value("memory_ns", 0.0);
  } catch (const json::exception&) {
    reader.mark_wrong();
  }
  if (!r.certified && r.uncertified_why.empty())
    r.uncertified_why = "its interval is wider than 5 % to either side";
}

std::vector<RaceFinalist> finalists_from(const json& j, RowReader& reader) {
  std::vector<RaceFinalist> finalists;
  try {
    for (const json& f : j)
      finalists.push_back(
          {trial_id_text(f.at("trial").get<int64_t>()), f.at("samples_ns").get<std::vector<double>>(),
           f.at("sentinel_ns").get<std::vector<double>>(), f.at("process").get<std::vector<int>>(),
           f.value("memory_ns", std::vector<double>()), f.value("other_ns", std::vector<double>()),
           f.value("other_process", std::vector<int>()), f.value("exact_clock", false)});
  } catch (const json::exception&) {
    reader.mark_wrong();
  }
  return finalists;
}

std::vector<std::string> trial_ids_from(const json& j, RowReader& reader) {
  std::vector<std::string> ids;
  try {
    for (const json& seq : j) ids.push_back(trial_id_text(seq.get<int64_t>()));
  } catch (const json::exception&) {
    reader.mark_wrong();
  }
  return ids;
}

}  // namespace

Result<SqlRow> to_row(const StoredRace& s) {
  const RaceRow& r = s.race;
  json finalists = json::array(), tie_set = json::array();
  for (const RaceFinalist& f : r.finalists) {
    ASSIGN_OR_RETURN(const int64_t seq, trial_seq(f.trial_id));
    finalists.push_back({{"trial", seq},
                         {"samples_ns", f.samples_ns},
                         {"sentinel_ns", f.sentinel_ns},
                         {"process", f.process}});
    if (!f.memory_ns.empty()) finalists.back()["memory_ns"] = f.memory_ns;
    if (f.exact_clock) finalists.back()["exact_clock"] = true;
    if (f.other_ns.empty()) continue;
    finalists.back()["other_ns"] = f.other_ns;
    finalists.back()["other_process"] = f.other_process;
  }
  for (const std::string& id : r.tie_set) {
    ASSIGN_OR_RETURN(const int64_t seq, trial_seq(id));
    tie_set.push_back(seq);
  }
  ASSIGN_OR_RETURN(const int64_t winner, trial_seq(r.winner_trial_id));
  ASSIGN_OR_RETURN(const json options, options_and_outcome(r));
  const Environment& e = r.environment;
  return sealed({r.id,
                 s.job_seq,
                 int64_t{r.task_index},
                 s.task_id,
                 winner,
                 dumped(finalists),
                 dumped(tie_set),
                 r.time_ns,
                 r.time_low_ns,
                 r.time_high_ns,
                 r.ratio,
                 r.ratio_low,
                 r.ratio_high,
                 r.regret_bound,
                 dumped(options),
                 e.hardware,
                 e.toolchain,
                 int64_t{e.harness_abi},
                 e.worker_id,
                 e.host,
                 r.finished_at_us});
}

namespace {

// The trial ids of '[{"process": ..., "trial": 44}, ...]', without reading the numbers between them.
std::vector<RaceFinalist> finalists_without_samples(std::string_view text, RowReader& reader) {
  constexpr std::string_view kKey = "\"trial\":";
  std::vector<RaceFinalist> finalists;
  for (size_t at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey, at + 1)) {
    int64_t seq = 0;
    const char* begin = text.data() + at + kKey.size();
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), seq);
    if (error != std::errc()) reader.mark_wrong();
    finalists.push_back({.trial_id = trial_id_text(seq)});
  }
  if (finalists.empty()) reader.mark_wrong();
  return finalists;
}

Result<StoredRace> read_race(const SqlRow& row, bool samples) {
  RETURN_IF_ERROR(check_row(row, "race"));
  RowReader in(row);
  StoredRace out;
  RaceRow& r = out.race;
  r.id = in.integer();
  out.job_seq = in.integer();
  r.task_index = in.integer32();
  out.task_id = in.integer();
  r.winner_trial_id = trial_id_text(in.integer());
  r.finalists = samples ? finalists_from(in.parsed(), in) : finalists_without_samples(in.text_view(), in);
  r.tie_set = trial_ids_from(in.parsed(), in);
  r.time_ns = in.real();
  r.time_low_ns = in.real();
  r.time_high_ns = in.real();
  r.ratio = in.real();
  r.ratio_low = in.real();
  r.ratio_high = in.real();
  r.regret_bound = in.real();
  read_options_and_outcome(in.parsed(), in, r);
  r.environment.hardware = in.text();
  r.environment.toolchain = in.text();
  r.environment.harness_abi = in.integer32();
  r.environment.worker_id = in.text();
  r.environment.host = in.text();
  r.finished_at_us = in.integer();
  if (in.wrong()) return unreadable_row(row, "race");
  return out;
}

}  // namespace

Result<SqlRow> to_row(const StoredOpenRace& s) {
  const OpenRaceRow& r = s.race;
  json finalists = json::array();
  for (const std::string& id : r.finalists) {
    ASSIGN_OR_RETURN(const int64_t seq, trial_seq(id));
    finalists.push_back(seq);
  }
  int64_t default_seq = 0;
  if (!r.default_trial_id.empty()) {
    ASSIGN_OR_RETURN(default_seq, trial_seq(r.default_trial_id));
  }
  json options = race_options_json(r.options);
  if (!r.stored_trial_id.empty()) {
    ASSIGN_OR_RETURN(options["stored_trial"], trial_seq(r.stored_trial_id));
  }
  return sealed({s.open_race_id, r.id, s.job_seq, int64_t{r.task_index}, dumped(finalists), default_seq,
                 dumped(options), std::string(trial_state_name(r.state)), int64_t{r.attempt}, r.fencing,
                 r.worker_id, s.race_id, s.message, grants_text(r.grants)});
}

Result<StoredOpenRace> open_race_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "open_race"));
  RowReader in(row);
  StoredOpenRace out;
  OpenRaceRow& r = out.race;
  out.open_race_id = in.integer();
  r.id = in.text();
  out.job_seq = in.integer();
  r.task_index = in.integer32();
  r.finalists = trial_ids_from(in.parsed(), in);
  if (const int64_t seq = in.integer(); seq != 0) r.default_trial_id = trial_id_text(seq);
  try {
    const json options = in.parsed();
    r.options = race_options_from(options);
    if (options.contains("stored_trial"))
      r.stored_trial_id = trial_id_text(options.at("stored_trial").get<int64_t>());
  } catch (const json::exception&) {
    in.mark_wrong();
  }
  r.state = in.named(trial_state_from_name);
  r.attempt = in.integer32();
  r.fencing = in.integer();
  r.worker_id = in.text();
  out.race_id = in.integer();
  out.message = in.text();
  r.grants = grants_from(in.text_view(), in);
  if (in.wrong()) return unreadable_row(row, "open_race");
  return out;
}

Result<StoredRace> race_from_row(const SqlRow& row) { return read_race(row, /*samples=*/true); }
Result<StoredRace> race_without_samples(const SqlRow& row) { return read_race(row, /*samples=*/false); }

}  // namespace tuner::db
