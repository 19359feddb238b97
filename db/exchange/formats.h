// Records as text: our own JSON lines (db/records_format.md), AutoTVM logs 0.2, T4 documents, CSV tables.
// Each parser takes one record's text, from anywhere, and gives rows or one line saying what is wrong with
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/clock.h"
#include "db/exchange/exchange_store.h"

namespace tuner::exchange {

enum class Format { kJsonLines, kAutotvm, kT4, kCsv };
// "jsonl", "autotvm", "t4", "csv".
std::string_view format_name(Format format);
std::optional<Format> format_from_name(std::string_view name);

// --- our own JSON lines, version 2 (and 1, which only had trials) ---
Result<ExchangeRow> parse_json_line(std::string_view line);
std::string json_line(const ExchangeRow& row);  // without the end of the line

// --- AutoTVM log, version 0.2: one JSON object a line ---
Result<ForeignRecord> parse_autotvm_line(std::string_view line);
// A record of ours in that form: our template's name as the task's, the workload's key as its argument, every
// knob an "ot" entity. "" of a trial without a record: the form has no place for it.
std::string autotvm_line(const ExchangedTrial& trial);

// --- T4, the common results format of Kernel Tuner and others: a JSON document with a list `results` ---
struct T4Document {
  struct Element {
    std::string_view text;  // of the document's text
    int64_t line = 0;       // where it begins, from 1
  };
  std::string header;  // the document with an empty list of results
  std::vector<Element> elements;
  // Empty when the document is whole; else where and how it ends or goes wrong. `elements` are those before.
  std::string broken;
};
// Finds the elements; looks at nothing inside them. InvalidArgument: it is no such document.
Result<T4Document> split_t4(std::string_view text);
// `task`, `target`: where header and element do not tell.
Result<ForeignRecord> parse_t4_result(std::string_view element, std::string_view header,
                                      const std::string& task, const std::string& target);
std::string t4_header(const JobRow::Task& task);     // the document with an empty list of results
std::string t4_result(const ExchangedTrial& trial);  // "" of a trial without a record
std::string t4_document(std::string_view header, const std::vector<std::string>& results);

// --- CSV: RFC 4180, but no field goes over the end of a line ---
// The fields of a line. InvalidArgument: a quote that is not closed, or text after a closing quote.
Result<std::vector<std::string>> csv_fields(std::string_view line);
// What a header says its columns are. Our own table has all that a record has; of any other table, `time_ns`,
// `time_us`, `time_ms` or `time_s` is needed, `status` or `outcome`, `task`, `workload` or `kernel`, `target`
// or `device` are understood, and every other column is a knob.
class CsvTable {
 public:
  static Result<CsvTable> from_header(std::string_view line);
  bool is_own() const { return own_; }
  // `task`, `target`: where the table has no such column.
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
std::string csv_line(const ExchangedTrial& trial);  // "" of a trial without a record
// Foreign records as a table of their own: what is understood of them, and their text.
std::string csv_foreign_header();
std::string csv_foreign_line(const ForeignRecord& record);

}  // namespace tuner::exchange
