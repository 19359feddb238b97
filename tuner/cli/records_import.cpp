// tuner records import: files of records into a database, every line accounted for.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "compiler_core/target.h"
#include "db/exchange/import_file.h"
#include "db/resolve/documents.h"
#include "templates/workload/workload.h"
#include "tuner/cli/records_commands.h"
#include "tuner/daemon/search/attached_rows.h"
#include "tuner/daemon/search/foreign_rows.h"
#include "tuner/jobs/tasks.h"
#include "tuner/pack/import_results.h"
#include "tuner/text/facts.h"
#include "tuner/text/hint.h"
#include "tuner/text/import_report_text.h"

namespace tuner::cli {

namespace {

using nlohmann::ordered_json;

struct RecordsImportOptions {
  std::string db, format, task, target, job;
  std::vector<std::string> files;
  bool json = false;
};

// What is not the database's own spelling, queries would never find.
Status check_task(const JobRow::Task& task) {
  const Result<Workload> workload = workload_from_key(task.workload_key);
  if (!workload) return invalid_argument("workload: ", workload.message());
  const Result<Target> target = parse_target(task.target);
  if (!target) return invalid_argument("target: ", target.message());
  if (workload->key() != task.workload_key)
    return invalid_argument("workload: found \"", task.workload_key, "\", which this tuner spells \"",
                            workload->key(), "\"");
  if (target->name() != task.target)
    return invalid_argument("target: found \"", task.target, "\", which this tuner spells \"", target->name(),
                            "\"");
  return Status::ok();
}

int import_pack_results(const RecordsImportOptions& options, const std::string& file, Store& store,
                        ordered_json& facts) {
  const Result<std::vector<ImportReport>> imported = import_results(file, store);
  if (!imported) return report(imported.status());
  bool skipped = false;
  for (const ImportReport& r : *imported) {
    if (options.json)
      facts.push_back({{"file", file},
                       {"format", "run-pack"},
                       {"job", r.job_id},
                       {"lines", r.lines},
                       {"trials", r.trials},
                       {"records", {{"new", r.records}, {"known", r.known}}},
                       {"skipped", r.skipped.size()},
                       {"why", r.skipped}});
    else
      std::printf("job %s: %lld new trials, %lld new records, %lld known\n", r.job_id.c_str(),
                  static_cast<long long>(r.trials), static_cast<long long>(r.records),
                  static_cast<long long>(r.known));
    for (const std::string& why : r.skipped)
      std::fprintf(stderr, "tuner: %s: skipped %s\n", file.c_str(), why.c_str());
    skipped = skipped || !r.skipped.empty();
  }
  return skipped ? kExitFailed : kExitDone;
}

exchange::ImportOptions options_for(const AttachedRows& rows) {
  exchange::ImportOptions options;
  options.attach = [&rows](const ForeignRecord& record) { return rows.attach(record); };
  return options;
}

// The task that --job names; null: no job is named.
Result<std::unique_ptr<AttachedRows>> rows_of_job(const RecordsImportOptions& options) {
  if (options.job.empty()) return std::unique_ptr<AttachedRows>();
  if (!options.task.empty())
    return invalid_argument("--job says what was tuned: expected no --task beside it");
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_tasks(options.job, options.target));
  if (tasks.size() != 1)
    return invalid_argument(options.job, ": expected a job file with one entry, found ", tasks.size(),
                            "; rows belong to one task");
  Result<AttachedRows> rows = AttachedRows::of({tasks[0].key, tasks[0].target_name, tasks[0].algorithms});
  if (!rows) return rows.status().with_context(options.job + ": ");
  return std::make_unique<AttachedRows>(*std::move(rows));
}

// Whether the file has rows that --job can attach.
Status check_attachable(const std::string& file, exchange::Detected format, const AttachedRows& rows) {
  using exchange::Detected;
  if (format == Detected::kT4 || format == Detected::kKernelTuner)
    return exchange::check_some_fit(file, static_cast<exchange::Format>(format), options_for(rows));
  const std::string is = format == Detected::kPackResults
                             ? "results of run-pack"
                             : std::string(format_name(static_cast<exchange::Format>(format)));
  return invalid_argument("--job: expected T4 files or cache files of Kernel Tuner; ", file, " is ", is);
}

int import_one(const RecordsImportOptions& options, const std::string& file, const AttachedRows* rows,
               Store& store, ordered_json& facts) {
  exchange::ImportOptions wanted{.task = options.task,
                                 .target = options.target,
                                 .check_task = check_task,
                                 .check_kernel = check_kernel,
                                 .progress = {}};
  ForeignMatcher matcher;
  if (rows != nullptr)
    wanted.attach = options_for(*rows).attach;
  else
    wanted.warms_a_search = [&](const ForeignRecord& record) { return matcher.matches(record); };
  if (!options.format.empty()) {
    wanted.format = exchange::format_from_name(options.format);
  } else {
    const Result<exchange::Detected> detected = exchange::detect_format(file);
    if (!detected) return report(detected.status());
    if (*detected == exchange::Detected::kPackResults)
      return import_pack_results(options, file, store, facts);
  }
  std::optional<RowProgress> progress(file);
  wanted.progress = [&](int64_t lines) { (*progress)(lines); };
  const Result<exchange::ImportReport> imported = exchange::import_file(file, store, wanted);
  progress.reset();  // what is said next has the line to itself
  if (!imported) return report(imported.status());
  if (options.json)
    facts.push_back(import_report_json(*imported));
  else
    print_import_report(*imported);
  return imported->why.empty() && imported->outside == 0 ? kExitDone : kExitFailed;
}

int run_records_import(const RecordsImportOptions& options) {
  if (!options.format.empty() && !exchange::format_from_name(options.format))
    return report(invalid_argument("--format: found \"", options.format,
                                   "\", expected jsonl, autotvm, t4, csv or kernel-tuner"));
  const Result<std::unique_ptr<AttachedRows>> rows = rows_of_job(options);
  if (!rows) return report(rows.status());
  for (const std::string& file : options.files) {  // before anything is stored
    const Result<exchange::Detected> detected =
        options.format.empty() ? exchange::detect_format(file)
                               : static_cast<exchange::Detected>(*exchange::format_from_name(options.format));
    if (!detected) return report(detected.status());
    if (*rows == nullptr) continue;
    if (const Status s = check_attachable(file, *detected, **rows); !s) return report(s);
  }
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kWrite);
  if (!store) return report(with_way_to_write(store.status(), options.db));
  ordered_json facts = ordered_json::array();
  int exit_code = kExitDone;
  for (const std::string& file : options.files)
    exit_code = std::max(exit_code, import_one(options, file, rows->get(), **store, facts));
  if (options.json)
    std::printf("%s\n", pretty(facts).c_str());
  else if (*rows != nullptr && exit_code != kExitWrongUse)
    std::printf(
        "These rows help the search of %s. They are no answer: they were not measured here.\nnext: %s\n",
        options.job.c_str(), command_line("submit " + shell_quoted(options.job)).c_str());
  return exit_code;
}

}  // namespace

