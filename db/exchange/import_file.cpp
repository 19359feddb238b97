#include "db/exchange/import_file.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "db/exchange/line_reader.h"

namespace tuner::exchange {

using nlohmann::json;

namespace {

// A line that was looked at. Neither row nor why: there was nothing on it.
struct Item {
  int64_t line = 0;
  std::optional<ExchangeRow> row;
  std::string why;
};
using Batch = std::vector<Item>;
constexpr size_t kBatch = 4000;  // rows in one transaction

// Hands batches from the thread that parses to the one that stores: reading is half of the work.
class Queue {
 public:
  // False: nobody wants more.
  bool push(Batch batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return batches_.size() < kMost || closed_; });
    if (closed_) return false;
    batches_.push_back(std::move(batch));
    changed_.notify_all();
    return true;
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }
  // Nothing: there is no more.
  std::optional<Batch> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !batches_.empty() || finished_; });
    if (batches_.empty()) return std::nullopt;
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    changed_.notify_all();
    return batch;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr size_t kMost = 4;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> batches_;
  bool finished_ = false, closed_ = false;
};

// Collects items into batches.
class Sender {
 public:
  explicit Sender(Queue& queue) : queue_(queue) { batch_.reserve(kBatch); }
  bool add(Item item) {
    // A kernel may have many megabytes.
    const bool large = item.row && std::holds_alternative<KernelRow>(*item.row);
    batch_.push_back(std::move(item));
    if (batch_.size() < kBatch && !large) return true;
    Batch full;
    full.reserve(kBatch);
    std::swap(full, batch_);
    return queue_.push(std::move(full));
  }
  void finish() {
    if (!batch_.empty()) (void)queue_.push(std::move(batch_));
    queue_.finish();
  }

 private:
  Queue& queue_;
  Batch batch_;
};

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }
std::string_view without_mark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

// The task of foreign records of a file that does not say: its name without endings.
std::string task_of(const std::string& path, const ImportOptions& options) {
  if (!options.task.empty()) return options.task;
  const std::string name = std::filesystem::path(path).filename().string();
  return name.substr(0, name.find('.', 1));
}

using ParseLine = std::function<Result<ExchangeRow>(std::string_view)>;
using IsNothing = bool (*)(std::string_view line);
bool is_blank_or_comment(std::string_view line) { return is_blank(line) || is_autotvm_comment(line); }

// Lines, from where the reader stands to the end, but for those with nothing on them.
void parse_lines(LineReader& reader, IsNothing is_nothing, const ParseLine& parse, Sender& out) {
  for (std::string line; reader.next(line);) {
    Item item{.line = reader.number(), .row = {}, .why = {}};
    const std::string_view text = reader.number() == 1 ? without_mark(line) : std::string_view(line);
    if (reader.too_long()) {
      item.why = str("is longer than ", LineReader::kLongest, " bytes");
    } else if (!is_nothing(text)) {
      Result<ExchangeRow> row = parse(text);
      if (row)
        item.row = *std::move(row);
      else
        item.why = reader.ended() ? row.message()
                                  : str("is cut off (the file ends without an end of line): ", row.message());
    }
    if (!out.add(std::move(item))) return;
  }
  if (!reader.status()) out.add({.line = 0, .row = {}, .why = reader.status().message()});
}

Result<std::string> whole_text(LineReader& reader) {
  std::string text;
  constexpr size_t kMost = size_t{2} << 30;
  for (std::string line; reader.next(line);) {
    if (text.size() + line.size() > kMost)
      return invalid_argument("a document of more than ", kMost, " bytes");
    text += line;
    if (reader.ended()) text += '\n';
  }
  return text;
}

class Import {
 public:
  Import(Store& store, ImportReport& report, const ImportOptions& options, std::string header)
      : header_(std::move(header)),
        importer_(
            store.exchange().importer({report.source, std::string(format_name(report.format)), header_})),
        report_(report),
        options_(options) {}

