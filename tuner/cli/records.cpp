// tuner records: export prints every measured trial as a line of JSON, or a task's configs as a recorded
// space; import stores the results of a pack.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/cli/facts.h"
#include "tuner/cli/import_results.h"
#include "tuner/cli/space_export.h"
#include "tuner/cli/task_records.h"
#include "tuner/cli/tasks.h"
#include "tuner/daemon/task_space.h"

namespace tuner::cli {

namespace {

struct Options {
  std::string db, job, file, target, hardware, output = "-";
  int task = -1;
  bool space = false;
};

struct ImportOptions {
  std::string db, file;
};

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdout) std::fclose(file);
  }
};

Result<TaskRecords> records_asked_for(const Options& options, const Store& store) {
  if (!options.job.empty()) return records_of_job(store, options.job, options.task, options.hardware);
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_tasks(options.file, options.target));
  const auto n = static_cast<int>(tasks.size());
  if (options.task < 0 && n > 1)
    return invalid_argument(options.file, " has ", n, " tasks; say which: --task 0 to ", n - 1);
  if (options.task >= n)
    return invalid_argument("--task: found ", options.task, ", expected 0 to ", n - 1, ", the entries of ",
                            options.file);
  const CliTask& task = tasks[static_cast<size_t>(std::max(options.task, 0))];
  return records_of_task(store, {task.key, task.target_name, task.algorithms}, options.hardware);
}

// A recorded space, and on stderr how much of the space it is.
int run_export_space(const Options& options) {
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
  if (const Status written = write_text(options.output, space_csv(*records)); !written)
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

int run_export(const Options& options) {
  if (options.space) return run_export_space(options);
  if (!options.file.empty() || options.task >= 0 || !options.target.empty())
    return report(
        invalid_argument("FILE, --task and --target choose the task of --space; lines of JSON are of "
                         "all trials or of a --job"));
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) return report(store.status());
  if (!options.job.empty())
    if (const Result<JobRow> job = (*store)->job(options.job); !job) return report(job.status());
  const bool to_stdout = options.output == "-";
  const std::unique_ptr<std::FILE, CloseFile> out(to_stdout ? stdout
                                                            : std::fopen(options.output.c_str(), "w"));
  if (out == nullptr)
    return report(invalid_argument(options.output, ": cannot be written: ", std::strerror(errno)));
  int64_t lines = 0;
  bool written = true;
  const Status status = (*store)->for_each_record(options.job, [&](const TrialWithRecord& trial) {
    written = std::fprintf(out.get(), "%s\n", one_line(record_json(trial)).c_str()) >= 0;
    ++lines;
    return written;
  });
  if (!status) return report(status);
  if (!written || std::fflush(out.get()) != 0)
    return report(failed(options.output, ": ", std::strerror(errno)));
  if (!to_stdout)
    std::fprintf(stderr, "%s records written to %s\n", std::to_string(lines).c_str(), options.output.c_str());
  return kExitDone;
}

int run_import(const ImportOptions& options) {
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kWrite);
  if (!store) return report(store.status());
  const Result<std::vector<ImportReport>> imported = import_results(options.file, **store);
  if (!imported) return report(imported.status());
  bool skipped = false;
  for (const ImportReport& r : *imported) {
    std::printf("job %s: %lld new trials, %lld new records, %lld known\n", r.job_id.c_str(),
                static_cast<long long>(r.trials), static_cast<long long>(r.records),
                static_cast<long long>(r.known));
    for (const std::string& why : r.skipped)
      std::fprintf(stderr, "tuner: %s: skipped %s\n", options.file.c_str(), why.c_str());
    skipped = skipped || !r.skipped.empty();
  }
  return skipped ? kExitFailed : kExitDone;
}

void add_import_command(CLI::App& records, CommandContext& context) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = add_command(records, context, "import",
                                  "Store what runner run-pack measured; the same file again changes nothing",
                                  [options] { return run_import(*options); });
  command->add_option("FILE", options->file, "Results of run-pack, a line of JSON each")->required();
  add_db_option(*command, options->db);
}

}  // namespace

void add_records_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* records = app.add_subcommand("records", "Measure records of a database");
  records->require_subcommand(1);
  CLI::App* command =
      add_command(*records, context, "export",
                  "Print one line of JSON a measured trial: config, outcome, all samples, when, where; or "
                  "(--space) one task's configs as a table that tuner simulate searches",
                  [options] { return run_export(*options); });
  command->add_option("FILE", options->file,
                      "With --space: job file whose task is meant; all its jobs count");
  command->add_option("--job", options->job, "Only the trials of this job")->type_name("JOB");
  command->add_flag("--space", options->space,
                    "One task as a recorded space: CSV, a row a config, knobs, time_ms, status, samples_ms");
  command->add_option("--task", options->task, "With --space: which task of the job or file, from 0")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command->add_option("--hardware", options->hardware, "With --space: records of this machine only");
  add_target_option(*command, options->target);
  command
      ->add_option("-o,--output", options->output, "File to write (compressed if *.gz); - is standard output")
      ->type_name("PATH");
  add_db_option(*command, options->db);
  add_import_command(*records, context);
}

}  // namespace tuner::cli
