#include "db/exchange/export_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

namespace tuner::exchange {

namespace {

// Lines into a file, standard output or a compressed file. A file appears under its name when it is whole.
class LineWriter {
 public:
  static Result<LineWriter> open(const std::string& path) {
    LineWriter out;
    out.path_ = path;
    if (path == "-") {
      out.file_ = stdout;
      return out;
    }
    out.temporary_ = path + ".part";
    if (path.ends_with(".gz"))
      out.gz_ = gzopen(out.temporary_.c_str(), "wb6");
    else
      out.file_ = std::fopen(out.temporary_.c_str(), "wb");
    if (out.gz_ == nullptr && out.file_ == nullptr)
      return invalid_argument(path, ": cannot be written: ", std::strerror(errno));
    return out;
  }
  LineWriter(LineWriter&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::move(other.temporary_)),
        file_(std::exchange(other.file_, nullptr)),
        gz_(std::exchange(other.gz_, nullptr)) {}
  LineWriter& operator=(LineWriter&&) = delete;
  ~LineWriter() {  // not finished: nothing is left behind
    if (gz_ != nullptr) gzclose(gz_);
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
    if ((gz_ != nullptr || file_ != nullptr) && !temporary_.empty()) ::unlink(temporary_.c_str());
  }
  bool line(std::string_view text) { return write(text) && write("\n"); }
  bool write(std::string_view text) {
    if (gz_ == nullptr) return std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    // gzwrite counts in unsigned int and returns 0 for nothing.
    constexpr size_t kPiece = size_t{1} << 20;
    for (size_t at = 0; at < text.size(); at += kPiece) {
      const auto n = static_cast<unsigned>(std::min(kPiece, text.size() - at));
      if (gzwrite(gz_, text.data() + at, n) != static_cast<int>(n)) return false;
    }
    return true;
  }
  Status finish() {
    errno = 0;
    bool written = true;
    if (gz_ != nullptr) {
      written = gzclose(gz_) == Z_OK;
    } else if (file_ == stdout) {
      written = std::fflush(stdout) == 0;
    } else {
      written = std::fflush(file_) == 0 && ::fsync(::fileno(file_)) == 0;
      written = std::fclose(file_) == 0 && written;
    }
    gz_ = nullptr;
    file_ = nullptr;
    if (!written) {
      if (!temporary_.empty()) ::unlink(temporary_.c_str());
      return failed(path_ == "-" ? "standard output" : path_, ": ",
                    errno != 0 ? std::strerror(errno) : "the disk did not take all of it");
    }
    if (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0)
      return failed(path_, ": ", std::strerror(errno));
    return Status::ok();
  }

 private:
  LineWriter() = default;
  std::string path_, temporary_;
  std::FILE* file_ = nullptr;
  gzFile gz_ = nullptr;
};

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
  ASSIGN_OR_RETURN(LineWriter out, LineWriter::open(options.path));
  bool written = true;
  Status status;
  T4Collector t4;
  if (options.format == Format::kCsv)
    written = out.line(options.foreign_table ? csv_foreign_header() : csv_header());
  const Status walked = for_each_exchange_row(store, filter, [&](const ExchangeRow& row) {
    if (options.format == Format::kT4) {
      status = t4.add(row, report);
      return status.is_ok();
    }
    const std::string line = line_of(row, options);
    const bool own = std::holds_alternative<ExchangedTrial>(row),
               foreign = std::holds_alternative<ForeignRecord>(row);
    if (line.empty()) {
      report.left_out += own || foreign ? 1 : 0;  // jobs and races are only of our own form
      return true;
    }
    written = out.line(line);
    ++report.lines;
    report.trials += own;
    report.foreign += foreign;
    constexpr int64_t kTell = 10'000;
    if (options.progress && report.lines % kTell == 0) options.progress(report.lines);
    return written;
  });
  RETURN_IF_ERROR(walked);
  RETURN_IF_ERROR(status);
  if (options.format == Format::kT4) {
    if (t4.empty()) return not_found("no record fits: nothing to write");
    report.lines = static_cast<int64_t>(t4.size());
    written = out.write(t4.document());
  }
  if (!written) return failed(options.path, ": ", std::strerror(errno));
  RETURN_IF_ERROR(out.finish());
  return report;
}

}  // namespace tuner::exchange
