// tuner submit FILE: tunes every workload of a job file and says what came out.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "compiler_core/codegen/compile.h"
#include "proto/convert.h"
#include "tuner/cli/command.h"
#include "tuner/cli/facts.h"
#include "tuner/cli/format.h"
#include "tuner/cli/hint.h"
#include "tuner/cli/interrupt.h"
#include "tuner/cli/job_file.h"
#include "tuner/cli/job_groups.h"
#include "tuner/cli/job_watch.h"
#include "tuner/cli/log.h"
#include "tuner/cli/progress_view.h"
#include "tuner/cli/space_text.h"
#include "tuner/cli/tasks.h"
#include "tuner/daemon/connection.h"
#include "tuner/daemon/grpc_status.h"
#include "tuner/search/search_strategy.h"

namespace tuner::cli {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds kReconnectFor{60};
constexpr double kLearnFor = 15;  // seconds after the last job, at most
constexpr std::chrono::seconds kCallLimit{60};

struct SubmitOptions {
  std::string file, db, daemon, target, search;
  int trials = 0;
  uint64_t seed = 0;
  bool every_config = false, seed_given = false, fresh = false, json = false;
  bool details = false;            // also what few people ask for
  double stop_below_percent = -1;  // negative: the file's
  double time_limit_s = -1;        // negative: the file's
};

using Group = JobGroup;

struct GroupOutcome {  // of one group
  std::string job_id;
  bool already_finished = false, interrupted = false, hosted = false;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  std::string message;
  int64_t trials_before = -1, trials_after = 0, first_done = 0;
  double wall_s = 0;
  v1::Progress progress;  // the latest
  // Of the results that came while this command looked on: the rate without start and end.
  std::optional<steady_clock::time_point> first_result, last_result;
  std::vector<std::optional<v1::TunedConfig>> tuned;  // one a task
};

std::string new_request_id() {
  std::random_device random;
  return str(std::hex, random(), random(), random(), random());
}

// --trials all: a sweep. Every valid config, with all its samples, however well its time is known before: a
// sweep is there to be searched again later (tuner simulate), where a bound of a slow config is not enough.
Status make_sweep(const CliTask& task, JobRow& job) {
  constexpr int kSamples = 9;
  ASSIGN_OR_RETURN(const uint64_t size, space_size(task));
  if (size > kMaxTrialsPerTask)
    return invalid_argument("--trials all: ", task.key, " has ", size, " valid configs, expected at most ",
                            kMaxTrialsPerTask, "; give a number of trials, or a smaller shape");
  job.trials = static_cast<int>(size);
  job.stop.below = 0;
  job.options.cut_factor = -1;
  job.options.precision = 0;
  job.options.repeats = std::max(job.options.repeats, kSamples);
  return Status::ok();
}

Result<std::vector<Group>> groups_of(const SubmitOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<JobEntry> entries, read_job_file(options.file));
  std::vector<Group> groups;
  for (const JobEntry& entry : entries) {
    Result<Target> target = resolve_target(options.target.empty() ? entry.target : options.target);
    if (!target)
      return target.status().with_context(options.target.empty() ? options.file + ": target: "
                                                                 : "--target: ");
    JobRow job;
    job.trials = options.trials > 0 ? options.trials : entry.trials;
    job.search = !options.search.empty() ? options.search : options.every_config ? "grid" : entry.search;
    job.seed = options.seed_given ? options.seed : entry.seed;
    job.options = entry.measure;
    job.stop = entry.stop;
    if (options.stop_below_percent >= 0) job.stop.below = options.stop_below_percent / 100;
    if (options.time_limit_s >= 0) job.stop.time_limit_s = options.time_limit_s;
    const JobRow::Task task{entry.workload.key(), target->name(), entry.algorithms, entry.uses,
                            constants_of(entry)};
    if (options.every_config)
      RETURN_IF_ERROR(
          make_sweep({entry.workload, *target, task.workload_key, task.target, task.algorithms}, job));
    add_task(groups, job, task, entry.workload);
  }
  for (Group& group : groups) group.job.request_id = new_request_id();
  return groups;
}

Result<std::optional<v1::TunedConfig>> query(Connection& connection, const JobRow::Task& task) {
  v1::QueryRequest request;
  to_proto(task, request.mutable_task());
  v1::QueryReply reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
  RETURN_IF_ERROR(from_grpc(connection.jobs->Query(&context, request, &reply), connection.name));
  return reply.found() ? std::optional(reply.tuned()) : std::nullopt;
}

// How one connection's share of the job went.
struct Turn {
  Status status;
  bool interrupted = false;
};

