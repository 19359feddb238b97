// Records as text: our own JSON lines (db/records_format.md), AutoTVM logs 0.2, T4 documents, Kernel Tuner's
// cache files, CSV tables.
// Each parser takes the text of one record, which may come from anywhere. It returns rows, or one line that
// says what is wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/clock.h"
#include "db/exchange/exchange_store.h"

namespace tuner::exchange {

enum class Format { kJsonLines, kAutotvm, kT4, kCsv, kKernelTuner };
// "jsonl", "autotvm", "t4", "csv", "kernel-tuner".
std::string_view format_name(Format format);
std::optional<Format> format_from_name(std::string_view name);

// --- our own JSON lines: version 2, and version 1, which had only trials ---
Result<ExchangeRow> parse_json_line(std::string_view line);
std::string json_line(const ExchangeRow& row);  // without the newline

// --- AutoTVM log, version 0.2: one JSON object a line ---
// InvalidArgument: a line of AutoTVM 0.1 or of another tuner of TVM's (auto_scheduler, MetaSchedule), with
// what it is, what is read and what to do. OK for anything else.
Status check_other_tuner(std::string_view line);
// AutoTVM itself skips such lines.
inline bool is_autotvm_comment(std::string_view line) { return line.starts_with('#'); }
// InvalidArgument: as check_other_tuner(), or another form.
Result<ForeignRecord> parse_autotvm_line(std::string_view line);
// Writes our record in that form: our template stands where AutoTVM has the task's name, the workload key
// where it has the task's arguments, and every knob is an entity "ot" (AutoTVM's word for "other"). Returns
// "" if the trial has no record, since a line of that form is about a measurement.
std::string autotvm_line(const ExchangedTrial& trial);

// --- T4, the common results format of Kernel Tuner and others: a JSON document with a list `results` ---
struct T4Document {
  struct Element {
    std::string_view text;  // points into the document's text
    int64_t line = 0;       // the line where it begins, counted from 1
  };
  std::string header;  // the document with an empty list of results
  std::vector<Element> elements;
  // Empty if the document is complete. Else says where it ends or goes wrong; `elements` holds what comes
  // before.
  std::string broken;
};
// Finds the elements without looking inside them. InvalidArgument: not a T4 document. OK also for one that
// breaks off: look at `broken`. The elements point into `text`.
Result<T4Document> split_t4(std::string_view text);
// `task` and `target` are used where neither header nor element names one.
Result<ForeignRecord> parse_t4_result(std::string_view element, std::string_view header,
                                      const std::string& task, const std::string& target);
std::string t4_header(const JobRow::Task& task);     // the document with an empty list of results
std::string t4_result(const ExchangedTrial& trial);  // "" if the trial has no record
std::string t4_document(std::string_view header, const std::vector<std::string>& results);

// --- Kernel Tuner's cache files: a JSON document whose "cache" has an object for each config ---
// Finds the rows as split_t4() does. The header is a T4 document without results: what is read here becomes
// results of T4. Kernel Tuner closes such a file only at the end of a search: one that ends behind a whole
// row is complete. InvalidArgument: not such a file.
Result<T4Document> split_kernel_tuner(std::string_view text);
// `header` is that of the document. The record is a result of T4.
Result<ForeignRecord> parse_kernel_tuner_row(std::string_view row, std::string_view header,
                                             const std::string& task, const std::string& target);

// --- CSV: RFC 4180, except that a field may not contain a line break ---
// Splits a line into fields. InvalidArgument: an unclosed quote, or text after a closing quote.
Result<std::vector<std::string>> csv_fields(std::string_view line);
// The columns of a table, read from its header. Our own table holds a complete record. Any other table needs
// one column with the time of a call (`time_ns`, `time_us`, `time_ms` or `time_s`). It may have one with the
// outcome (`status` or `outcome`), one with the task (`task`, `workload` or `kernel`), and one with the
// target (`target` or `device`). Every other column is a knob.
class CsvTable {
 public:
  static Result<CsvTable> from_header(std::string_view line);
  bool is_own() const { return own_; }
  // `task` and `target` are used where the table has no such column.
  Result<ExchangeRow> parse(std::string_view line, const std::string& task, const std::string& target) const;

 private:
  Result<ExchangeRow> parse_own(const std::vector<std::string>& fields) const;
  Result<ExchangeRow> parse_foreign(const std::vector<std::string>& fields, std::string_view line,
                                    const std::string& task, const std::string& target) const;
  std::vector<std::string> columns_;
  bool own_ = false;
  int time_ = -1, outcome_ = -1, task_ = -1, target_ = -1;
  double to_ns_ = 1;
};
std::string csv_header();
std::string csv_line(const ExchangedTrial& trial);  // "" if the trial has no record
// Foreign records have a table of their own: the fields we understand, and the original text.
std::string csv_foreign_header();
std::string csv_foreign_line(const ForeignRecord& record);

}  // namespace tuner::exchange
