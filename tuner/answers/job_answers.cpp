#include "tuner/answers/job_answers.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "proto/convert.h"
#include "tuner/client/progress_view.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"
#include "tuner/text/time_words.h"

namespace tuner {
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

// What the answer rests on.
std::string basis_of(const v1::TunedConfig& t, const TunedConfig& tuned) {
  const std::string race =
      tuned.race_id == 0
          ? "no race that decides"
          : str("a race of ", tuned.finalists, tuned.finalists == 1 ? " finalist" : " finalists",
                tuned.tied > 1 ? str(", ", tuned.tied, " tie: ", format_tie(tuned)) : "");
  return str(t.trials(), " trials (", outcome_counts(t.outcomes()), ") and ", race);
}

void say(const std::string& line) {
  if (!line.empty()) std::printf("%s\n", wrapped("  " + line, terminal_width(STDOUT_FILENO), 4).c_str());
}

void print_task(const JobGroup& group, size_t i, const JobOutcome& out, bool details) {
  const JobRow::Task& task = group.job.tasks[i];
  const int width = terminal_width(STDOUT_FILENO);
  std::printf("\n%s\n", shortened(str(task.workload_key, " on ", task.target), width).c_str());
  const Result<TunedConfig> tuned =
      out.tuned[i] ? from_proto(*out.tuned[i]) : Result<TunedConfig>(not_found("no answer yet"));
  if (!tuned) return say(tuned.message());
  const v1::TunedConfig& t = *out.tuned[i];
  const TimeWords words = time_words(*tuned);
  say(str(words.time, "; ", words.certainty));
  say(words.other);
  say(tuned->certified ? words.gain : str("gain: ", words.gain));
  say(format_speed(group.workloads[i], *tuned));
  say(format_roofline(group.workloads[i], *tuned));
  say(str("rests on ", basis_of(t, *tuned)));
  say(str("best ", tuned->trial_name, ": ", t.template_name(), " ", t.config()));
  if (const std::string mark = algorithm_mark(t.template_name()); !mark.empty()) say("algorithm " + mark);
  say(std::string(group.workloads[i].caveat()));
  if (details) say("race     " + format_race(*tuned));
}

// The whole that the job tunes, before and after: use counts times the default's and the tuned time. Of certified answers
// alone: no gain is claimed for others.
struct Total {
  double before_ns = 0, after_ns = 0;
  int64_t calls = 0;
  size_t counted = 0;  // tasks in it
};
Total total_of(const JobGroup& group, const JobOutcome& out) {
  Total total;
  for (size_t i = 0; i < group.job.tasks.size(); ++i) {
    if (!out.tuned[i]) continue;
    const Result<TunedConfig> tuned = from_proto(*out.tuned[i]);
    if (!tuned || claimed_gain(*tuned) <= 0) continue;
    const auto uses = static_cast<double>(group.job.tasks[i].uses);
    total.before_ns += uses * tuned->default_time_ns;
    total.after_ns += uses * tuned->time_ns;
    total.calls += group.job.tasks[i].uses;
    ++total.counted;
  }
  return total;
}

void print_total(const JobGroup& group, const JobOutcome& out) {
  const Total total = total_of(group, out);
  const size_t tasks = group.job.tasks.size();
  if (tasks < 2 || total.counted == 0 || total.after_ns <= 0) return;
  std::printf(
      "\ntotal     %s with the default configs, %s tuned: %.2f times as fast\n"
      "          (%lld calls of %zu tasks, all certified)\n",
      format_time(total.before_ns).c_str(), format_time(total.after_ns).c_str(),
      total.before_ns / total.after_ns, static_cast<long long>(total.calls), total.counted);
  if (total.counted < tasks)
    std::printf("          without %zu tasks that are not certified or were not raced with their default\n",
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
            {"certified", total.counted}}},
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

}  // namespace tuner
