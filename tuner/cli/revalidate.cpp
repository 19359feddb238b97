// tuner revalidate: measures the fastest configs of stale tasks again, and lets a race decide anew.
//
// A task is one job of the search known-best: its old top configs and the default as new trials, checked and
// timed as always, then a race. So all that is kept, resumed or lost with a worker is the daemon's business;
// here are the order, the clock, and what is said.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "compiler_core/backend.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/base/statistics.h"
#include "tuner/cli/command.h"
#include "tuner/cli/interrupt.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/client/job_watch.h"
#include "tuner/client/progress_view.h"
#include "tuner/daemon/task_space.h"
#include "tuner/jobs/tasks.h"
#include "tuner/search/known_best.h"
#include "tuner/study/present.h"
#include "tuner/study/revalidate_plan.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"

namespace tuner::cli {
namespace {

using std::chrono::steady_clock;
// Before the end of the budget: cancelling, and the last results' way into the database.
constexpr double kWindUp_s = 4;
constexpr double kLeast_s = 4;  // a task is not begun with less left

struct Options {
  std::string file, op, target, db, daemon;
  double budget_s = 300;
  int top = 8;
  bool all = false, dry_run = false, json = false;
};

// What became of one task.
struct Verdict {
  std::string job_id;
  std::optional<TunedConfig> after;
  std::optional<double> old_config_now_ns;  // the old config under the present code; none: no right answer
  bool tied = false;                        // its race could not tell the old config from the winner
  bool finished = false;
  std::string error;
};

bool same_config(const TunedConfig& a, const TunedConfig& b) {
  return a.template_name == b.template_name && a.template_version == b.template_version &&
         a.config == b.config;
}

// Runs the task's job until it ends, `deadline`, or Ctrl-C.
Result<Verdict> measure(const DaemonClient& client, const RevalidateItem& item, const Options& options,
                        steady_clock::time_point deadline, ProgressView& view) {
  Verdict verdict;
  const JobRow job{.request_id = new_request_id(),
                   .tasks = {item.task},
                   .trials = options.top + 1,
                   .search = std::string(kKnownBestStrategy)};
  ASSIGN_OR_RETURN(const v1::SubmitReply reply, client.submit(job, /*fresh=*/true));
  verdict.job_id = reply.job_id();
  const std::unique_ptr<JobWatch> watch = client.watch(verdict.job_id, 0);
  while (true) {
    const JobWatch::Next next = watch->next(100);
    if (interrupted() || steady_clock::now() >= deadline) {
      static_cast<void>(
          client.cancel(verdict.job_id, kWindUp_s));  // the database keeps it cancelled or queued
      return verdict;
    }
    RETURN_IF_ERROR(client.worker_state());
    if (next.event) {
      view.show(*next.event);
      if (next.event->state() == v1::JOB_FAILED) verdict.error = next.event->message();
    } else if (next.ended) {
      RETURN_IF_ERROR(next.status);
      break;
    }
  }
  verdict.finished = true;
  ASSIGN_OR_RETURN(verdict.after, client.tuned(item.task));
  return verdict;
}

// What the job's rows say of the old config: its time in the race, else its trial's.
Status look_up(const Store& store, const RevalidateItem& item, Verdict& verdict) {
  ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> trials, store.trials(verdict.job_id));
  ASSIGN_OR_RETURN(const std::vector<RaceRow> races, store.races(verdict.job_id));
  for (const TrialWithRecord& t : trials) {
    if (t.trial.template_name != item.before.template_name || t.trial.config != item.before.config ||
        !t.record || t.record->outcome != Outcome::kOk)
      continue;
    verdict.old_config_now_ns = record_time_ns(*t.record);
    for (const RaceRow& race : races)
      for (const RaceFinalist& f : race.finalists)
        if (f.trial_id == t.trial.id) {
          verdict.tied = std::ranges::find(race.tie_set, f.trial_id) != race.tie_set.end();
          verdict.old_config_now_ns = race.winner_trial_id == f.trial_id ? race.time_ns : raced_time_ns(f);
        }
  }
  return Status::ok();
}

// Why there is no time of the old config under the present code.
std::string why_not_measured(const RevalidateItem& item) {
  const Result<TaskSpace> space = make_task_space(item.task);
  const Result<Config> config = config_from_text(item.before.config);
  if (!space || !config) return "is not measured again";
  const auto known = known_candidate(space->search, item.before.template_name, *config);
  if (!known)
    return str("has no template any more: this program has no ", item.before.template_name, " for it");
  if (!known->moved) return "gives no right answer any more";
  const ConfigSpace& part = *space->search.parts[static_cast<size_t>(known->candidate.template_index)].space;
  return str("is not valid any more; the nearest that is was measured in its place: ",
             part.at(known->candidate.config).to_text());
}

// "kept": the old config has won again; "replaced"; "failed": nothing was right; "unfinished".
std::string_view ending(const RevalidateItem& item, const Verdict& v) {
  if (!v.finished) return "unfinished";
  if (!v.after || !v.error.empty()) return "failed";
  return same_config(item.before, *v.after) ? "kept" : "replaced";
}

void print(const RevalidateItem& item, const Verdict& v) {
  const std::string_view end = ending(item, v);
  std::printf("%-10s %s on \"%s\"\n", std::string(end).c_str(), item.task.workload_key.c_str(),
              item.task.target.c_str());
  if (item.staleness.stale()) std::printf("  stale     %s\n", item.staleness.reason.c_str());
  std::printf("  before    %s  %s\n", format_time(item.before.time_ns).c_str(), item.before.config.c_str());
  if (end == "failed")
    std::printf("  now       no right answer: %s. Its job: %s; what went wrong: %s\n", v.error.c_str(),
                v.job_id.c_str(), command_line("records export --job " + v.job_id).c_str());
  if (end == "kept" || end == "replaced") {
    const TunedConfig& now = *v.after;
    if (end == "replaced")
      std::printf("  the same  %s\n", v.old_config_now_ns
                                          ? str("config takes ", format_time(*v.old_config_now_ns), " now",
                                                v.tied ? "; the race cannot tell the two apart" : "")
                                                .c_str()
                                          : why_not_measured(item).c_str());
    std::printf("  now       %s  %s  (trial %s, %s)\n",
                format_time(now.time_ns, now.time_low_ns, now.time_high_ns).c_str(),
                end == "kept" ? "the same config" : now.config.c_str(), now.trial_id.c_str(),
                now.race_id != 0 ? "raced" : "not raced");
  }
  std::fflush(stdout);
}

nlohmann::ordered_json to_json(const RevalidateItem& item, const Verdict& v) {
  nlohmann::ordered_json j{{"workload", item.task.workload_key},
                           {"target", item.task.target},
                           {"uses", item.task.uses},
                           {"stale", item.staleness.stale()},
                           {"stale_reason", item.staleness.reason},
                           {"ending", ending(item, v)},
                           {"job", v.job_id},
                           {"before", tuned_json(item.before, 0)},
                           {"after", nullptr},
                           {"old_config_now_ns", nullptr},
                           {"message", v.error}};
  if (v.after) j["after"] = tuned_json(*v.after, 0);
  if (v.old_config_now_ns) j["old_config_now_ns"] = *v.old_config_now_ns;
  j["tied"] = v.tied;
  return j;
}

Result<std::vector<JobRow::Task>> wanted_tasks(const Options& options, const Store* store) {
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

void print_plan(const RevalidatePlan& plan) {
  for (const RevalidateItem& item : plan.items)
    std::printf("%-8s %10s x %-3lld %s on \"%s\"%s%s\n", item.staleness.stale() ? "stale" : "current",
                format_time(item.before.time_ns).c_str(), static_cast<long long>(item.task.uses),
                item.task.workload_key.c_str(), item.task.target.c_str(),
                item.staleness.stale() ? "\n         " : "", item.staleness.reason.c_str());
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

// The plan of a database that is not here: every task of the file, as the daemon's Query answers it.
Result<RevalidatePlan> remote_plan(const DaemonClient& client, const std::vector<JobRow::Task>& tasks) {
  RevalidatePlan plan;
  for (const JobRow::Task& task : tasks) {
    ASSIGN_OR_RETURN(const std::optional<TunedConfig> tuned, client.tuned(task));
    if (tuned)
      plan.items.push_back({task, *tuned, staleness(*tuned, present_here(Target{}))});
    else
      ++plan.untuned;
  }
  return plan;
}

// The plan of the database that is here.
Result<RevalidatePlan> local_plan(const Store& store, const std::vector<JobRow::Task>& tasks,
                                  bool current_too) {
  std::map<std::string, Present> present;  // asking a GPU costs tenths of a second
  const auto present_of = [&](const std::string& target) {
    const auto known = present.find(target);
    return known != present.end() ? known->second
                                  : present.emplace(target, present_here(target)).first->second;
  };
  const auto measurable = [](const std::string& target) {
    const Result<Target> parsed = parse_target(target);
    return parsed && is_this_machine(*parsed);
  };
  return plan_revalidation(store, tasks,
                           {.current_too = current_too, .present = present_of, .measurable = measurable});
}

void tell_plan(const RevalidatePlan& plan, bool as_json) {
  if (!as_json) {
    print_plan(plan);
    if (plan.items.empty()) std::printf("nothing to measure again\n");
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RevalidateItem& item : plan.items) list.push_back(to_json(item, {}));
  std::printf("%s\n",
              pretty({{"tasks", list}, {"current", plan.current}, {"left", plan.items.size()}}).c_str());
}

// Works through a plan until it is done, the budget is used up, or Ctrl-C.
class Revalidation {
 public:
  // `store`: null when the database is elsewhere.
  Revalidation(const DaemonClient& client, const Store* store, const Options& options,
               steady_clock::time_point begin)
      : client_(client),
        store_(store),
        options_(options),
        begin_(begin),
        end_(begin + std::chrono::milliseconds(static_cast<int64_t>(1000 * options.budget_s))) {}

  // OK also when the budget ended it.
  Status run(const RevalidatePlan& plan) {
    for (const RevalidateItem& item : plan.items) {
      const double left_s = seconds_left();
      if (left_s < usual_s() || interrupted()) break;
      ProgressView view(1);
      view.say(str("task ", done_ + 1, " of ", plan.items.size(), ": ", item.task.workload_key, ", ",
                   static_cast<int64_t>(left_s), " s left"));
      const steady_clock::time_point item_begin = steady_clock::now();
      Result<Verdict> verdict = measure(client_, item, options_, end_ - seconds_of(kWindUp_s), view);
      view.finish();
      if (!verdict) return verdict.status();
      if (store_ != nullptr) RETURN_IF_ERROR(look_up(*store_, item, *verdict));
      if (verdict->finished) took_s_.push_back(seconds_since(item_begin));
      take(item, *verdict);
    }
    return Status::ok();
  }

  void tell(const RevalidatePlan& plan) const {
    const size_t left = plan.items.size() - done_;
    if (options_.json) {
      std::printf("%s\n", pretty({{"tasks", list_},
                                  {"current", plan.current},
                                  {"left", left},
                                  {"seconds", seconds_since(begin_)}})
                              .c_str());
      return;
    }
    std::string counts;
    for (const auto& [what, n] : endings_) counts += str(counts.empty() ? "" : ", ", n, " ", what);
    std::printf("%zu of %zu tasks measured again in %.0f s%s%s%s\n", done_, plan.items.size(),
                seconds_since(begin_), counts.empty() ? "" : ": ", counts.c_str(),
                left > 0 ? str("; ", left, " left: the same command goes on with them").c_str() : "");
  }

  bool succeeded() const { return !interrupted() && !endings_.contains("failed") && done_ > 0; }

 private:
  static steady_clock::duration seconds_of(double s) {
    return std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(s));
  }
  double seconds_left() const {
    return std::chrono::duration<double>(end_ - steady_clock::now()).count() - kWindUp_s;
  }
  // What a task takes: most of the median of those that are done.
  double usual_s() const {
    if (took_s_.empty()) return kLeast_s;
    return std::max(kLeast_s, 0.8 * median(took_s_));
  }
  void take(const RevalidateItem& item, const Verdict& verdict) {
    ++endings_[std::string(ending(item, verdict))];
    done_ += verdict.finished ? 1 : 0;
    if (options_.json)
      list_.push_back(to_json(item, verdict));
    else
      print(item, verdict);
  }

  const DaemonClient& client_;
  const Store* store_;
  const Options& options_;
  const steady_clock::time_point begin_, end_;
  nlohmann::ordered_json list_ = nlohmann::ordered_json::array();
  std::map<std::string, int> endings_;
  std::vector<double> took_s_;
  size_t done_ = 0;
};

int run(const Options& options) {
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

  Revalidation revalidation(**client, store.get(), options, begin);
  const Status status = revalidation.run(*plan);
  (*client)->stop_host("the revalidation is over");
  revalidation.tell(*plan);
  if (!status) return report(status);
  return revalidation.succeeded() ? kExitDone : kExitFailed;
}

}  // namespace

void add_revalidate_command(Command app, CommandContext& context) {
  auto options = std::make_shared<Options>();
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
        return run(*options);
      });
  command.add_option("FILE", options->file, "Job file: only its tasks; without, every task of the database");
  command.add_option("--op", options->op, "Only this operator, such as conv2d");
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
  command.add_option("--daemon", options->daemon,
                     "HOST:PORT, unix:/path or a credentials file; without it everything runs here");
}

}  // namespace tuner::cli