// Submits over this connection and follows the job until it ends, the connection breaks or the user stops it.
Turn follow(Connection& connection, const Group& group, const SubmitOptions& options, ProgressView& view,
            int64_t& after_seq, GroupOutcome& out) {
  v1::SubmitRequest request;
  to_proto(group.job, options.fresh, &request);
  v1::SubmitReply reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
  if (Status s = from_grpc(connection.jobs->Submit(&context, request, &reply), connection.name); !s)
    return {s};
  const bool first_turn = out.job_id.empty();
  out.job_id = reply.job_id();
  out.already_finished = reply.already_finished();
  if (reply.already_finished()) {
    out.state = v1::FINISHED;
  } else {
    if (first_turn) {
      const char* where = connection.host ? "on this machine" : "by ";
      view.say(str("job ", out.job_id, reply.continued() ? " continues " : " runs ", where,
                   connection.host ? "" : connection.name, ": ", group.job.tasks.size(),
                   group.job.tasks.size() == 1 ? " task, " : " tasks, ", group.job.trials, " trials each, ",
                   group.job.search, ", seed ", group.job.seed));
      // A continued job has a history of its own; only what comes now is news.
      if (reply.continued()) after_seq = -1;
    }
    JobWatch watch(connection, out.job_id, std::max<int64_t>(after_seq, 0));
    const bool skip_history = after_seq < 0;
    bool live = !skip_history;
    while (true) {
      JobWatch::Next next = watch.next(100);
      if (interrupted()) return {Status::ok(), true};
      if (connection.host)
        if (Status worker = connection.host->worker_state(); !worker) return {worker};
      if (next.event) {
        after_seq = std::max(after_seq, next.event->seq());
        if (next.event->has_progress()) {
          out.progress = next.event->progress();
          live = true;
          if (out.trials_before < 0) out.trials_before = next.event->progress().trials_done();
          const int64_t done = next.event->progress().trials_done();
          if (done > out.trials_before) {
            out.last_result = steady_clock::now();
            if (!out.first_result) {
              out.first_result = out.last_result;
              out.first_done = done;
            }
          }
          out.trials_after = done;
        }
        if (live || next.event->state() != v1::JOB_RUNNING) view.show(*next.event);
        out.state = next.event->state();
        out.message = next.event->message();
      } else if (next.ended) {
        if (!next.status) return {next.status};
        break;
      }
    }
  }
  for (size_t i = 0; i < group.job.tasks.size(); ++i) {
    Result<std::optional<v1::TunedConfig>> tuned = query(connection, group.job.tasks[i]);
    if (!tuned) return {tuned.status()};
    out.tuned[i] = *std::move(tuned);
  }
  return {};
}

