#include "db/rows.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>

#include "db/crc32c.h"

namespace tuner::db {

namespace {

using nlohmann::json;

// Type, length and bytes of every value but the last: no two different rows feed the same bytes.
int64_t checksum(const SqlRow& row, size_t values) {
  uint32_t crc = 0;
  const auto feed = [&](uint64_t word) {
    std::array<char, 8> bytes{};
    for (char& byte : bytes) {
      byte = static_cast<char>(word & 0xff);
      word >>= 8;
    }
    crc = crc32c({bytes.data(), bytes.size()}, crc);
  };
  for (size_t i = 0; i < values; ++i) {
    feed(row[i].index());
    if (const auto* integer = std::get_if<int64_t>(&row[i])) feed(static_cast<uint64_t>(*integer));
    if (const auto* real = std::get_if<double>(&row[i]))
      feed(std::bit_cast<uint64_t>(*real == 0 ? 0.0 : *real));
    if (const auto* text = std::get_if<std::string>(&row[i])) {
      feed(text->size());
      crc = crc32c(*text, crc);
    }
  }
  return crc;
}

SqlRow sealed(SqlRow row) {
  row.emplace_back(checksum(row, row.size()));
  return row;
}

// Reads a row column by column. A wrong type or name only happens in a damaged or foreign row, which the
// checksum tells first, so it is noted and reported once at the end.
class RowReader {
 public:
  explicit RowReader(const SqlRow& row) : row_(row) {}
  int64_t integer() { return get<int64_t>(); }
  int integer32() { return static_cast<int>(get<int64_t>()); }
  double real() { return get<double>(); }
  std::string text() { return get<std::string>(); }
  std::string text_or_null() {
    if (at_ < row_.size() && std::holds_alternative<std::monostate>(row_[at_])) return ++at_, std::string();
    return get<std::string>();
  }
  template <class E>
  E named(std::optional<E> (*from_name)(std::string_view)) {
    const std::optional<E> value = from_name(get<std::string>());
    if (!value) wrong_ = true;
    return value.value_or(E{});
  }
  json parsed() {
    json value = json::parse(get<std::string>(), nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) wrong_ = true;
    return value;
  }
  std::vector<double> numbers() {
    const json value = parsed();
    if (!value.is_array() || !std::ranges::all_of(value, [](const json& v) { return v.is_number(); }))
      return wrong_ = true, std::vector<double>{};
    return value.get<std::vector<double>>();
  }
  bool wrong() const { return wrong_; }
  void mark_wrong() { wrong_ = true; }