void add_records_import(Command records, CommandContext& context) {
  auto options = std::make_shared<RecordsImportOptions>();
  const Command command = add_command(
      records, context, "import",
      "Store records from files: our JSON lines and CSV, results of run-pack, AutoTVM logs, T4 documents, "
      "cache files of Kernel Tuner, other CSV tables. The same file again changes nothing. Exit code 1: some "
      "lines were skipped, each "
      "told",
      [options] { return run_records_import(*options); });
  command.add_option("FILE", options->files, "Files, compressed (.gz) or not; told apart by content")
      .required();
  command.add_option("--format", options->format, "Read them as jsonl, autotvm, t4, csv or kernel-tuner")
      .type_name("FORMAT");
  command
      .add_option("--task", options->task, "What was tuned, for tables and T4 documents that do not say it")
      .type_name("TEXT");
  command
      .add_option("--job", options->job,
                  "The rows of T4 and Kernel Tuner files are of this task: a job file with one entry, whose "
                  "knobs they have")
      .type_name("JOB_FILE")
      .offers(offer_files({".json"}));
  command
      .add_option("--target", options->target,
                  "Where it ran, for files that do not say it; with --job: in place of the job's")
      .type_name("TARGET");
  add_json_option(command, options->json);
  add_db_option(command, options->db);
}

}  // namespace tuner::cli
