// tuner query FILE: the config each task of a job file gets, how it is known, and what it rests on. Also for
// an operator given as words (--op), over gRPC (--daemon), and as a list of all that is tuned (--all).
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "compiler_core/backend.h"
#include "tuner/answers/asker.h"
#include "tuner/answers/lock_update.h"
#include "tuner/answers/tuned_list.h"
#include "tuner/cli/command.h"
#include "tuner/jobs/locked_tasks.h"
#include "tuner/text/answer_text.h"
#include "tuner/text/facts.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {

namespace {

using nlohmann::json;

struct QueryOptions {
  std::vector<std::string> words;           // FILE, or NAME=VALUE of an operator
  std::string db, daemon, lock, constants;  // constants: warm, cold; empty: as the file asks
  TunedFilter filter;                       // op and target also of a single question
  bool all = false, json = false, exact = false;
};

// "1,64,56,56" -> [1, 64, 56, 56]; "true", "relu", "0.5" -> what a job file would have.
json value_of(const std::string& text) {
  if (text.find(',') != std::string::npos) {
    json list = json::array();
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      list.push_back(value_of(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    return list;
  }
  json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_discarded() || parsed.is_structured() ? json(text) : parsed;
}

// The tasks that are asked about, and in `name` what a `tuner submit` of them would be given.
Result<std::vector<CliTask>> tasks_asked(const QueryOptions& o, std::string& name) {
  if (o.filter.op.empty()) {
    if (o.words.size() != 1)
      return invalid_argument("expected one job file, or --op OPERATOR NAME=VALUE..., or --all, found ",
                              o.words.size(), " words. tuner query --help tells more");
    name = o.words[0];
    return read_tasks(name, o.filter.target);
  }
  name = "FILE";
  json job = {{"op", o.filter.op}};
  for (const std::string& word : o.words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return invalid_argument("expected NAME=VALUE as in a job file (data=1,64,56,56), found \"", word, "\"");
    json value = value_of(word.substr(equals + 1));
    // One operand alone is a list in a job file.
    if (word.substr(0, equals) == "constant" && value.is_string()) value = json::array({value});
    job[word.substr(0, equals)] = std::move(value);
  }
  ASSIGN_OR_RETURN(const std::vector<JobEntry> entries, parse_job_text(job.dump(), "--op " + o.filter.op));
  Result<Target> target = resolve_target(o.filter.target.empty() ? entries[0].target : o.filter.target);
  if (!target) return target.status().with_context("--target: ");
  RETURN_IF_ERROR(kernel_suits(entries[0].workload, *target).with_context("--target: "));
  CliTask task{.workload = entries[0].workload, .target = *std::move(target)};
  task.key = task.workload.key();
  task.target_name = task.target.name();
  task.algorithms = entries[0].algorithms;
  task.constants = constants_of(entries[0]);
  return std::vector<CliTask>{std::move(task)};
}

int run_all(const QueryOptions& options) {
  if (!options.words.empty() || !options.daemon.empty() || !options.lock.empty())
    return report(
        invalid_argument("--all lists a database: expected no ", !options.words.empty() ? "file beside it"
                                                                 : options.lock.empty() ? "--daemon"
                                                                                        : "--lock"));
  const Result<std::unique_ptr<Store>> store = open_if_there(options.db);
  if (!store) return report(store.status());
  if (*store == nullptr)
    return report(not_found(options.db, ": there is no database yet. To tune: tuner submit FILE"));
  TunedFilter filter = options.filter;
  if (options.json) filter.format = "jsonl";
  return report(print_tuned(**store, filter));
}

// Whether the answer is what was asked for; without --exact, whatever is better than the default config.
bool satisfies(const Answer& answer, bool exact) {
  if (!exact) return answer.kind != AnswerKind::kDefault;
  return answer.kind == AnswerKind::kExact || (answer.kind == AnswerKind::kLocked && answer.tuned);
}

int run_query(const QueryOptions& options) {
  if (options.all) return run_all(options);
  if (!options.filter.since.empty() || options.filter.stale || options.filter.format != "table")
    return report(invalid_argument("--since, --stale and --format belong to --all"));
  std::string name;
  Result<std::vector<CliTask>> tasks = tasks_asked(options, name);
  if (!tasks) return report(tasks.status());
  for (CliTask& task : *tasks)
    task.constants = constants_from_name(options.constants).value_or(task.constants);
  const Result<std::optional<AnswerLock>> lock = read_lock(options.lock);
  if (!lock) return report(lock.status());
  const std::string fix = lock_command({name}, options.lock, options.filter.target, options.constants);
  if (*lock)
    if (const Status locked = check_locked(**lock, *tasks, fix); !locked) return report(locked);
  const Result<std::unique_ptr<Asker>> asker =
      Asker::open({.db = options.db,
                   .daemon = options.daemon,
                   .tune = command_line("submit " + shell_quoted(name)),
                   .database_may_miss = lock->has_value(),
                   .lock = *lock ? &**lock : nullptr,
                   .lock_fix = fix});
  if (!asker) return report(asker.status());

  int unsatisfied = 0;
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const CliTask& task : *tasks) {
    const Result<Answer> answer = (*asker)->ask(task);
    if (!answer) return report(answer.status());
    unsatisfied += satisfies(*answer, options.exact) ? 0 : 1;
    if (options.json)
      document.push_back(answer_json(*answer, task.workload));
    else
      std::printf("%s", answer_text(*answer, task.workload, terminal_width(STDOUT_FILENO)).c_str());
    if (!answer->note.empty()) std::fprintf(stderr, "tuner: %s\n", with_commands(answer->note).c_str());
  }
  if (options.json) std::printf("%s\n", pretty(tasks->size() == 1 ? document[0] : document).c_str());
  if (unsatisfied > 0 && tasks->size() > 1)
    std::fprintf(stderr, "tuner: %d of %zu tasks %s\n", unsatisfied, tasks->size(),
                 options.exact ? "were not tuned themselves" : "get their default config");
  return unsatisfied > 0 ? kExitFailed : kExitDone;
}

}  // namespace

void add_query_command(Command app, CommandContext& context) {
  auto options = std::make_shared<QueryOptions>();
  const Command command = add_command(
      app, context, "query", "Print the config a workload gets, how it is known, and what it rests on",
      [options] { return run_query(*options); });
  add_job_file(command, options->words,
               "Job file; - is standard input. With --op: NAME=VALUE as in a job file, e.g. --op matmul "
               "a=64,128 b=128,256");
  add_db_option(command, options->db);
  add_target_option(command, options->filter.target);
  command
      .add_option("--op", options->filter.op,
                  "Ask about this operator without a file; with --all: list only this operator")
      .type_name("OP");
  command
      .add_option(
          "--constants", options->constants,
          "Whether times are with constants warm in the caches or cold in memory. Without it: what the "
          "file asks for (\"measure\": {\"constants\": ...}), else warm")
      .one_of({"warm", "cold"});
  add_lock_option(command, options->lock);
  add_daemon_option(command, options->daemon, ": asks that daemon instead of a file");
  command.add_flag("--exact", options->exact,
                   "Exit 1 unless every task itself was tuned. Without this option: unless "
                   "every task has a better answer than its default config");
  command.add_flag("--all", options->all,
                   "List every tuned task; --op, --target, --since and --stale filter");
  command.add_option("--since", options->filter.since,
                     "With --all: only tasks measured since this day (UTC), such as 2026-11-01");
  command.add_flag("--stale", options->filter.stale,
                   "With --all: only tasks measured with another compiler, template or machine than today's");
  command.add_option("--format", options->filter.format, "With --all: table, jsonl or csv")
      .one_of({"table", "jsonl", "csv"});
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
