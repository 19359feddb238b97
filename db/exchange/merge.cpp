#include "db/exchange/merge.h"

#include <filesystem>
#include <system_error>

#include "compiler_core/base/output_file.h"

namespace tuner::exchange {

namespace fs = std::filesystem;

namespace {

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

Result<ImportReport> add_database(const std::string& source, Store& into,
                                  const std::function<void(int64_t rows)>& progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> from, Store::open(source, Store::Mode::kRead));
  ImportReport report;
  report.source = source;
  const std::unique_ptr<Importer> importer = into.exchange().importer({source, "database", ""});
  std::vector<ExchangeRow> rows;
  constexpr size_t kBatch = 4000;
  const auto store = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::vector<ImportedRow> fates, importer->add(rows));
    for (size_t i = 0; i < rows.size(); ++i) {
      ++report.lines;
      ImportReport::Count& count = report.count_of(rows[i]);
      if (fates[i].fate == ImportedRow::Fate::kNew)
        ++count.added;
      else if (fates[i].fate == ImportedRow::Fate::kKnown)
        ++count.known;
      else if (++report.skipped; report.why.size() < ImportReport::kShown)
        report.why.emplace_back(report.lines, fates[i].why);
    }
    rows.clear();
    if (progress) progress(report.lines);
    return Status::ok();
  };
  Status status;
  ExchangeFilter all;
  all.damaged = [&](const std::string& why) {
    ++report.lines;
    if (++report.skipped; report.why.size() < ImportReport::kShown) report.why.emplace_back(0, why);
  };
  RETURN_IF_ERROR(from->exchange().for_each_row(all, [&](const ExchangeRow& row) {
    rows.push_back(row);
    // A kernel may have many megabytes.
    if (rows.size() >= kBatch || std::holds_alternative<KernelRow>(row)) status = store();
    return status.is_ok();
  }));
  if (status) status = store();
  if (!status) return status.with_context(source + ": ");
  return report;
}

}  // namespace

Result<MergeReport> merge_databases(const std::vector<std::string>& sources, const std::string& output,
                                    const std::function<void(int64_t rows)>& progress) {
  MergeReport report{.output = output, .copied = {}, .sources = {}};
  if (sources.empty()) return invalid_argument("nothing to merge: expected at least one database");
  for (const std::string& source : sources) {  // all of them, before anything is written
    const Result<std::unique_ptr<Store>> there = Store::open(source, Store::Mode::kRead);
    if (!there && there.status().code() == StatusCode::kNotFound) return invalid_argument(there.message());
    if (!there) return there.status();
  }
  std::error_code error;
  if (!fs::exists(output, error)) {
    RETURN_IF_ERROR(check_output(output));
    RETURN_IF_ERROR(copy_database(sources.front(), output));
    report.copied = sources.front();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> into, Store::open(output, Store::Mode::kWrite));
  for (size_t i = 0; i < sources.size(); ++i) {
    if (same_file(sources[i], output) || (i == 0 && !report.copied.empty())) continue;
    ASSIGN_OR_RETURN(ImportReport added, add_database(sources[i], *into, progress));
    report.sources.push_back(std::move(added));
  }
  return report;
}

}  // namespace tuner::exchange