  Status store(Batch batch) {
    std::vector<ExchangeRow> rows;
    std::vector<size_t> of;  // the item of each row
    rows.reserve(batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      Item& item = batch[i];
      if (item.line != 0) ++report_.lines;
      if (item.row && !attached(*item.row, item.line)) continue;
      if (item.row) {
        const Status fit = check(*item.row);
        if (fit) {
          rows.push_back(*std::move(item.row));
          of.push_back(i);
        } else {
          skip(item.line, fit.message());
        }
      } else if (!item.why.empty()) {
        skip(item.line, std::move(item.why));
      } else {
        ++report_.blank;
      }
    }
    Result<std::vector<ImportedRow>> fates = importer_->add(rows);
    if (!fates) return fates.status();
    for (size_t i = 0; i < fates->size(); ++i) {
      ImportedRow& fate = (*fates)[i];
      ImportReport::Count& count = report_.count_of(rows[i]);
      if (fate.fate != ImportedRow::Fate::kRefused) report_.unmatched += is_unmatched(rows[i]);
      if (fate.fate == ImportedRow::Fate::kNew)
        ++count.added;
      else if (fate.fate == ImportedRow::Fate::kKnown)
        ++count.known;
      else
        skip(batch[of[i]].line, std::move(fate.why));
    }
    if (options_.progress) options_.progress(report_.lines);
    return Status::ok();
  }

 private:
  Status check(const ExchangeRow& row) {
    const auto* kernel = std::get_if<KernelRow>(&row);
    if (kernel != nullptr) return options_.check_kernel ? options_.check_kernel(*kernel) : Status::ok();
    if (!options_.check_task) return Status::ok();
    const auto one = [&](const JobRow::Task& task) -> Status {
      auto [at, fresh] = checked_.try_emplace({task.workload_key, task.target});
      if (fresh) at->second = options_.check_task(task);
      return at->second;
    };
    if (const auto* job = std::get_if<ExchangedJob>(&row)) {
      for (const JobRow::Task& task : job->job.tasks) RETURN_IF_ERROR(one(task));
    } else if (const auto* trial = std::get_if<ExchangedTrial>(&row)) {
      return one(trial->task);
    } else if (const auto* race = std::get_if<ExchangedRace>(&row)) {
      return one(race->task);
    }
    return Status::ok();
  }

  // False: the row is of no task of ours, and is counted.
  bool attached(ExchangeRow& row, int64_t line) {
    auto* foreign = std::get_if<ForeignRecord>(&row);
    if (foreign == nullptr || !options_.attach) return true;
    Result<ForeignRecord> made = options_.attach(*foreign);
    if (made) {
      *foreign = *std::move(made);
      return true;
    }
    if (++report_.outside == 1) report_.first_outside = {line, made.message()};
    return false;
  }

  bool is_unmatched(const ExchangeRow& row) const {
    const auto* foreign = std::get_if<ForeignRecord>(&row);
    if (foreign == nullptr || !options_.warms_a_search) return false;
    ForeignRecord record = *foreign;
    record.origin.header = header_;
    return !options_.warms_a_search(record);
  }

  void skip(int64_t line, std::string why) {
    if (line != 0) ++report_.skipped;
    if (report_.why.size() < ImportReport::kShown || line == 0)
      report_.why.emplace_back(line, std::move(why));
  }

  std::string header_;
  std::unique_ptr<Importer> importer_;
  ImportReport& report_;
  const ImportOptions& options_;
  std::map<std::pair<std::string, std::string>, Status> checked_;
};

// One document, in place of lines.
bool is_document(Format format) { return format == Format::kT4 || format == Format::kKernelTuner; }

Result<T4Document> split_document(Format format, std::string_view text) {
  return format == Format::kT4 ? split_t4(without_mark(text)) : split_kernel_tuner(without_mark(text));
}
auto parse_of(Format format) { return format == Format::kT4 ? parse_t4_result : parse_kernel_tuner_row; }

// The format of one line of JSON; nothing when it is no such line.
std::optional<Detected> detect_line(std::string_view line) {
  const json j = json::parse(line, nullptr, false);
  if (!j.is_object()) return std::nullopt;
  if (j.contains("input") && j.contains("config") && j.contains("result")) return Detected::kAutotvm;
  if (j.contains("pack") && j.contains("format") && (j.contains("round") || j.contains("document")))
    return Detected::kPackResults;
  if (j.contains("format") && (j.contains("kind") || j.contains("trial"))) return Detected::kJsonLines;
  if (j.contains("results")) return Detected::kT4;
  if (j.contains("cache") && j.contains("tune_params")) return Detected::kKernelTuner;
  return std::nullopt;
}

