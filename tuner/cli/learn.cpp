// tuner learn: what the records of a database teach about shapes that were never tuned, learned anew and
// stored in it. A daemon does so after each job; this is for databases that were imported or merged.
#include <cstdio>
#include <memory>
#include <set>

#include "db/learning/knowledge.h"
#include "tuner/cli/command.h"

namespace tuner::cli {

namespace {

struct LearnOptions {
  std::string db, op, target;
};

int run_learn(const LearnOptions& options) {
  std::string wanted = options.target;
  if (!wanted.empty()) {
    const Result<Target> parsed = parse_target(wanted);
    if (!parsed) return report(parsed.status().with_context("--target: "));
    wanted = parsed->name();
  }
  {
    // A database is not made by asking it.
    const Result<std::unique_ptr<Store>> there = Store::open(options.db, Store::Mode::kRead);
    if (!there && there.status().code() == StatusCode::kNotFound) return report(there.status());
  }
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kWrite);
  if (!store) return report(with_way_to_write(store.status(), options.db));
  const Result<std::vector<JobRow::Task>> tasks = (*store)->tasks();
  if (!tasks) return report(tasks.status());
  std::set<std::pair<std::string, std::string>> subjects;
  for (const JobRow::Task& task : *tasks) {
    const Result<Workload> workload = workload_from_key(task.workload_key);
    if (workload && (options.op.empty() || workload->op_name() == options.op) &&
        (wanted.empty() || task.target == wanted))
      subjects.emplace(workload->op_name(), task.target);
  }
  for (const auto& [op, target] : subjects) {
    const Result<bool> learned = learn_and_store(**store, op, target);
    if (!learned) return report(learned.status());

    std::printf("%s on \"%s\": %s\n", op.c_str(), target.c_str(),
                *learned ? "learned" : "nothing new, or too few shapes");
  }
  if (subjects.empty()) return report(not_found(options.db, ": no task matches"));
  return kExitDone;
}

}  // namespace

void add_learn_command(Command app, CommandContext& context) {
  auto options = std::make_shared<LearnOptions>();
  const Command command = add_command(
      app, context, "learn", "Learn from the records what to answer for shapes that were never tuned",
      [options] { return run_learn(*options); });
  add_db_option(command, options->db);
  command.add_option("--op", options->op, "Only this operator").type_name("OP");
  command.add_option("--target", options->target, "Only this target").type_name("TARGET");
}

}  // namespace tuner::cli
