#include "db/exchange/export_file.h"

#include <algorithm>

#include "db/exchange/text_output.h"

namespace tuner::exchange {

namespace {

// The text of a row in a format of lines; "" where it has no place.
std::string line_of(const ExchangeRow& row, const ExportOptions& options) {
  if (options.format == Format::kJsonLines) return json_line(row);
  const auto* trial = std::get_if<ExchangedTrial>(&row);
  const auto* foreign = std::get_if<ForeignRecord>(&row);
  if (options.format == Format::kAutotvm) {
    if (trial != nullptr) return autotvm_line(*trial);
    return foreign != nullptr && foreign->format == format_name(Format::kAutotvm) ? foreign->document : "";
  }
  if (options.foreign_table) return foreign != nullptr ? csv_foreign_line(*foreign) : "";
  return trial != nullptr ? csv_line(*trial) : "";
}

class T4Collector {
 public:
  Status add(const ExchangeRow& row, ExportReport& report) {
    if (const auto* trial = std::get_if<ExchangedTrial>(&row)) {
      std::string text = t4_result(*trial);
      if (text.empty()) {
        ++report.left_out;
        return Status::ok();
      }
      RETURN_IF_ERROR(
          one_task(trial->task.workload_key + " on " + trial->task.target, t4_header(trial->task)));
      results_.push_back(std::move(text));
      ++report.trials;
    } else if (const auto* foreign = std::get_if<ForeignRecord>(&row)) {
      if (foreign->format != format_name(Format::kT4)) {
        ++report.left_out;
        return Status::ok();
      }
      RETURN_IF_ERROR(one_task(foreign->task + " on \"" + foreign->target + "\"", foreign->origin.header));
      results_.push_back(foreign->document);
      ++report.foreign;
    }
    return Status::ok();
  }
  std::string document() const { return t4_document(header_, results_); }
  bool empty() const { return results_.empty(); }
  size_t size() const { return results_.size(); }

 private:
  Status one_task(const std::string& task, const std::string& header) {
    if (task_.empty()) {
      task_ = task;
      header_ = header;
    }
    if (task == task_) return Status::ok();
    return invalid_argument("t4: a document is of one task, and these records are of several, as ", task_,
                            " and ", task, ". Choose one: FILE with --task, --job, --op, --target");
  }
  std::string task_, header_;
  std::vector<std::string> results_;
};

}  // namespace

Result<ExportReport> export_file(const Store& store, const ExportOptions& options) {
  ExportReport report;
  ExchangeFilter filter = options.filter;
  if (options.format == Format::kCsv) {
    filter.own = filter.own && !options.foreign_table;
    filter.foreign = filter.foreign && options.foreign_table;
  }
  ASSIGN_OR_RETURN(TextOutput out, TextOutput::open(options.path));
  Status status;
  filter.damaged = [&](const std::string& why) {
    ++report.damaged;
    if (report.why.size() < ExportReport::kShown && std::ranges::find(report.why, why) == report.why.end())
      report.why.push_back(why);
  };
  T4Collector t4;
  if (options.format == Format::kCsv)
    status = out.write((options.foreign_table ? csv_foreign_header() : csv_header()) + "\n");
  RETURN_IF_ERROR(status);
  const Status walked = store.exchange().for_each_row(filter, [&](const ExchangeRow& row) {
    if (options.format == Format::kT4) {
      status = t4.add(row, report);
      return status.is_ok();
    }
    std::string line = line_of(row, options);
    const bool own = std::holds_alternative<ExchangedTrial>(row),
               foreign = std::holds_alternative<ForeignRecord>(row);
    if (line.empty()) {
      report.left_out += own || foreign ? 1 : 0;  // jobs and races are only of our own form
      return true;
    }
    status = out.write(line += '\n');
    ++report.lines;
    report.trials += own;
    report.foreign += foreign;
    constexpr int64_t kTell = 10'000;
    if (options.progress && report.lines % kTell == 0) options.progress(report.lines);
    return status.is_ok();
  });
  RETURN_IF_ERROR(walked);
  RETURN_IF_ERROR(status);
  if (options.format == Format::kT4) {
    if (t4.empty()) return not_found("no record fits: nothing to write");
    report.lines = static_cast<int64_t>(t4.size());
    RETURN_IF_ERROR(out.write(t4.document()));
  }
  RETURN_IF_ERROR(out.finish());
  return report;
}

}  // namespace tuner::exchange