// A log that AutoTVM's format is asked for holds lines of it, if any: the first one tells.
Status check_first_line(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return Status::ok();  // would be read twice
  ASSIGN_OR_RETURN(LineReader reader, LineReader::open(path));
  for (std::string line; reader.next(line);) {
    const std::string_view seen = reader.number() == 1 ? without_mark(line) : std::string_view(line);
    if (!is_blank_or_comment(seen)) return check_other_tuner(seen).with_context(path + ": is ");
  }
  return Status::ok();
}

bool is_utf16(std::string_view text) { return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"); }

}  // namespace

ImportReport::Count& ImportReport::count_of(const ExchangeRow& row) {
  if (std::holds_alternative<ExchangedJob>(row)) return jobs;
  if (std::holds_alternative<ExchangedTrial>(row)) return trials;
  if (std::holds_alternative<ExchangedRace>(row)) return races;
  if (std::holds_alternative<KernelRow>(row)) return kernels;
  return foreign;
}

Result<Detected> detect_format(const std::string& path) {
  if (path == "-")
    return invalid_argument("standard input can be read only once: say what it is with --format");
  std::error_code error;
  if (std::filesystem::is_fifo(path, error))
    return invalid_argument(path, ": is a FIFO, which can be read only once: say what it is with --format");
  ASSIGN_OR_RETURN(LineReader reader, LineReader::open(path));
  std::string first, text;
  constexpr size_t kLook = 1 << 16;
  constexpr int kLines = 50;
  int lines = 0;
  bool comments = false;
  for (std::string line; lines < kLines && text.size() < kLook && reader.next(line);) {
    std::string_view seen = reader.number() == 1 ? without_mark(line) : std::string_view(line);
    if (is_blank(seen)) continue;
    if (is_autotvm_comment(seen)) {
      comments = true;
      continue;
    }
    ++lines;
    if (first.empty()) first = seen;
    if (const std::optional<Detected> known = detect_line(seen)) return *known;
    RETURN_IF_ERROR(check_other_tuner(seen).with_context(path + ": is "));
    text += seen.substr(0, kLook);
    text += '\n';
  }
  if (first.starts_with("SQLite format 3"))
    return invalid_argument(
        path, ": is a database, expected a file of records. To take over what it has: tuner records merge ",
        path, " -o DATABASE");
  if (!reader.status() && first.empty()) return reader.status();
  if (first.empty())
    return invalid_argument(path, comments ? ": has only comments (lines that begin with #), expected records"
                                           : ": is empty, expected records");
  if (is_utf16(first)) return invalid_argument(path, ": is text in UTF-16, expected UTF-8. Save it as that");
  const size_t begin = text.find_first_not_of(" \t");
  if (text[begin] == '{' && split_t4(text)) return Detected::kT4;
  if (text[begin] == '{' && text.find("\"tune_params_keys\"") != std::string::npos)
    return Detected::kKernelTuner;
  // Broken or cut lines of JSON still show what they were meant to be.
  if (text[begin] == '{') {
    if (first.find("\"entity\"") != std::string::npos) return Detected::kAutotvm;
    if (first.find("\"job_uid\"") != std::string::npos) return Detected::kJsonLines;
  } else if (CsvTable::from_header(first)) {
    return Detected::kCsv;
  }
  if (lines == 1 && text[begin] == '{' && (!reader.ended() || !reader.status()) && !json::accept(first))
    return invalid_argument(path, ": is cut off inside its first record (", first.size(),
                            " bytes of it are there), so nothing of it can be read. Copy the file again");
  // A terminal gets no bytes that it would take for commands.
  std::string shown = first.substr(0, 80);
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  return invalid_argument(path,
                          ": is none of the formats known here (jsonl, autotvm, t4, csv, kernel-tuner, "
                          "results of run-pack); it begins: ",
                          shown, first.size() > 80 ? "..." : "", ". Say which: --format");
}