// Submits and follows, over a new connection whenever one breaks: when the command that hosted the daemon has
// ended, this one becomes the host.
Status run_group(const SubmitOptions& options, const Group& group, GroupOutcome& out) {
  out.tuned.resize(group.job.tasks.size());
  const steady_clock::time_point began = steady_clock::now();
  steady_clock::time_point alive = began;
  int64_t after_seq = 0;
  ProgressView view(static_cast<int>(group.job.tasks.size()));
  while (true) {
    Result<Connection> connection =
        connect({.daemon = options.daemon, .db = options.db, .own_worker = options.daemon.empty()});
    Status status = connection.status();
    if (connection) {
      out.hosted = connection->host != nullptr;
      const int64_t seq_before = after_seq;
      Turn turn = follow(*connection, group, options, view, after_seq, out);
      if (after_seq != seq_before) alive = steady_clock::now();
      if (turn.interrupted) view.say("stopping...");
      if (connection->host && turn.status && !turn.interrupted &&
          !connection->host->wait_until_learned(kLearnFor))
        view.say("  what this teaches about other shapes is left to `tuner learn`");
      if (connection->host)
        connection->host->stop(str("the command that hosted the daemon (process ", getpid(), ") has ended"));
      out.interrupted = turn.interrupted;
      out.wall_s = std::chrono::duration<double>(steady_clock::now() - began).count();
      status = turn.status;
      if (status) return status;
    }
    if (interrupted()) {
      out.interrupted = true;
      return Status::ok();
    }
    // Only a job that had been accepted is worth waiting for.
    if (status.code() != StatusCode::kUnavailable || out.job_id.empty() ||
        steady_clock::now() - alive > kReconnectFor)
      return status;
    view.say(str("  ", status.message(), "; going on with job ", out.job_id));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

// What a trial costs, phase by phase.
std::string time_split(const v1::Progress& progress) {
  std::string text;
  for (const v1::PhaseTime& p : progress.phases()) {
    char phase[64];
    std::snprintf(phase, sizeof phase, "%s%s %.2f ms", text.empty() ? "" : ", ", p.phase().c_str(),
                  p.median_ms());
    text += phase;
  }
  return text;
}

nlohmann::json task_json(const JobRow::Task& task, const std::optional<v1::TunedConfig>& tuned) {
  nlohmann::json j{{"workload", task.workload_key}, {"target", task.target}, {"tuned", nullptr}};
  if (!tuned) return j;
  nlohmann::json outcomes = nlohmann::json::object();
  for (const v1::OutcomeCount& o : tuned->outcomes())
    if (const Result<Outcome> outcome = from_proto(o.outcome(), "outcome"))
      outcomes[std::string(outcome_name(*outcome))] = o.count();
  j["tuned"] = {{"time_ns", tuned->time_ns()},
                {"time_interval_ns", {tuned->time_low_ns(), tuned->time_high_ns()}},
                {"gflops", tuned->gflops()},
                {"peak_gflops", tuned->peak_gflops()},
                {"template", tuned->template_name()},
                {"template_version", tuned->template_version()},
                {"config", tuned->config()},
                {"trial", tuned->trial_id()},
                {"trials", tuned->trials()},
                {"outcomes", outcomes},
                {"artifact", tuned->artifact_digest()},
                {"hardware", tuned->environment().hardware()},
                {"toolchain", tuned->environment().toolchain()}};
  const Result<TunedConfig> t = from_proto(*tuned);
  if (!t) return j;
  // The same keys as tuner query has.
  const nlohmann::ordered_json facts = tuned_json(*t, 0);
  for (const char* key : {"certified", "uncertified_why", "constants", "cold_time_ns", "warm_time_ns",
                          "default_time_ns", "gain", "read_gbps", "race"})
    if (facts.contains(key)) j["tuned"][key] = facts[key];
  return j;
}

// What the answer rests on, in one line.
std::string basis_of(const v1::TunedConfig& t, const TunedConfig& tuned) {
  const std::string race =
      tuned.race_id == 0
          ? "no race that decides"
          : str("a race of ", tuned.finalists, tuned.finalists == 1 ? " finalist" : " finalists",
                tuned.tied > 1 ? str(", ", tuned.tied, " equally fast") : "");
  const std::string mark = algorithm_mark(t.template_name());
  return str(t.trials(), " trials (", outcome_counts(t.outcomes()), ") and ", race, "; best ", t.trial_id(),
             ": ", t.template_name(), " ", t.config(), mark.empty() ? "" : "; algorithm " + mark);
}

void print_task(const Group& group, size_t i, const GroupOutcome& out, bool details) {
  const JobRow::Task& task = group.job.tasks[i];
  std::printf("\n%s on %s\n", task.workload_key.c_str(), task.target.c_str());
  const Result<TunedConfig> tuned =
      out.tuned[i] ? from_proto(*out.tuned[i]) : Result<TunedConfig>(not_found("no answer yet"));
  if (!tuned) {
    std::printf("  %s\n", tuned.message().c_str());
    return;
  }
  const v1::TunedConfig& t = *out.tuned[i];
  std::printf("  %s, %s; %s\n", format_time(t.time_ns(), t.time_low_ns(), t.time_high_ns()).c_str(),
              format_gain(*tuned).c_str(), format_certainty(*tuned).c_str());
  std::printf("  %s\n", format_speed(group.workloads[i], *tuned).c_str());
  std::printf("  rests on %s\n", basis_of(t, *tuned).c_str());
  if (details) std::printf("  race     %s\n", format_race(*tuned).c_str());
}

// The whole that the job tunes, before and after: use counts times the default's and the tuned time.
struct Total {
  double before_ns = 0, after_ns = 0;
  int64_t calls = 0;
  size_t counted = 0, certified = 0;  // tasks with both times; of these certified
};
Total total_of(const Group& group, const GroupOutcome& out) {
  Total total;
  for (size_t i = 0; i < group.job.tasks.size(); ++i) {
    if (!out.tuned[i] || out.tuned[i]->default_time_ns() <= 0) continue;
    const auto uses = static_cast<double>(group.job.tasks[i].uses);
    total.before_ns += uses * out.tuned[i]->default_time_ns();
    total.after_ns += uses * out.tuned[i]->time_ns();
    total.calls += group.job.tasks[i].uses;
    ++total.counted;
    total.certified += out.tuned[i]->certified() ? 1 : 0;
  }
  return total;
}

void print_total(const Group& group, const GroupOutcome& out) {
  const Total total = total_of(group, out);
  const size_t tasks = group.job.tasks.size();
  if (tasks < 2 || total.counted == 0 || total.after_ns <= 0) return;
  std::printf(
      "\ntotal     %s with the default configs, %s tuned: %.2f times as fast (%lld calls of %zu tasks, %zu "
      "certified)\n",
      format_time(total.before_ns).c_str(), format_time(total.after_ns).c_str(),
      total.before_ns / total.after_ns, static_cast<long long>(total.calls), total.counted, total.certified);
  if (total.counted < tasks)
    std::printf("          without %zu tasks that have no time yet, tuned or default\n",
                tasks - total.counted);
}

void print_group(const Group& group, const GroupOutcome& out, bool details) {
  for (size_t i = 0; i < group.job.tasks.size(); ++i) print_task(group, i, out, details);
  print_total(group, out);
  if (out.already_finished) {
    std::printf(
        "\njob %s was finished before: this is its stored answer. More trials: --trials N; from the start: "
        "--fresh\n",
        out.job_id.c_str());
    return;
  }
  const int64_t measured = out.trials_after - std::max<int64_t>(out.trials_before, 0);
  std::printf("\njob %s: %lld trials in %.1f s", out.job_id.c_str(), static_cast<long long>(measured),
              out.wall_s);
  if (out.first_result && *out.last_result > *out.first_result) {
    const double measuring_s = std::chrono::duration<double>(*out.last_result - *out.first_result).count();
    std::printf(", of which start and end %.1f s; %.1f trials/s", out.wall_s - measuring_s,
                static_cast<double>(out.trials_after - out.first_done) / measuring_s);
  }
  const std::string split = details ? time_split(out.progress) : "";
  if (!split.empty())
    std::printf("\na trial's time (medians; builds go on beside runs, a run holds its check): %s",
                split.c_str());
  std::printf("\n");
}

int run(const SubmitOptions& options) {
  if (!options.search.empty() && !is_search_name(options.search)) {
    std::string list;
    for (const std::string& name : strategy_names()) list += (list.empty() ? "" : ", ") + name;
    return report(invalid_argument("--search: found \"", options.search, "\", expected one of ", list));
  }
  const Result<std::vector<Group>> groups = groups_of(options);
  if (!groups) return report(groups.status());
  if (options.daemon.empty())
    for (const Group& group : *groups)
      for (const JobRow::Task& task : group.job.tasks)
        if (const Status here = measurable_here(task.target); !here) return report(here);
  for (const Group& group : *groups)
    for (const Workload& workload : group.workloads)
      if (const Status room =
              fits_here(workload, group.job.options.memory_limit_bytes, options.daemon.empty());
          !room)
        return report(room.with_context(options.file + ": "));

  const std::string file = shell_quoted(options.file), again = command_line("submit " + file);
  int exit_code = kExitDone;
  size_t uncertified = 0;
  nlohmann::json json = nlohmann::json::array();
  for (const Group& group : *groups) {
    GroupOutcome out;
    const Status status = run_group(options, group, out);
    if (!status) {
      exit_code = report(status);
      if (!out.job_id.empty())
        std::fprintf(stderr, "What job %s measured is kept, this continues it: %s\n", out.job_id.c_str(),
                     again.c_str());
      break;
    }
    if (out.interrupted) {
      if (out.job_id.empty())
        std::fprintf(stderr, "stopped\n");
      else if (out.hosted)
        std::fprintf(stderr, "stopped: job %s keeps what it measured, this continues it: %s\n",
                     out.job_id.c_str(), again.c_str());
      else
        std::fprintf(stderr, "left: job %s goes on without this command. Follow it: %s\nend it: %s\n",
                     out.job_id.c_str(), command_line("watch " + out.job_id).c_str(),
                     command_line("cancel " + out.job_id).c_str());
      return kExitFailed;
    }
    bool all_tuned = true;
    nlohmann::json tasks = nlohmann::json::array();
    nlohmann::json phases = nlohmann::json::object();
    for (const v1::PhaseTime& p : out.progress.phases())
      phases[p.phase()] = {{"median_ms", p.median_ms()}, {"total_ms", p.total_ms()}};
    for (size_t i = 0; i < group.job.tasks.size(); ++i) {
      all_tuned = all_tuned && out.tuned[i].has_value();
      // GPU kernels are not raced as yet: there is nothing to do about it.
      const Result<Target> target = parse_target(group.job.tasks[i].target);
      uncertified += target && target->is_cpu() && out.tuned[i] && !out.tuned[i]->certified() ? 1 : 0;
      tasks.push_back(task_json(group.job.tasks[i], out.tuned[i]));
    }
    if (options.json) {
      json.push_back({{"job", out.job_id},
                      {"already_finished", out.already_finished},
                      {"wall_s", out.wall_s},
                      {"phases", phases},
                      {"tasks", tasks},
                      {"total",
                       {{"before_ns", total_of(group, out).before_ns},
                        {"after_ns", total_of(group, out).after_ns},
                        {"tasks", total_of(group, out).counted},
                        {"certified", total_of(group, out).certified}}},
                      {"trials_measured", out.trials_after - std::max<int64_t>(out.trials_before, 0)}});
    } else {
      print_group(group, out, options.details);
    }
    if (out.state == v1::CANCELLED) std::fprintf(stderr, "tuner: job %s was cancelled\n", out.job_id.c_str());
    if (out.state == v1::JOB_FAILED)
      std::fprintf(stderr, "tuner: job %s failed: %s\n", out.job_id.c_str(),
                   with_commands(out.message).c_str());
    if (out.state == v1::FINISHED && !out.message.empty())
      std::fprintf(stderr, "tuner: job %s: %s\n", out.job_id.c_str(), with_commands(out.message).c_str());
    if (!all_tuned || out.state != v1::FINISHED) exit_code = kExitFailed;
  }
  if (uncertified > 0)
    std::fprintf(stderr, "tuner: %zu answer%s not certified, for the reason given. On a calmer machine: %s\n",
                 uncertified, uncertified == 1 ? " is" : "s are",
                 command_line("submit " + file + " --fresh").c_str());
  if (options.json) {
    std::printf("%s\n", json.dump(2).c_str());
  } else if (exit_code == kExitDone) {
    std::printf("stored in %s\nnext: %s\n",
                options.daemon.empty() ? options.db.c_str() : options.daemon.c_str(),
                command_line("query " + file).c_str());
    // It reads a database file, which a daemon elsewhere has there.
    if (options.daemon.empty()) std::printf("      %s\n", command_line("build " + file + " -o out/").c_str());
  }
  return exit_code;
}

}  // namespace

void add_submit_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<SubmitOptions>();
  CLI::App* command =
      add_command(app, context, "submit", "Tunes every workload of a job file", [options, &context] {
        log_to_stderr(context.verbose > 0 ? spdlog::level::info : spdlog::level::err);
        catch_interrupts();
        options->details = context.verbose > 0;
        return run(*options);
      });
  command->add_option("FILE", options->file, "job file, as examples/conv2d.json; - reads standard input")
      ->required();
  add_db_option(*command, options->db);
  add_target_option(*command, options->target);
  add_json_option(*command, options->json);
  command
      ->add_option_function<std::string>(
          "--trials",
          [options](const std::string& text) {
            options->every_config = text == "all";
            if (!options->every_config) options->trials = std::stoi(text);
          },
          "trials per task on average (every task gets its default, then those that gain more get more), "
          "instead of the file's; all: every "
          "valid config with at least 9 samples, none cut "
          "short, in grid order unless --search says otherwise")
      ->check([](const std::string& text) {
        const auto* end = text.data() + text.size();
        int n = 0;
        const auto [stop, error] = std::from_chars(text.data(), end, n);
        const bool number = error == std::errc() && stop == end && n >= 1 && n <= kMaxTrialsPerTask;
        return number || text == "all" ? std::string()
                                       : str("expected 1 to ", kMaxTrialsPerTask, ", or all; found ", text);
      })
      ->type_name("N|all");
  command->add_option("--search", options->search, "search strategy, instead of the file's");
  command->add_option_function<uint64_t>(
      "--seed",
      [options](const uint64_t& seed) {
        options->seed = seed;
        options->seed_given = true;
      },
      "seed of the search, instead of the file's");
  command
      ->add_option(
          "--stop-below", options->stop_below_percent,
          "end a task when its chance of gaining 1 % in its next 100 trials is below this many percent "
          "(5 unless the file says otherwise); 0: never")
      ->check(CLI::Range(0.0, 100.0));
  command
      ->add_option(
          "--time-limit", options->time_limit_s,
          "seconds (or 90s, 10m, 2h) for all trials and races of the job; every task's default comes first. "
          "0: no limit")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}}))
      ->check(CLI::Range(0.0, 1e9));
  command->add_option("--daemon", options->daemon,
                      "HOST:PORT or unix:/path of a daemon; without it everything runs here");
  command->add_flag("--fresh", options->fresh, "start anew even when such a job is stored");
}

}  // namespace tuner::cli
