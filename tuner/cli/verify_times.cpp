#include "tuner/cli/verify_times.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler_core/base/statistics.h"
#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/client/daemon_client.h"
#include "tuner/jobs/tasks.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"
#include "tuner/verify/published.h"

namespace tuner::cli {
namespace {

struct TimeVerdict {
  CliTask task;
  TunedConfig published;
  RaceRow now;
  bool inside() const { return is_inside(published, now); }
  double width() const { return half_width(published); }
};

nlohmann::ordered_json to_json(const TimeVerdict& v) {
  nlohmann::ordered_json j = {{"workload", v.task.key},
                              {"target", v.task.target_name},
                              {"trial", v.published.trial_id},
                              {"published", tuned_json(v.published, 0)},
                              {"constants", constants_name(v.published.constants)},
                              {"half_width", v.width()}};
  j.update(remeasured_json(v.published, v.now));
  return j;
}

}  // namespace

int verify_times(const TimesOptions& options, int verbose) {
  log_to_stderr(verbose > 0 ? spdlog::level::info : spdlog::level::err);
  const Result<std::vector<CliTask>> tasks = read_tasks(options.file, options.target);
  if (!tasks) return report(tasks.status());
  const bool remote = !options.daemon.empty();
  for (const CliTask& task : *tasks)
    if (const Status here = remote ? Status::ok() : measurable_here(task.target_name); !here)
      return report(here);
  const Result<DaemonClient> client =
      DaemonClient::connect({.daemon = options.daemon, .db = options.db, .own_worker = !remote});
  if (!client) return report(client.status());

  int unraced = 0, inside = 0, disturbed = 0;
  double widest = 0;
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  std::set<std::string> seen;
  std::vector<double> widths;
  for (const CliTask& task : *tasks) {
    if (!seen.insert(task.key + "|" + task.target_name).second) continue;  // the same layer twice
    const Result<std::optional<TunedConfig>> answer =
        client->tuned({task.key, task.target_name, task.algorithms, 1, task.constants});
    if (!answer) return report(answer.status());
    const std::optional<TunedConfig>& best = *answer;
    if (!best || !best->certified || best->constants != task.constants) {
      ++unraced;
      std::fprintf(stderr, "tuner: %s on \"%s\" has no certified time%s%s. To tune: %s\n", task.key.c_str(),
                   task.target_name.c_str(), best ? ": " : "", best ? best->uncertified_why.c_str() : "",
                   command_line("submit " + shell_quoted(options.file)).c_str());
      continue;
    }
    const Result<RaceRow> now = client->remeasure(best->trial_id, options.processes, task.constants);
    if (!now) return report(now.status());
    const TimeVerdict v{task, *best, *now};
    inside += v.inside() ? 1 : 0;
    disturbed += too_disturbed(*best, *now) ? 1 : 0;
    widest = std::max(widest, v.width());
    widths.push_back(v.width());
    if (options.json) {
      document.push_back(to_json(v));
    } else {
      std::printf("%-9s %s, published %s, +- %.2f %% (%+.2f %%)  %.4g x pulse, published %.4g%s  %s\n",
                  verdict(v.published, v.now), format_time(v.now.time_ns).c_str(),
                  format_time(v.published.time_ns, v.published.time_low_ns, v.published.time_high_ns).c_str(),
                  100 * v.width(), 100 * (to_published(v.published, v.now) - 1), v.now.ratio,
                  v.published.ratio, judged_by(v.published, v.now).c_str(), task.key.c_str());
      std::fflush(stdout);
    }
  }
  client->stop_host("the times are verified");
  if (options.json) {
    std::printf("%s\n", pretty(document).c_str());
  } else if (!widths.empty()) {
    std::printf("%d of %zu inside their intervals", inside, widths.size());
    if (disturbed > 0) std::printf(", %d could not be judged: again on a calmer machine", disturbed);
    std::printf("; half-widths: median %.2f %%, widest %.2f %%\n", 100 * median(widths), 100 * widest);
  }
  return unraced > 0 || inside < static_cast<int>(widths.size()) ? kExitFailed : kExitDone;
}

}  // namespace tuner::cli