Status check_some_fit(const std::string& path, Format format, const ImportOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return Status::ok();  // would be read twice
  ASSIGN_OR_RETURN(LineReader reader, LineReader::open(path));
  ASSIGN_OR_RETURN(const std::string text, whole_text(reader));
  const Result<T4Document> document = split_document(format, text);
  if (!document) return document.status().with_context(path + ": ");
  std::string why = document->broken.empty() ? "it has no rows" : document->broken;
  for (const T4Document::Element& element : document->elements) {
    Result<ForeignRecord> row = parse_of(format)(element.text, document->header, "task", "target");
    if (row) row = options.attach(*row);
    if (row) return Status::ok();
    if (&element == &document->elements.front()) why = str("line ", element.line, ": ", row.message());
  }
  const size_t rows = document->elements.size();
  return invalid_argument(path, ": none of its ", rows, " rows fits the job; ", rows > 0 ? "the first, " : "",
                          why);
}

Result<ImportReport> import_file(const std::string& path, Store& store, const ImportOptions& options) {
  ImportReport report;
  report.source = path;
  if (options.format) {
    report.format = *options.format;
    if (report.format == Format::kAutotvm) RETURN_IF_ERROR(check_first_line(path));
  } else {
    ASSIGN_OR_RETURN(const Detected detected, detect_format(path));
    if (detected == Detected::kPackResults)
      return invalid_argument(path, ": holds results of run-pack, which import_results reads");
    report.format = static_cast<Format>(detected);
  }
  ASSIGN_OR_RETURN(LineReader reader, LineReader::open(path));
  const std::string task = task_of(path, options);

  // What has to be known before the first row.
  std::string header, text;
  std::optional<CsvTable> table;
  T4Document document;
  if (report.format == Format::kCsv) {
    std::string line;
    while (reader.next(line) && is_blank(without_mark(line))) ++report.lines, ++report.blank;
    if (line.empty()) return invalid_argument(path, ": is empty, expected a table");
    header = without_mark(line);
    ++report.lines;
    ++report.blank;
    Result<CsvTable> read = CsvTable::from_header(header);
    if (!read) return invalid_argument(path, ": line ", reader.number(), ": ", read.message());
    table = *std::move(read);
    if (table->is_own()) header.clear();
  } else if (is_document(report.format)) {
    ASSIGN_OR_RETURN(text, whole_text(reader));
    Result<T4Document> split = split_document(report.format, text);
    if (!split) return invalid_argument(path, ": ", split.message());
    document = *std::move(split);
    header = document.header;
  }

  Queue queue;
  std::thread parser([&] {
    Sender out(queue);
    if (is_document(report.format)) {
      for (const T4Document::Element& element : document.elements) {
        Result<ForeignRecord> row = parse_of(report.format)(element.text, header, task, options.target);
        Item item{.line = element.line, .row = {}, .why = row ? "" : row.message()};
        if (row) item.row = ExchangeRow(*std::move(row));
        if (!out.add(std::move(item))) break;
      }
      if (!document.broken.empty()) out.add({.line = 0, .row = {}, .why = document.broken});
      if (!reader.status()) out.add({.line = 0, .row = {}, .why = reader.status().message()});
    } else {
      parse_lines(
          reader, report.format == Format::kAutotvm ? is_blank_or_comment : is_blank,
          [&](std::string_view line) -> Result<ExchangeRow> {
            if (report.format == Format::kCsv) return table->parse(line, task, options.target);
            if (report.format == Format::kJsonLines) return parse_json_line(line);
            ASSIGN_OR_RETURN(ForeignRecord record, parse_autotvm_line(line));
            return ExchangeRow(std::move(record));
          },
          out);
    }
    out.finish();
  });
  Status status;
  Import import(store, report, options, header);
  while (std::optional<Batch> batch = queue.pop()) {
    status = import.store(*std::move(batch));
    if (!status) break;
  }
  queue.close();
  parser.join();
  if (!status) return status.with_context(path + ": ");
  return report;
}

}  // namespace tuner::exchange