 private:
  template <class T>
  T get() {
    if (at_ < row_.size())
      if (const auto* value = std::get_if<T>(&row_[at_++])) return *value;
    wrong_ = true;
    return T{};
  }
  const SqlRow& row_;
  size_t at_ = 0;
  bool wrong_ = false;
};

Status check(const SqlRow& row, std::string_view table) {
  const auto* id = row.empty() ? nullptr : std::get_if<int64_t>(&row[0]);
  const auto* stored = row.empty() ? nullptr : std::get_if<int64_t>(&row.back());
  const int64_t computed = row.empty() ? 0 : checksum(row, row.size() - 1);
  if (id != nullptr && stored != nullptr && *stored == computed) return Status::ok();
  return failed("row ", id != nullptr ? std::to_string(*id) : "?", " of table ", table,
                " is damaged: checksum ", computed, ", stored ",
                stored != nullptr ? std::to_string(*stored) : "nothing",
                ". Check the disk, then restore a copy of the file or start with another --db");
}
Status unreadable(const SqlRow& row, std::string_view table) {
  return failed(
      "row ", std::get<int64_t>(row[0]), " of table ", table,
      " holds a value this program does not know, though its checksum is right. Use the tuner that wrote it");
}

// Rows from before there was a precision have no such key: the default is not written either, so that they
// keep their checksums.
json options_json(const MeasureOptions& o) {
  json out{{"min_repeat_ms", o.min_repeat_ms},           {"repeats", o.repeats},
           {"build_timeout_s", o.build_timeout_s},       {"run_timeout_s", o.run_timeout_s},
           {"memory_limit_bytes", o.memory_limit_bytes}, {"cut_factor", o.cut_factor}};
  if (o.precision != MeasureOptions{}.precision) out["precision"] = o.precision;
  return out;
}
MeasureOptions options_from(const json& j, RowReader& reader) {
  MeasureOptions o;
  try {
    o.min_repeat_ms = j.at("min_repeat_ms").get<double>();
    o.repeats = j.at("repeats").get<int>();
    o.build_timeout_s = j.at("build_timeout_s").get<double>();
    o.run_timeout_s = j.at("run_timeout_s").get<double>();
    o.memory_limit_bytes = j.at("memory_limit_bytes").get<int64_t>();
    o.cut_factor = j.at("cut_factor").get<double>();
    if (j.contains("precision")) o.precision = j.at("precision").get<double>();
  } catch (const json::exception&) {
    reader.mark_wrong();
  }
  return o;
}

std::vector<JobRow::Task> tasks_from(const json& j, RowReader& reader) {
  std::vector<JobRow::Task> tasks;
  try {
    for (const json& task : j)
      tasks.push_back({task.at(0).get<std::string>(), task.at(1).get<std::string>(),
                       task.size() > 2 ? task.at(2).get<std::string>() : std::string(),
                       task.size() > 3 ? task.at(3).get<int64_t>() : 1});
  } catch (const json::exception&) {
    reader.mark_wrong();
  }
  return tasks;
}

// How a job measures and when it ends. The second part is left out where it says nothing: jobs of programs
// that did not know it read alike.
constexpr char kStopBelow[] = "stop_below", kTimeLimit[] = "time_limit_s";
void job_options_from(const json& j, RowReader& reader, JobRow& job) {
  job.options = options_from(j, reader);
  if (!j.is_object()) return;
  try {
    job.stop.below = j.value(kStopBelow, 0.0);
    job.stop.time_limit_s = j.value(kTimeLimit, 0.0);
  } catch (const json::exception&) {
    reader.mark_wrong();
  }
}

// Text that is not UTF-8 (a message from a failed program) must not make a row that cannot be exported.
std::string dumped(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

// How a record was measured: the options, and the state a GPU was in. A key that older programs do not look
// for and rows of theirs do not have, so no new column and no migration.
constexpr char kDeviceState[] = "device_state";
std::string measured_json(const MeasureRecord& r) {
  json out = options_json(r.options);
  if (!r.device_state.empty()) out[kDeviceState] = r.device_state;
  return dumped(out);
}
void measured_from(const json& j, RowReader& reader, MeasureRecord& r) {
  r.options = options_from(j, reader);
  if (!j.is_object() || !j.contains(kDeviceState)) return;
  if (j[kDeviceState].is_string())
    r.device_state = j[kDeviceState].get<std::string>();
  else
    reader.mark_wrong();
}

json race_options_json(const RaceOptions& o) {
  return json{{"min_repeat_ms", o.min_repeat_ms},
              {"processes", o.processes},
              {"rounds", o.rounds},
              {"limit_s", o.limit_s}};
}
RaceOptions race_options_from(const json& j, RowReader& reader) {
  RaceOptions o;
  try {
    o.min_repeat_ms = j.at("min_repeat_ms").get<double>();
    o.processes = j.at("processes").get<int>();
    o.rounds = j.at("rounds").get<int>();
    o.limit_s = j.at("limit_s").get<double>();
  } catch (const json::exception&) {
    reader.mark_wrong();
  }
  return o;
}

std::vector<RaceFinalist> finalists_from(const json& j, RowReader& reader) {
  std::vector<RaceFinalist> finalists;
  try {
    for (const json& f : j)
      finalists.push_back(
          {trial_id_text(f.at("trial").get<int64_t>()), f.at("samples_ns").get<std::vector<double>>(),
           f.at("sentinel_ns").get<std::vector<double>>(), f.at("process").get<std::vector<int>>()});
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

std::string placeholders(std::string_view columns) {
  std::string out = "?";
  for (const char c : columns)
    if (c == ',') out += ", ?";
  return out;
}

std::string job_options_json(const JobRow& job) {
  json out = options_json(job.options);
  if (job.stop.below != 0) out[kStopBelow] = job.stop.below;
  if (job.stop.time_limit_s != 0) out[kTimeLimit] = job.stop.time_limit_s;
  return out.dump();
}

std::string tasks_json(const std::vector<JobRow::Task>& tasks) {
  json out = json::array();
  for (const JobRow::Task& task : tasks) {
    out.push_back({task.workload_key, task.target});
    if (!task.algorithms.empty() || task.uses != 1) out.back().push_back(task.algorithms);
    if (task.uses != 1) out.back().push_back(task.uses);
  }
  return dumped(out);
}

SqlRow to_row(const StoredTask& t) { return sealed({t.task_id, t.task.workload_key, t.task.target}); }

SqlRow to_row(const StoredJob& s) {
  const JobRow& j = s.job;
  return sealed({s.job_seq, j.id, j.request_id.empty() ? SqlValue{} : SqlValue{j.request_id},
                 tasks_json(j.tasks), int64_t{j.trials}, j.search, static_cast<int64_t>(j.seed),
                 job_options_json(j), std::string(job_state_name(j.state)), j.message, j.submitted_at_us,
                 j.finished_at_us});
}

SqlRow to_row(const StoredTrial& s) {
  const TrialRow& t = s.trial;
  return sealed({t.seq, s.job_seq, int64_t{t.task_index}, s.task_id, t.template_name,
                 int64_t{t.template_version}, t.config, std::string(trial_state_name(t.state)),
                 int64_t{t.attempt}, t.fencing, t.worker_id, static_cast<int64_t>(t.rng_counter),
                 t.model_digest});
}

SqlRow to_row(const StoredRecord& s) {
  const MeasureRecord& r = s.record;
  const Environment& e = r.environment;
  return sealed({s.record_id,
                 s.trial_seq,
                 s.task_id,
                 int64_t{s.terminal},
                 int64_t{r.attempt},
                 std::string(outcome_name(r.outcome)),
                 int64_t{r.cut},
                 record_time_ns(r),
                 dumped(r.run_ns),
                 dumped(r.cpu_ns),
                 r.message,
                 r.sentinel_before_ns,
                 r.sentinel_after_ns,
                 r.build_ms,
                 r.run_ms,
                 r.queue_ms,
                 r.artifact_digest,
                 r.max_error,
                 r.peak_gflops,
                 e.hardware,
                 e.toolchain,
                 int64_t{e.harness_abi},
                 e.worker_id,
                 e.worker_incarnation,
                 e.host,
                 measured_json(r),
                 r.finished_at_us});
}

SqlRow to_row(const StoredProposal& s) {
  const ProposalRow& p = s.proposal;
  return sealed({p.seq, s.job_seq, int64_t{p.task_index}, int64_t{p.asked}, int64_t{p.count},
                 p.first_trial_seq, p.observed_record_id, p.donor_record_id});
}

Result<SqlRow> to_row(const StoredRace& s) {
  const RaceRow& r = s.race;
  json finalists = json::array(), tie_set = json::array();
  for (const RaceFinalist& f : r.finalists) {
    ASSIGN_OR_RETURN(const int64_t seq, trial_seq(f.trial_id));
    finalists.push_back({{"trial", seq},
                         {"samples_ns", f.samples_ns},
                         {"sentinel_ns", f.sentinel_ns},
                         {"process", f.process}});
  }
  for (const std::string& id : r.tie_set) {
    ASSIGN_OR_RETURN(const int64_t seq, trial_seq(id));
    tie_set.push_back(seq);
  }
  ASSIGN_OR_RETURN(const int64_t winner, trial_seq(r.winner_trial_id));
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
                 dumped(race_options_json(r.options)),
                 e.hardware,
                 e.toolchain,
                 int64_t{e.harness_abi},
                 e.worker_id,
                 e.host,
                 r.finished_at_us});
}

Result<StoredTask> task_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check(row, "task"));
  RowReader in(row);
  StoredTask out;
  out.task_id = in.integer();
  out.task.workload_key = in.text();
  out.task.target = in.text();
  if (in.wrong()) return unreadable(row, "task");
  return out;
}

Result<StoredJob> job_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check(row, "job"));
  RowReader in(row);
  StoredJob out;
  out.job_seq = in.integer();
  out.job.id = in.text();
  out.job.request_id = in.text_or_null();
  out.job.tasks = tasks_from(in.parsed(), in);
  out.job.trials = in.integer32();
  out.job.search = in.text();
  out.job.seed = static_cast<uint64_t>(in.integer());
  job_options_from(in.parsed(), in, out.job);
  out.job.state = in.named(job_state_from_name);
  out.job.message = in.text();
  out.job.submitted_at_us = in.integer();
  out.job.finished_at_us = in.integer();
  if (in.wrong()) return unreadable(row, "job");
  return out;
}

