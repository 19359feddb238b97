// tuner records prune: exports a database, then removes the records on which no answer rests.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "compiler_core/base/output_file.h"
#include "db/exchange/export_file.h"
#include "db/prune.h"
#include "tuner/cli/log.h"
#include "tuner/cli/records_commands.h"
#include "tuner/client/daemon_client.h"
#include "tuner/jobs/record_scope.h"
#include "tuner/text/facts.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {

namespace {

struct RecordsPruneOptions {
  std::string db, output, older_than;
  int64_t keep = 100;
  bool dry_run = false, json = false;
};

struct TaskPruned {
  JobRow::Task task;
  PruneCount count;
};

Result<PruneRules> rules_of(const RecordsPruneOptions& options, const Store& store) {
  PruneRules rules{.keep = options.keep};
  if (!options.older_than.empty()) {
    ASSIGN_OR_RETURN(rules.finished_before_us, since_from_text(options.older_than));
  }
  ASSIGN_OR_RETURN(rules.until_record_id, store.last_record_id());
  return rules;
}

Result<std::vector<JobRow::Task>> tasks_of(const Store& store) {
  ASSIGN_OR_RETURN(std::vector<JobRow::Task> tasks, store.tasks(Constants::kWarm));
  ASSIGN_OR_RETURN(const std::vector<JobRow::Task> cold, store.tasks(Constants::kCold));
  tasks.insert(tasks.end(), cold.begin(), cold.end());
  return tasks;
}

// A file of before holds what an earlier pruning removed.
Status check_new_file(const RecordsPruneOptions& options) {
  if (options.output.empty() || options.output == "-")
    return invalid_argument("-o: expected a file for the export, found ",
                            options.output.empty() ? "none" : "-",
                            ". Give a new file, such as -o records.jsonl.gz, or --dry-run");
  std::error_code error;
  if (std::filesystem::exists(options.output, error))
    return invalid_argument("-o: ", options.output,
                            " is there already, and may be the only copy of records that "
                            "were pruned before. Give a new file");
  return check_output(options.output);
}

Result<int64_t> export_all(const RecordsPruneOptions& options, const Store& store) {
  RowProgress progress(options.output);
  exchange::ExportOptions wanted{.path = options.output, .progress = [&](int64_t lines) { progress(lines); }};
  ASSIGN_OR_RETURN(const exchange::ExportReport done, exchange::export_file(store, wanted));
  if (done.damaged > 0)
    return failed(options.db, ": nothing was removed, because ", done.damaged,
                  " rows are damaged: ", done.why.front());
  return done.lines;
}

Result<std::vector<TaskPruned>> prune_all(const RecordsPruneOptions& options,
                                          const std::vector<JobRow::Task>& tasks, const PruneRules& rules) {
  ASSIGN_OR_RETURN(const DaemonClient client, DaemonClient::connect({.daemon = "", .db = options.db}));
  RowProgress progress("prune", "records removed");
  int64_t removed = 0;
  std::vector<TaskPruned> out;
  for (const JobRow::Task& task : tasks) {
    PruneCount& sum = out.emplace_back(TaskPruned{task, {}}).count;
    for (bool more = true; more;) {
      ASSIGN_OR_RETURN(const PruneCount part, client.prune(task, rules));
      sum.kept = 0;  // each part says what stays of all
      sum += part;
      more = part.more;
      progress(removed += part.records);
    }
  }
  client.stop_host("records prune is done");
  return out;
}

Result<std::vector<TaskPruned>> count_all(const Store& store, const std::vector<JobRow::Task>& tasks,
                                          const PruneRules& rules) {
  std::vector<TaskPruned> out;
  for (const JobRow::Task& task : tasks) {
    out.push_back({task, {}});
    ASSIGN_OR_RETURN(out.back().count, store.prunable(task, rules));
  }
  return out;
}

PruneCount sum_of(const std::vector<TaskPruned>& tasks) {
  PruneCount all;
  for (const TaskPruned& t : tasks) all += t.count;
  return all;
}

void print_pruned(const RecordsPruneOptions& options, int64_t exported,
                  const std::vector<TaskPruned>& tasks) {
  const char* const verb = options.dry_run ? "would remove" : "removed";
  for (const auto& [task, count] : tasks) {
    if (count.records == 0) continue;
    const std::string line =
        str(verb, " ", count.records, " of ", count.records + count.kept, " records: ", task.workload_key,
            "  on  ", task.target, task.constants == Constants::kCold ? "  constants cold" : "");
    std::printf("%s\n", on_a_line(line).c_str());
  }
  const PruneCount all = sum_of(tasks);
  const std::string sum = str(verb, " ", all.records, " records of ", all.trials, " trials; ", all.kept);
  std::printf("%s records stay\n", sum.c_str());
  if (!options.dry_run)
    std::printf("%s holds all of before: %lld lines. tuner records import brings them back\n",
                options.output.c_str(), static_cast<long long>(exported));
}

void print_pruned_json(const RecordsPruneOptions& options, int64_t exported,
                       const std::vector<TaskPruned>& tasks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [task, count] : tasks)
    list.push_back({{"workload", task.workload_key},
                    {"target", task.target},
                    {"constants", constants_name(task.constants)},
                    {"removed", count.records},
                    {"trials", count.trials},
                    {"kept", count.kept},
                    {"run_s", count.run_s}});
  const PruneCount all = sum_of(tasks);
  const nlohmann::ordered_json facts{{"db", options.db},         {"dry_run", options.dry_run},
                                     {"export", options.output}, {"lines", exported},
                                     {"removed", all.records},   {"trials", all.trials},
                                     {"kept", all.kept},         {"tasks", std::move(list)}};
  std::printf("%s\n", pretty(facts).c_str());
}

