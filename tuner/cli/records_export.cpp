// tuner records export: every measured trial as a line (JSON, AutoTVM's log, CSV) or in a T4 document, or a
// task's configs as a recorded space.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "compiler_core/backend.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/base/output_file.h"
#include "db/exchange/export_file.h"
#include "db/exchange/text_output.h"
#include "templates/workload/workload.h"
#include "tuner/cli/records_commands.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/jobs/tasks.h"
#include "tuner/study/space_export.h"
#include "tuner/study/task_records.h"
#include "tuner/text/facts.h"

namespace tuner::cli {

namespace {

struct RecordsExportOptions {
  std::string db, job, file, target, hardware, op, since, format, output = "-";
  int task = -1;
  bool space = false, own = false, foreign = false, json = false;
};

Result<TaskRecords> records_asked_for(const RecordsExportOptions& options, const Store& store) {
  if (!options.job.empty()) return records_of_job(store, options.job, options.task, options.hardware);
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_tasks(options.file, options.target));
  const auto n = static_cast<int>(tasks.size());
  if (options.task < 0 && n > 1)
    return invalid_argument(options.file, " has ", n, " tasks; choose one: --task 0 to ", n - 1);
  if (options.task >= n)
    return invalid_argument("--task: found ", options.task, ", expected 0 to ", n - 1, ", the entries of ",
                            options.file);
  const CliTask& task = tasks[static_cast<size_t>(std::max(options.task, 0))];
  return records_of_task(store, {task.key, task.target_name, task.algorithms}, options.hardware);
}

// A recorded space, and on stderr how much of the space it is.
int run_export_space(const RecordsExportOptions& options) {
  if (options.job.empty() == options.file.empty())
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

// "2026-11-20", "2026-11-20T21:10:08Z", or "90m", "12h", "7d" before now.
Result<int64_t> time_of(const std::string& text) {
  char* end = nullptr;
  const double amount = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const double unit_s = unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86400 : 0;
  if (unit_s > 0 && amount >= 0 && end != text.c_str() && amount * unit_s < 1e10)
    return wall_time_us() - static_cast<int64_t>(amount * unit_s * 1e6);
  if (const std::optional<int64_t> us = tuner::time_from_text(text); us && !text.empty()) return *us;
  return invalid_argument("--since: found \"", text,
                          "\", expected 2026-11-20, 2026-11-20T21:10:08Z, 90m, 12h or 7d");
}

// Which tasks are asked for: those of the job file, of an operator, of a target.
Status choose_tasks(const RecordsExportOptions& options, ExchangeFilter& filter) {
  std::vector<CliTask> of_file;
  std::string target = options.target;
  if (!options.file.empty()) {
    ASSIGN_OR_RETURN(of_file, read_tasks(options.file, options.target));
    const auto n = static_cast<int>(of_file.size());
    if (options.task >= n)
      return invalid_argument("--task: found ", options.task, ", expected 0 to ", n - 1, ", the entries of ",
                              options.file);
    if (options.task >= 0) of_file = {of_file[static_cast<size_t>(options.task)]};
    target.clear();  // it stands in the tasks
  } else if (options.task >= 0) {
    return invalid_argument("--task chooses a task of FILE, which is not given");
  } else if (!target.empty()) {
    Result<Target> resolved = resolve_target(target);
    if (!resolved) return resolved.status().with_context("--target: ");
    target = resolved->name();
  }
  if (of_file.empty() && target.empty() && options.op.empty()) return Status::ok();
  struct Wanted {
    std::vector<std::pair<std::string, std::string>> tasks;
    std::string op, target;
  };
  auto wanted = std::make_shared<Wanted>();
  for (const CliTask& task : of_file) wanted->tasks.emplace_back(task.key, task.target_name);
  wanted->op = options.op;
  wanted->target = target;
  filter.task = [wanted](const JobRow::Task& task) {
    if (!wanted->target.empty() && task.target != wanted->target) return false;
    if (!wanted->tasks.empty() && std::find(wanted->tasks.begin(), wanted->tasks.end(),
                                            std::pair(task.workload_key, task.target)) == wanted->tasks.end())
      return false;
    if (wanted->op.empty()) return true;
    const Result<Workload> workload = workload_from_key(task.workload_key);
    return workload && workload->op_name() == wanted->op;
  };
  // The tasks of other tuners are in their words: an operator is looked for in them, a job file cannot name
  // them.
  const bool by_file = !of_file.empty();
  filter.foreign_task = [wanted, by_file](const ForeignRecord& record) {
    return !by_file && (wanted->target.empty() || record.target == wanted->target) &&
           (wanted->op.empty() || record.task.find(wanted->op) != std::string::npos);
  };
  return Status::ok();
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
  if (const Status s = check_output(options.output, {&options.file, 1}); !s) return report(s);
  if (options.space) return run_export_space(options);
  exchange::ExportOptions wanted{.path = options.output, .progress = {}};
  if (!options.format.empty()) {
    const std::optional<exchange::Format> format = exchange::format_from_name(options.format);
    if (!format)
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
    const Result<int64_t> since = time_of(options.since);
    if (!since) return report(since.status());
    filter.since_us = *since;
  }
  if (const Status chosen = choose_tasks(options, filter); !chosen) return report(chosen);
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
  add_job_file(command, options->file, "Only the tasks of this job file");
  command.add_option("--task", options->task, "Only this task of FILE (with --space: or of the job), from 0")
      .not_negative()
      .type_name("N");
  command.add_option("--job", options->job, "Only the trials of this job").type_name("JOB");
  command.add_option("--op", options->op, "Only this operator: conv2d, matmul ...").type_name("OP");
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
  add_target_option(command, options->target);
  command
      .add_option("-o,--output", options->output, "File to write (compressed if *.gz); - is standard output")
      .type_name("PATH");
  command.add_flag("--json", options->json, "Say what was written as one line of JSON");
  add_db_option(command, options->db);
}

}  // namespace tuner::cli
