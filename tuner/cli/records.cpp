// tuner records: export prints every measured trial as a line of JSON, import stores the results of a pack.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "tuner/cli/command.h"
#include "tuner/cli/facts.h"
#include "tuner/cli/import_results.h"
#include "tuner/cli/tasks.h"

namespace tuner::cli {

namespace {

struct Options {
  std::string db, job, output = "-";
};

struct ImportOptions {
  std::string db, file;
};

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdout) std::fclose(file);
  }
};

int run_export(const Options& options) {
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
                  "Print one line of JSON a measured trial: config, outcome, all samples, when, where",
                  [options] { return run_export(*options); });
  command->add_option("--job", options->job, "Only the trials of this job")->type_name("JOB");
  command->add_option("-o,--output", options->output, "File to write; - is standard output")
      ->type_name("PATH");
  add_db_option(*command, options->db);
  add_import_command(*records, context);
}

}  // namespace tuner::cli
