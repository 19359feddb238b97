// tuner revalidate: measures the fastest configs of stale tasks again, and lets a race decide anew.
//
// What is done stands in tuner/revalidate; here is what is said.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "compiler_core/backend.h"
#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/command_line/interrupt.h"
#include "tuner/jobs/tasks.h"
#include "tuner/revalidate/revalidation.h"
#include "tuner/revalidate/verdict_text.h"
#include "tuner/study/revalidate_plan.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {
namespace {

using std::chrono::steady_clock;

struct RevalidateOptions {
  std::string file, op, target, db, daemon;
  double budget_s = 300;
  int top = 8;
  bool all = false, dry_run = false, json = false;
};

Result<std::vector<JobRow::Task>> wanted_tasks(const RevalidateOptions& options, const Store* store) {
  std::vector<JobRow::Task> tasks;
  if (!options.file.empty()) {
    ASSIGN_OR_RETURN(const std::vector<CliTask> read, read_tasks(options.file, options.target));
    for (const CliTask& t : read) tasks.push_back({t.key, t.target_name, t.algorithms});
  } else {
    ASSIGN_OR_RETURN(tasks, store->tasks());
    std::string target = options.target;
    if (!target.empty()) {
      ASSIGN_OR_RETURN(const Target parsed, resolve_target(target));
      target = parsed.name();
    }
    std::erase_if(tasks, [&](const JobRow::Task& t) { return !target.empty() && t.target != target; });
  }
  std::erase_if(tasks, [&](const JobRow::Task& t) {
    return !options.op.empty() && !t.workload_key.starts_with(str("v1 ", options.op, " "));
  });
  return tasks;
}

// What is left of a terminal's line beside the columns.
std::string task_on_line(const JobRow::Task& task) {
  constexpr int kColumns = 26;
  const int width = terminal_width(STDOUT_FILENO);
  return shortened(str(task.workload_key, " on \"", task.target, "\""),
                   width > 0 ? std::max(width - kColumns, kColumns) : 0);
}

void print_plan(const RevalidatePlan& plan) {
  for (const RevalidateItem& item : plan.items)
    std::printf("%-8s %10s x %-3lld %s%s%s\n", item.staleness.stale() ? "stale" : "current",
                format_time(item.before.time_ns).c_str(), static_cast<long long>(item.task.uses),
                task_on_line(item.task).c_str(), item.staleness.stale() ? "\n         " : "",
                item.staleness.reason.c_str());
}

void say_left_out(const RevalidatePlan& plan) {
  const auto say = [](int64_t n, const char* what) {
    if (n > 0)
      std::fprintf(stderr, "tuner: %lld task%s left out: %s\n", static_cast<long long>(n), n == 1 ? "" : "s",
                   with_commands(what).c_str());
  };
  say(plan.current, "measured under the present compiler, templates and device (--all takes them too)");
  say(plan.elsewhere, "of other machines; run this there, or with --daemon");
  say(plan.untuned, "without a right answer as yet; tuner submit tunes them");
}

void tell_plan(const RevalidatePlan& plan, bool as_json) {
  if (!as_json) {
    print_plan(plan);
    if (plan.items.empty()) std::printf("nothing to measure again\n");
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RevalidateItem& item : plan.items) list.push_back(verdict_json(item, {}));
  std::printf("%s\n",
              pretty({{"tasks", list}, {"current", plan.current}, {"left", plan.items.size()}}).c_str());
}

void tell_end(const Revalidation& r, const RevalidatePlan& plan, const nlohmann::ordered_json* list) {
  const size_t left = plan.items.size() - r.done();
  if (list != nullptr) {
    std::printf(
        "%s\n",
        pretty({{"tasks", *list}, {"current", plan.current}, {"left", left}, {"seconds", r.seconds()}})
            .c_str());
    return;
  }
  std::string counts;
  for (const auto& [what, n] : r.endings()) counts += str(counts.empty() ? "" : ", ", n, " ", what);
  std::printf("%zu of %zu tasks measured again in %.0f s%s%s%s\n", r.done(), plan.items.size(), r.seconds(),
              counts.empty() ? "" : ": ", counts.c_str(),
              left > 0 ? str("; ", left, " left: the same command goes on with them").c_str() : "");
}

int run_revalidate(const RevalidateOptions& options) {
  const bool remote = !options.daemon.empty();
  if (remote && options.file.empty())
    return report(invalid_argument("with --daemon a job FILE says which tasks; found none"));
  const steady_clock::time_point begin = steady_clock::now();
  std::unique_ptr<Store> store;
  if (!remote) {
    Result<std::unique_ptr<Store>> opened = Store::open(options.db, Store::Mode::kRead);
    if (!opened) return report(opened.status());
    store = *std::move(opened);
  }
  const Result<std::vector<JobRow::Task>> tasks = wanted_tasks(options, store.get());
  if (!tasks) return report(tasks.status());

  // A daemon elsewhere makes the plan; here one is started when there is something to measure.
  const ConnectOptions where{.daemon = options.daemon, .db = options.db, .own_worker = !remote};
  std::optional<Result<DaemonClient>> client;
  if (remote) {
    client = DaemonClient::connect(where);
    if (!*client) return report(client->status());
  }
  const Result<RevalidatePlan> plan =
      remote ? remote_plan(**client, *tasks) : local_plan(*store, *tasks, options.all);
  if (!plan) return report(plan.status());
  say_left_out(*plan);
  if (options.dry_run || plan->items.empty()) {
    tell_plan(*plan, options.json);
    return kExitDone;
  }
  if (!remote) client = DaemonClient::connect(where);
  if (!*client) return report(client->status());

  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const auto tell = [&](const RevalidateItem& item, const RevalidateVerdict& verdict) {
    if (options.json) return list.push_back(verdict_json(item, verdict));
    std::fputs(verdict_text(item, verdict).c_str(), stdout);
    std::fflush(stdout);
  };
  Revalidation revalidation(**client, store.get(),
                            {.top = options.top,
                             .begin = begin,
                             .budget_s = options.budget_s,
                             .interrupted = interrupted,
                             .verdict = tell});
  const Status status = revalidation.run(*plan);
  (*client)->stop_host("the revalidation is over");
  tell_end(revalidation, *plan, options.json ? &list : nullptr);
  if (!status) return report(status);
  return revalidation.succeeded() ? kExitDone : kExitFailed;
}

}  // namespace

