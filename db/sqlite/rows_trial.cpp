// Rows of trials and their records.
#include "db/record_fields.h"
#include "db/sqlite/row_codec.h"

namespace tuner::db {

namespace {

// A record's fields behind the others of its row.
class FieldsToRow {
 public:
  explicit FieldsToRow(SqlRow& row) : row_(row) {}
  void operator()(const Field&, int v) { row_.emplace_back(int64_t{v}); }
  void operator()(const Field&, bool v) { row_.emplace_back(int64_t{v}); }
  void operator()(const Field&, double v) { row_.emplace_back(v); }
  void operator()(const Field&, const std::string& v) { row_.emplace_back(v); }
  void operator()(const Field&, const std::vector<double>& v) { row_.emplace_back(dumped(v)); }
  void operator()(const Field&, Outcome v) { row_.emplace_back(std::string(outcome_name(v))); }
  template <class Get>
  void derived(const Field&, const Get& get) {
    row_.emplace_back(get());
  }
  void time(const Field&, int64_t us) { row_.emplace_back(us); }
  template <class Part>
  void part(const char*, const Part& p) {
    describe(p, *this);
  }
  void object(const Field&, const MeasureOptions& o) { row_.emplace_back(dumped(options_json(o))); }

 private:
  SqlRow& row_;
};

class FieldsFromRow {
 public:
  explicit FieldsFromRow(RowReader& in) : in_(in) {}
  void operator()(const Field&, int& v) { v = in_.integer32(); }
  void operator()(const Field&, bool& v) { v = in_.integer() != 0; }
  void operator()(const Field&, double& v) { v = in_.real(); }
  void operator()(const Field&, std::string& v) { v = in_.text(); }
  void operator()(const Field&, std::vector<double>& v) { v = in_.numbers(); }
  void operator()(const Field&, Outcome& v) { v = in_.named(outcome_from_name); }
  template <class Get>
  void derived(const Field&, const Get&) {
    (void)in_.real();
  }
  void time(const Field&, int64_t& us) { us = in_.integer(); }
  template <class Part>
  void part(const char*, Part& p) {
    describe(p, *this);
  }
  void object(const Field&, MeasureOptions& o) { o = options_from(in_.parsed(), in_); }

 private:
  RowReader& in_;
};

// What only the table knows of a record, before and behind its fields.
constexpr std::string_view kOfTheRecord = "record_id, trial_seq, task_id, terminal, ", kBehind = "crc";

}  // namespace

const std::string& record_columns() {
  static const std::string columns = [] {
    std::string list{kOfTheRecord};
    for (const DescribedField& f : record_fields()) list += str(f.field.name, ", ");
    return list += kBehind;
  }();
  return columns;
}

size_t record_width() {
  static const auto width = static_cast<size_t>(std::ranges::count(record_columns(), ',')) + 1;
  return width;
}

std::string record_columns_sql() {
  std::string lines;
  for (const auto& [field, kind] : record_fields()) {
    const bool integer = kind == FieldKind::kInteger || kind == FieldKind::kFlag || kind == FieldKind::kTime;
    lines += str("  ", field.name,
                 integer                      ? " INTEGER"
                 : kind == FieldKind::kNumber ? " REAL"
                                              : " TEXT",
                 " NOT NULL,  -- ", field.meaning, "\n");
  }
  return lines;
}

SqlRow to_row(const StoredTrial& s) {
  const TrialRow& t = s.trial;
  return sealed({t.seq, s.job_seq, int64_t{t.task_index}, s.task_id, t.template_name,
                 int64_t{t.template_version}, t.config, std::string(trial_state_name(t.state)),
                 int64_t{t.attempt}, t.fencing, t.worker_id, static_cast<int64_t>(t.rng_counter),
                 t.model_digest, grants_text(t.grants)});
}

SqlRow to_row(const StoredRecord& s) {
  SqlRow row;
  row.reserve(record_width());
  row.assign({s.record_id, s.trial_seq, s.task_id, int64_t{s.terminal}});
  FieldsToRow out(row);
  describe(s.record, out);
  return sealed(std::move(row));
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
  t.grants = grants_from(in.text_view(), in);
  if (in.wrong()) return unreadable_row(row, "trial");
  return out;
}

Result<StoredRecord> record_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "record"));
  RowReader in(row);
  StoredRecord out;
  out.record_id = in.integer();
  out.trial_seq = in.integer();
  out.record.trial_id = trial_id_text(out.trial_seq);
  out.task_id = in.integer();
  out.terminal = in.integer() != 0;
  FieldsFromRow fields(in);
  describe(out.record, fields);
  if (in.wrong()) return unreadable_row(row, "record");
  return out;
}

}  // namespace tuner::db