Result<StoredTrial> trial_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check(row, "trial"));
  RowReader in(row);
  StoredTrial out;
  TrialRow& t = out.trial;
  t.seq = in.integer();
  t.id = trial_id_text(t.seq);
  out.job_seq = in.integer();
  t.task_index = in.integer32();
  out.task_id = in.integer();
  t.template_name = in.text();
  t.template_version = in.integer32();
  t.config = in.text();
  t.state = in.named(trial_state_from_name);
  t.attempt = in.integer32();
  t.fencing = in.integer();
  t.worker_id = in.text();
  t.rng_counter = static_cast<uint64_t>(in.integer());
  t.model_digest = in.text();
  if (in.wrong()) return unreadable(row, "trial");
  return out;
}

Result<StoredRecord> record_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check(row, "record"));
  RowReader in(row);
  StoredRecord out;
  MeasureRecord& r = out.record;
  out.record_id = in.integer();
  out.trial_seq = in.integer();
  r.trial_id = trial_id_text(out.trial_seq);
  out.task_id = in.integer();
  out.terminal = in.integer() != 0;
  r.attempt = in.integer32();
  r.outcome = in.named(outcome_from_name);
  r.cut = in.integer() != 0;
  (void)in.real();  // time_ns follows from run_ns
  r.run_ns = in.numbers();
  r.cpu_ns = in.numbers();
  r.message = in.text();
  r.sentinel_before_ns = in.real();
  r.sentinel_after_ns = in.real();
  r.build_ms = in.real();
  r.run_ms = in.real();
  r.queue_ms = in.real();
  r.artifact_digest = in.text();
  r.max_error = in.real();
  r.peak_gflops = in.real();
  r.environment.hardware = in.text();
  r.environment.toolchain = in.text();
  r.environment.harness_abi = in.integer32();
  r.environment.worker_id = in.text();
  r.environment.worker_incarnation = in.text();
  r.environment.host = in.text();
  measured_from(in.parsed(), in, r);
  r.finished_at_us = in.integer();
  if (in.wrong()) return unreadable(row, "record");
  return out;
}