void add_revalidate_command(Command app, CommandContext& context) {
  auto options = std::make_shared<RevalidateOptions>();
  const Command command = add_command(
      app, context, "revalidate",
      "Measure stale tuned configs again: those found under another compiler, template version, device or\n"
      "harness. The fastest of each task become new trials, are checked, and race; the winner is the new\n"
      "answer. Nothing is deleted. The largest expected loss (time x uses) comes first.\n"
      "  tuner revalidate --budget 5m\n"
      "  tuner revalidate --op conv2d --dry-run",
      [options, &context] {
        log_to_stderr(context.verbose > 0 ? spdlog::level::info : spdlog::level::err);
        catch_interrupts();
        return run_revalidate(*options);
      });
  add_job_file(command, options->file, "Job file: only its tasks; without, every task of the database");
  command.add_option("--op", options->op, "Only this operator, such as conv2d").type_name("OP");
  add_target_option(command, options->target);
  command
      .add_option("--budget", options->budget_s,
                  "Seconds (or 90s, 5m, 1h) all of it may take, builds included")
      .as_duration()
      .in_range(1.0, 1e7)
      .show_default();
  command.add_option("--top", options->top, "How many of a task's fastest configs are measured again")
      .in_range(1, 64)
      .show_default();
  command.add_flag("--all", options->all, "Tasks that are not stale too, after the others");
  command.add_flag("--dry-run", options->dry_run, "Only say what would be measured, in which order");
  add_db_option(command, options->db);
  add_json_option(command, options->json);
  add_daemon_option(command, options->daemon, "; without it everything runs here");
}

}  // namespace tuner::cli
