#include "tuner/cli/submit_view.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "proto/convert.h"
#include "tuner/client/progress_view.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"

namespace tuner::cli {
namespace {

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

nlohmann::json task_json(const JobRow::Task& task, const Workload& workload,
                         const std::optional<v1::TunedConfig>& answer) {
  nlohmann::json j{{"workload", task.workload_key}, {"target", task.target}, {"tuned", nullptr}};
  if (!answer) return j;
  if (const Result<TunedConfig> tuned = from_proto(*answer))
    j["tuned"] = tuned_json(*tuned, workload.flops(), workload.bytes());
  return j;
}

// What the answer rests on, in one line.
std::string basis_of(const v1::TunedConfig& t, const TunedConfig& tuned) {
  const std::string race =
      tuned.race_id == 0
          ? "no race that decides"
          : str("a race of ", tuned.finalists, tuned.finalists == 1 ? " finalist" : " finalists",
                tuned.tied > 1 ? str(", ", tuned.tied, " tie: ", format_tie(tuned)) : "");
  const std::string mark = algorithm_mark(t.template_name());
  return str(t.trials(), " trials (", outcome_counts(t.outcomes()), ") and ", race, "; best ", t.trial_id(),
             ": ", t.template_name(), " ", t.config(), mark.empty() ? "" : "; algorithm " + mark);
}

void print_task(const JobGroup& group, size_t i, const JobOutcome& out, bool details) {
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
Total total_of(const JobGroup& group, const JobOutcome& out) {
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

void print_total(const JobGroup& group, const JobOutcome& out) {
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

}  // namespace

void print_job(const JobGroup& group, const JobOutcome& out, bool details) {
  for (size_t i = 0; i < group.job.tasks.size(); ++i) print_task(group, i, out, details);
  print_total(group, out);
  if (out.already_finished) {
    std::printf(
        "\njob %s was finished before: this is its stored answer. More trials: --trials N; from the start: "
        "--fresh\n",
        out.job_id.c_str());
    return;
  }
  std::printf("\njob %s: %lld trials in %.1f s", out.job_id.c_str(),
              static_cast<long long>(out.trials_measured()), out.wall_s);
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

nlohmann::json job_json(const JobGroup& group, const JobOutcome& out) {
  nlohmann::json tasks = nlohmann::json::array();
  nlohmann::json phases = nlohmann::json::object();
  for (const v1::PhaseTime& p : out.progress.phases())
    phases[p.phase()] = {{"median_ms", p.median_ms()}, {"total_ms", p.total_ms()}};
  for (size_t i = 0; i < group.job.tasks.size(); ++i)
    tasks.push_back(task_json(group.job.tasks[i], group.workloads[i], out.tuned[i]));
  const Total total = total_of(group, out);
  return {{"job", out.job_id},
          {"already_finished", out.already_finished},
          {"wall_s", out.wall_s},
          {"phases", phases},
          {"tasks", tasks},
          {"total",
           {{"before_ns", total.before_ns},
            {"after_ns", total.after_ns},
            {"tasks", total.counted},
            {"certified", total.certified}}},
          {"trials_measured", out.trials_measured()}};
}

void say_interrupted(const JobOutcome& out, const std::string& again) {
  if (out.job_id.empty())
    std::fprintf(stderr, "stopped\n");
  else if (out.hosted)
    std::fprintf(stderr, "stopped: job %s keeps what it measured. To continue it: %s\n", out.job_id.c_str(),
                 again.c_str());
  else
    std::fprintf(stderr, "left: job %s goes on without this command. Follow it: %s\nend it: %s\n",
                 out.job_id.c_str(), command_line("watch " + out.job_id).c_str(),
                 command_line("cancel " + out.job_id).c_str());
}

void say_ending(const JobOutcome& out) {
  if (out.state == v1::CANCELLED) std::fprintf(stderr, "tuner: job %s was cancelled\n", out.job_id.c_str());
  if (out.state == v1::JOB_FAILED)
    std::fprintf(stderr, "tuner: job %s failed: %s\n", out.job_id.c_str(),
                 with_commands(out.message).c_str());
  if (out.state == v1::FINISHED && !out.message.empty())
    std::fprintf(stderr, "tuner: job %s: %s\n", out.job_id.c_str(), with_commands(out.message).c_str());
}

}  // namespace tuner::cli