Result<StoredProposal> proposal_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check(row, "proposal"));
  RowReader in(row);
  StoredProposal out;
  ProposalRow& p = out.proposal;
  p.seq = in.integer();
  out.job_seq = in.integer();
  p.task_index = in.integer32();
  p.asked = in.integer32();
  p.count = in.integer32();
  p.first_trial_seq = in.integer();
  p.observed_record_id = in.integer();
  p.donor_record_id = in.integer();
  if (in.wrong()) return unreadable(row, "proposal");
  return out;
}

Result<StoredRace> race_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check(row, "race"));
  RowReader in(row);
  StoredRace out;
  RaceRow& r = out.race;
  r.id = in.integer();
  out.job_seq = in.integer();
  r.task_index = in.integer32();
  out.task_id = in.integer();
  r.winner_trial_id = trial_id_text(in.integer());
  r.finalists = finalists_from(in.parsed(), in);
  r.tie_set = trial_ids_from(in.parsed(), in);
  r.time_ns = in.real();
  r.time_low_ns = in.real();
  r.time_high_ns = in.real();
  r.ratio = in.real();
  r.ratio_low = in.real();
  r.ratio_high = in.real();
  r.regret_bound = in.real();
  r.options = race_options_from(in.parsed(), in);
  r.environment.hardware = in.text();
  r.environment.toolchain = in.text();
  r.environment.harness_abi = in.integer32();
  r.environment.worker_id = in.text();
  r.environment.host = in.text();
  r.finished_at_us = in.integer();
  if (in.wrong()) return unreadable(row, "race");
  return out;
}

std::string trial_id_text(int64_t seq) { return str("t", seq); }

Result<int64_t> trial_seq(std::string_view trial_id) {
  int64_t seq = 0;
  const char* const begin = trial_id.data() + (trial_id.empty() ? 0 : 1);
  const char* const end = trial_id.data() + trial_id.size();
  const auto [rest, error] = std::from_chars(begin, end, seq);
  if (trial_id.empty() || trial_id[0] != 't' || error != std::errc() || rest != end || seq <= 0)
    return not_found("no trial \"", trial_id, "\": expected t and a number, as in t812");
  return seq;
}

}  // namespace tuner::db
