// Rows of trials and their records.
#include "db/row_codec.h"

namespace tuner::db {

using nlohmann::json;

namespace {

// How a record was measured: the options, and the state the machine was in. Keys that older programs do not
// look for and rows of theirs do not have, so no new column and no migration.
constexpr char kDeviceState[] = "device_state", kMemoryBefore[] = "memory_sentinel_before_ns",
               kMemoryAfter[] = "memory_sentinel_after_ns", kDiscarded[] = "discarded",
               kReadGbps[] = "read_gbps";
std::string measured_json(const MeasureRecord& r) {
  json out = options_json(r.options);
  if (!r.device_state.empty()) out[kDeviceState] = r.device_state;
  if (r.memory_sentinel_before_ns != 0) out[kMemoryBefore] = r.memory_sentinel_before_ns;
  if (r.memory_sentinel_after_ns != 0) out[kMemoryAfter] = r.memory_sentinel_after_ns;
  if (r.discarded != 0) out[kDiscarded] = r.discarded;
  if (r.read_gbps != 0) out[kReadGbps] = r.read_gbps;
  return dumped(out);
}
void measured_from(const json& j, RowReader& reader, MeasureRecord& r) {
  r.options = options_from(j, reader);
  if (!j.is_object()) return;
  try {
    r.device_state = j.value(kDeviceState, std::string());
    r.memory_sentinel_before_ns = j.value(kMemoryBefore, 0.0);
    r.memory_sentinel_after_ns = j.value(kMemoryAfter, 0.0);
    r.discarded = j.value(kDiscarded, 0);
    r.read_gbps = j.value(kReadGbps, 0.0);
  } catch (const json::exception&) {
    reader.mark_wrong();
  }
}

}  // namespace

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

Result<StoredTrial> trial_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "trial"));
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
  if (in.wrong()) return unreadable_row(row, "trial");
  return out;
}

Result<StoredRecord> record_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "record"));
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
  if (in.wrong()) return unreadable_row(row, "record");
  return out;
}

}  // namespace tuner::db
