// tuner query FILE: the config each task of a job file gets, how it is known, and what it rests on. Also for
// an operator given as words (--op), over gRPC (--daemon), and as a list of all that is tuned (--all).
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "compiler_core/backend.h"
#include "proto/convert.h"
#include "tuner/cli/command.h"
#include "tuner/cli/query_all.h"
#include "tuner/client/daemon_client.h"
#include "tuner/jobs/tasks.h"
#include "tuner/study/present.h"
#include "tuner/text/answer_text.h"
#include "tuner/text/facts.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {

namespace {

using nlohmann::json;

struct QueryOptions {
  std::vector<std::string> words;     // FILE, or NAME=VALUE of an operator
  std::string db, daemon, constants;  // constants: warm, cold; empty: as the file asks
  QueryAll filter;                    // op and target also of a single question
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
  CliTask task{.workload = entries[0].workload, .target = *std::move(target)};
  task.key = task.workload.key();
  task.target_name = task.target.name();
  task.algorithms = entries[0].algorithms;
  task.constants = constants_of(entries[0]);
  return std::vector<CliTask>{std::move(task)};
}

// Asks a database file, or a daemon.
class Asker {
 public:
  static Result<std::unique_ptr<Asker>> open(const QueryOptions& o, const std::string& again) {
    auto asker = std::make_unique<Asker>();
    if (!o.daemon.empty()) {
      ASSIGN_OR_RETURN(asker->client_, DaemonClient::connect({.daemon = o.daemon}));
      return asker;
    }
    ASSIGN_OR_RETURN(asker->store_, open_if_there(o.db));
    if (asker->store_ == nullptr) return not_found(o.db, ": there is no database yet. To tune: ", again);
    asker->resolver_ = std::make_unique<Resolver>(
        asker->store_.get(), ResolverOptions{.fix = again,
                                             .present = [](const Target& t) { return present_here(t); },
                                             .learn_if_missing = true,
                                             .count_outcomes = true});
    return asker;
  }

  Result<Answer> ask(const CliTask& task) const {
    if (resolver_ != nullptr)
      return resolver_->resolve(task.workload, task.target, task.algorithms, task.constants);
    ASSIGN_OR_RETURN(const v1::QueryReply reply,
                     client_->query({task.key, task.target_name, task.algorithms, 1, task.constants}));
    return from_proto(reply.answer());
  }

 private:
  std::optional<DaemonClient> client_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Resolver> resolver_;
};

int run_all(const QueryOptions& options) {
  if (!options.words.empty() || !options.daemon.empty())
    return report(invalid_argument("--all lists a database: expected no ",
                                   options.words.empty() ? "--daemon" : "file beside it"));
  const Result<std::unique_ptr<Store>> store = open_if_there(options.db);
  if (!store) return report(store.status());
  if (*store == nullptr)
    return report(not_found(options.db, ": there is no database yet. To tune: tuner submit FILE"));
  QueryAll filter = options.filter;
  if (options.json) filter.format = "jsonl";
  return query_all(**store, filter);
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
  const std::string again = command_line("submit " + shell_quoted(name));
  const Result<std::unique_ptr<Asker>> asker = Asker::open(options, again);
  if (!asker) return report(asker.status());

  int unsatisfied = 0;
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const CliTask& task : *tasks) {
    const Result<Answer> answer = (*asker)->ask(task);
    if (!answer) return report(answer.status());
    unsatisfied +=
        answer->kind == AnswerKind::kDefault || (options.exact && answer->kind != AnswerKind::kExact) ? 1 : 0;
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
      .add_option("--constants", options->constants,
                  "What the times of the answer mean: constants warm in the caches, or cold in memory (else "
                  "what the file asks for: \"measure\": {\"constants\": ...}, warm by default)")
      .one_of({"warm", "cold"});
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
