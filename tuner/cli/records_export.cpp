// tuner records export: every measured trial as a line (JSON, AutoTVM's log, CSV) or in a T4 document, or a
// task's configs as a recorded space.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "compiler_core/base/output_file.h"
#include "db/exchange/export_file.h"
#include "db/exchange/text_output.h"
#include "tuner/cli/records_commands.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/jobs/record_scope.h"
#include "tuner/jobs/tasks.h"
#include "tuner/study/space_export.h"
#include "tuner/study/task_records.h"
#include "tuner/text/facts.h"

namespace tuner::cli {

namespace {

struct RecordsExportOptions {
  RecordScope scope;
  std::string db, job, hardware, since, format, output = "-";
  bool space = false, own = false, foreign = false, json = false;
};

Result<TaskRecords> records_asked_for(const RecordsExportOptions& options, const Store& store) {
  if (!options.job.empty()) return records_of_job(store, options.job, options.scope.task, options.hardware);
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_tasks(options.scope.file, options.scope.target));
  const auto n = static_cast<int>(tasks.size());
  if (options.scope.task < 0 && n > 1)
    return invalid_argument(options.scope.file, " has ", n, " tasks; choose one: --task 0 to ", n - 1);
  if (options.scope.task >= n)
    return invalid_argument("--task: found ", options.scope.task, ", expected 0 to ", n - 1,
                            ", the entries of ", options.scope.file);
  const CliTask& task = tasks[static_cast<size_t>(std::max(options.scope.task, 0))];
  return records_of_task(store, {task.key, task.target_name, task.algorithms}, options.hardware);
}

// A recorded space, and on stderr how much of the space it is.
int run_export_space(const RecordsExportOptions& options) {
  if (options.job.empty() == options.scope.file.empty())
    return report(invalid_argument("--space: expected a job file or --job JOB, found ",
                                   options.job.empty() ? "neither" : "both"));
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) return report(store.status());
  const Result<TaskRecords> records = records_asked_for(options, **store);
  if (!records) return report(records.status());
  int64_t cut = 0, failures = 0, ok = 0;
  for (const TaskRecords::Row& row : records->rows)
    ++(row.outcome != Outcome::kOk ? failures : row.is_timed() ? ok : cut);
  if (ok == 0)
    return report(
        not_found(records->task.workload_key, " on ", records->task.target,
                  ": no config was timed to the end; tuner submit FILE --trials all measures every one"));
  if (const Status written = exchange::write_text(options.output, space_csv(*records)); !written)
    return report(written);
  std::string size;  // unknown when no template of this program serves the task any more
  if (const Result<TaskSpace> space = make_task_space(records->task))
    size = str(" of ", space->search.size());
  std::fprintf(stderr, "%s%s valid configs: %s timed, %s failed", std::to_string(ok + failures).c_str(),
               size.c_str(), std::to_string(ok).c_str(), std::to_string(failures).c_str());
  if (cut > 0)
    std::fprintf(stderr, "; left out: %s cut short (tuner submit FILE --trials all measures in full)",
                 std::to_string(cut).c_str());
  if (records->outdated > 0)
    std::fprintf(stderr, "; left out: %s records of another version of their template",
                 std::to_string(records->outdated).c_str());
  std::fprintf(stderr, "\n");
  return kExitDone;
}

void tell_damaged(const RecordsExportOptions& options, const exchange::ExportReport& done) {
  for (const std::string& why : done.why)
    std::fprintf(stderr, "tuner: %s: %s\n", options.db.c_str(), why.c_str());
  const int64_t rows = done.lines + done.damaged;
  std::fprintf(stderr,
               "tuner: %s: written: %lld of %lld rows; the others need the damaged rows named above\n",
               options.output == "-" ? "standard output" : options.output.c_str(),
               static_cast<long long>(done.lines), static_cast<long long>(rows));
}

