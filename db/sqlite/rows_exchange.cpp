// Rows of kernels, of what was learned, and of what came from elsewhere.
#include "db/sqlite/row_codec.h"

namespace tuner::db {

SqlRow to_row(const LearnedRow& l) {
  return sealed({l.id, l.kind, l.op, l.target, l.until_record_id, l.document, l.made_at_us});
}
SqlRow to_row(const PrunedRow& p) {
  return sealed(
      {p.pruned_id, p.job_seq, p.task_id, p.outcome, p.records, p.closed, p.run_ms, p.pruned_at_us});
}
SqlRow to_row(const StoredOrigin& s) {
  const Origin& o = s.origin;
  return sealed({s.origin_id, o.source, o.format, o.header, o.imported_at_us});
}
SqlRow to_row(const StoredImportedJob& j) { return sealed({j.job_seq, j.uid, j.home_id, j.origin_id}); }
SqlRow to_row(const StoredImportedTrial& t) {
  return sealed({t.seq, t.job_seq, t.home_seq, t.content, t.origin_id});
}
SqlRow to_row(const StoredForeignTask& t) { return sealed({t.foreign_task_id, t.format, t.task, t.target}); }
SqlRow to_row(const StoredForeignRecord& s) {
  const ForeignRecord& r = s.record;
  return sealed({s.foreign_id, s.foreign_task_id, s.origin_id, s.digest_high, s.digest_low,
                 std::string(outcome_name(r.outcome)), r.time_ns, r.finished_at_us, r.document});
}

SqlRow to_row(const KernelRow& k) { return sealed({k.id, k.digest, k.tenant, k.document, k.brought_at_us}); }

Result<KernelRow> kernel_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "kernel"));
  RowReader in(row);
  KernelRow out;
  out.id = in.integer();
  out.digest = in.text();
  out.tenant = in.text();
  out.document = in.text();
  out.brought_at_us = in.integer();
  if (in.wrong()) return unreadable_row(row, "kernel");
  return out;
}

Result<LearnedRow> learned_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "learned"));
  RowReader in(row);
  LearnedRow out;
  out.id = in.integer();
  out.kind = in.text();
  out.op = in.text();
  out.target = in.text();
  out.until_record_id = in.integer();
  out.document = in.text();
  out.made_at_us = in.integer();
  if (in.wrong()) return unreadable_row(row, "learned");
  return out;
}

Result<StoredOrigin> origin_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "origin"));
  RowReader in(row);
  StoredOrigin out;
  out.origin_id = in.integer();
  out.origin.source = in.text();
  out.origin.format = in.text();
  out.origin.header = in.text();
  out.origin.imported_at_us = in.integer();
  if (in.wrong()) return unreadable_row(row, "origin");
  return out;
}

Result<StoredImportedJob> imported_job_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "imported_job"));
  RowReader in(row);
  StoredImportedJob out;
  out.job_seq = in.integer();
  out.uid = in.text();
  out.home_id = in.text();
  out.origin_id = in.integer();
  if (in.wrong()) return unreadable_row(row, "imported_job");
  return out;
}

Result<StoredImportedTrial> imported_trial_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "imported_trial"));
  RowReader in(row);
  StoredImportedTrial out;
  out.seq = in.integer();
  out.job_seq = in.integer();
  out.home_seq = in.integer();
  out.content = in.integer();
  out.origin_id = in.integer();
  if (in.wrong()) return unreadable_row(row, "imported_trial");
  return out;
}

Result<StoredForeignTask> foreign_task_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "foreign_task"));
  RowReader in(row);
  StoredForeignTask out;
  out.foreign_task_id = in.integer();
  out.format = in.text();
  out.task = in.text();
  out.target = in.text();
  if (in.wrong()) return unreadable_row(row, "foreign_task");
  return out;
}

Result<StoredForeignRecord> foreign_record_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "foreign_record"));
  RowReader in(row);
  StoredForeignRecord out;
  out.foreign_id = in.integer();
  out.foreign_task_id = in.integer();
  out.origin_id = in.integer();
  out.digest_high = in.integer();
  out.digest_low = in.integer();
  out.record.outcome = in.named(outcome_from_name);
  out.record.time_ns = in.real();
  out.record.finished_at_us = in.integer();
  out.record.document = in.text();
  if (in.wrong()) return unreadable_row(row, "foreign_record");
  out.record.id = out.foreign_id;
  return out;
}

}  // namespace tuner::db