int run_records_prune(const RecordsPruneOptions& options) {
  if (!options.dry_run)
    if (const Status fresh = check_new_file(options); !fresh) return report(fresh);
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) return report(store.status());
  const Result<PruneRules> rules = rules_of(options, **store);
  if (!rules) return report(rules.status());
  const Result<std::vector<JobRow::Task>> tasks = tasks_of(**store);
  if (!tasks) return report(tasks.status());
  int64_t exported = 0;
  if (!options.dry_run) {
    const Result<int64_t> lines = export_all(options, **store);
    if (!lines) return report(lines.status());
    exported = *lines;
  }
  const Result<std::vector<TaskPruned>> pruned =
      options.dry_run ? count_all(**store, *tasks, *rules) : prune_all(options, *tasks, *rules);
  if (!pruned) return report(pruned.status());
  (options.json ? print_pruned_json : print_pruned)(options, exported, *pruned);
  return kExitDone;
}

}  // namespace

void add_records_prune(Command records, CommandContext& context) {
  auto options = std::make_shared<RecordsPruneOptions>();
  const Command command =
      add_command(records, context, "prune",
                  "Export all records, then remove those on which no answer rests. Races, their trials, "
                  "default configs and "
                  "the fastest trials of each template and environment stay, and so does every trial of a "
                  "job that has not "
                  "ended. Also beside a running daemon",
                  [options, &context] {
                    log_to_stderr(context.verbose > 0 ? spdlog::level::info : spdlog::level::err);
                    return run_records_prune(*options);
                  });
  command
      .add_option("--keep", options->keep,
                  "The fastest so many trials per task, template and environment stay")
      .in_range(1, 1'000'000)
      .type_name("N")
      .show_default();
  command
      .add_option("--older-than", options->older_than,
                  "Only records that finished before: 2026-11-20, or 90m, 12h, 30d ago")
      .type_name("TIME");
  command
      .add_option("-o,--output", options->output,
                  "New file for the export (compressed if *.gz); it is on disk before anything is removed")
      .type_name("PATH");
  command.add_flag("--dry-run", options->dry_run, "Count what would be removed; write nothing");
  add_json_option(command, options->json);
  add_db_option(command, options->db);
}

}  // namespace tuner::cli