int run_export(const RecordsExportOptions& options) {
  if (const Status s = check_output(options.output, {&options.scope.file, 1}); !s) return report(s);
  if (options.space) return run_export_space(options);
  exchange::ExportOptions wanted{.path = options.output, .progress = {}};
  if (!options.format.empty()) {
    const std::optional<exchange::Format> format = exchange::format_from_name(options.format);
    if (!format || *format == exchange::Format::kKernelTuner)
      return report(
          invalid_argument("--format: found \"", options.format, "\", expected jsonl, autotvm, t4 or csv"));
    wanted.format = *format;
  }
  if (options.own && options.foreign)
    return report(
        invalid_argument("--own and --foreign exclude each other; without either, both are written"));
  ExchangeFilter& filter = wanted.filter;
  filter.job = options.job;
  filter.own = !options.foreign;
  filter.foreign = !options.own;
  wanted.foreign_table = options.foreign;
  if (!options.since.empty()) {
    const Result<int64_t> since = since_from_text(options.since);
    if (!since) return report(since.status());
    filter.since_us = *since;
  }
  if (const Status chosen = select_tasks(options.scope, filter); !chosen) return report(chosen);
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) return report(store.status());
  exchange::ExportReport done;
  {
    RowProgress progress(options.output);
    if (options.output != "-") wanted.progress = [&](int64_t lines) { progress(lines); };
    const Result<exchange::ExportReport> result = exchange::export_file(**store, wanted);
    if (!result) return report(result.status());
    done = *result;
  }
  if (options.json) {
    const nlohmann::ordered_json facts{
        {"output", options.output}, {"lines", done.lines},       {"records", done.trials},
        {"foreign", done.foreign},  {"left_out", done.left_out}, {"damaged", done.damaged},
        {"why", done.why}};
    std::fprintf(options.output == "-" ? stderr : stdout, "%s\n", one_line(facts).c_str());
  } else if (options.output != "-") {
    std::fprintf(stderr, "%lld lines written to %s: %lld records, %lld of other tuners\n",
                 static_cast<long long>(done.lines), options.output.c_str(),
                 static_cast<long long>(done.trials), static_cast<long long>(done.foreign));
  }
  if (done.left_out > 0 && !options.json)
    std::fprintf(stderr, "tuner: left out: %lld rows that have no place in %s; --format jsonl has all\n",
                 static_cast<long long>(done.left_out),
                 options.format.empty() ? "jsonl" : options.format.c_str());
  if (done.damaged == 0) return kExitDone;
  tell_damaged(options, done);
  return kExitFailed;
}

}  // namespace

void add_records_export(Command records, CommandContext& context) {
  auto options = std::make_shared<RecordsExportOptions>();
  const Command command = add_command(
      records, context, "export",
      "Print every record as a line of JSON (db/records_format.md), or in another tuner's form; or "
      "(--space) one task's configs as a table that tuner study simulate searches",
      [options] { return run_export(*options); });
  add_job_file(command, options->scope.file, "Only the tasks of this job file");
  command
      .add_option("--task", options->scope.task,
                  "Only this task of FILE (with --space: or of the job), from 0")
      .not_negative()
      .type_name("N");
  command.add_option("--job", options->job, "Only the trials of this job").type_name("JOB");
  command.add_option("--op", options->scope.op, "Only this operator: conv2d, matmul ...").type_name("OP");
  command
      .add_option("--since", options->since,
                  "Only records that finished since: 2026-11-20, or 90m, 12h, 7d ago")
      .type_name("TIME");
  command.add_option("--format", options->format, "jsonl (all there is), autotvm, t4 (one task), csv")
      .type_name("FORMAT");
  command.add_flag("--own", options->own, "Only our own records, none imported from other tuners");
  command.add_flag("--foreign", options->foreign, "Only records imported from other tuners");
  command.add_flag(
      "--space", options->space,
      "One task as a recorded space: CSV with one row per config: knobs, time_ms, status, samples_ms");
  command.add_option("--hardware", options->hardware, "With --space: records of this machine only");
  add_target_option(command, options->scope.target);
  command
      .add_option("-o,--output", options->output, "File to write (compressed if *.gz); - is standard output")
      .type_name("PATH");
  command.add_flag("--json", options->json, "Say what was written as one line of JSON");
  add_db_option(command, options->db);
}

}  // namespace tuner::cli
