#include "tuner/revalidate/published_times.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "compiler_core/base/printable.h"
#include "tuner/client/daemon_client.h"
#include "tuner/jobs/tasks.h"
#include "tuner/text/facts.h"
#include "tuner/text/hint.h"
#include "tuner/text/terminal.h"
#include "tuner/verify/published.h"

namespace tuner {
namespace {

// A published answer, and the measurements that are to tell whether its time is true.
struct JudgedAnswer {
  CliTask task;
  TunedConfig published;
  RaceRow now;  // the latest
  std::vector<Judgement> looks;
  TimeVerdict verdict = TimeVerdict::kCannotTell;
};

nlohmann::ordered_json to_json(const JudgedAnswer& j) {
  nlohmann::ordered_json out = {{"workload", j.task.key},
                                {"target", j.task.target_name},
                                {"trial", j.published.trial_name},
                                {"published", tuned_json(j.published, 0)},
                                {"constants", constants_name(j.published.constants)}};
  out.update(verdict_json(j.verdict, j.published, j.now, j.looks));
  return out;
}

void print(const JudgedAnswer& j) {
  const int width = terminal_width(STDOUT_FILENO);
  std::printf("%s\n", shortened(j.task.key, width).c_str());
  for (const std::string& line : verdict_text(j.verdict, j.published, j.now, j.looks))
    std::printf("%s\n", wrapped("  " + line, width, 4).c_str());
  std::fflush(stdout);
}

// Measures until the verdict is certain, or will not be. A neighbour of a moment ago may be gone after a
// pause: some stay for seconds, and 3 MB of operands took 1.11 times as long beside one whom neither pulses
// nor the memory sentinel saw.
Status measure(const DaemonClient& client, int processes, JudgedAnswer& j) {
  for (std::optional<TimeVerdict> verdict; !verdict;) {
    std::this_thread::sleep_for(std::chrono::seconds(2 * j.looks.size()));
    ASSIGN_OR_RETURN(j.now, client.remeasure(j.published.trial_id, processes, j.task.constants));
    j.looks.push_back(judge(j.published, j.now));
    verdict = decided(j.looks);
    j.verdict = verdict.value_or(TimeVerdict::kCannotTell);
  }
  return Status::ok();
}

struct Counts {
  int inside = 0, outside = 0, unknown = 0, unraced = 0;
  int judged() const { return inside + outside + unknown; }
  void add(TimeVerdict verdict) {
    ++(verdict == TimeVerdict::kInside ? inside : verdict == TimeVerdict::kOutside ? outside : unknown);
  }
};

void print(const Counts& counts) {
  if (counts.judged() == 0) return;
  std::printf("%d of %d inside their intervals", counts.inside, counts.judged());
  if (counts.outside > 0) std::printf(", %d OUTSIDE", counts.outside);
  if (counts.unknown > 0)
    std::printf("; for %d cannot tell: run this again when the machine is calmer", counts.unknown);
  std::printf("\n");
}

}  // namespace

Result<bool> verify_times(const std::vector<CliTask>& tasks, const TimesOptions& options) {
  const bool remote = !options.daemon.empty();
  for (const CliTask& task : tasks)
    if (!remote) RETURN_IF_ERROR(measurable_here(task.target_name));
  ASSIGN_OR_RETURN(
      const DaemonClient client,
      DaemonClient::connect({.daemon = options.daemon, .db = options.db, .own_worker = !remote}));

  Counts counts;
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  std::set<std::string> seen;
  for (const CliTask& task : tasks) {
    if (!seen.insert(task.key + "|" + task.target_name).second) continue;  // the same layer twice
    ASSIGN_OR_RETURN(const std::optional<TunedConfig> best,
                     client.tuned({task.key, task.target_name, task.algorithms, 1, task.constants}));
    if (!best || !best->certified || best->constants != task.constants) {
      ++counts.unraced;
      std::fprintf(stderr, "tuner: %s on \"%s\" has no certified time%s%s. To tune: %s\n", task.key.c_str(),
                   task.target_name.c_str(), best ? ": " : "",
                   best ? printable(best->uncertified_why).c_str() : "",
                   command_line("submit " + shell_quoted(options.file)).c_str());
      continue;
    }
    JudgedAnswer judged{.task = task, .published = *best};
    RETURN_IF_ERROR(measure(client, options.processes, judged));
    counts.add(judged.verdict);
    if (options.json)
      document.push_back(to_json(judged));
    else
      print(judged);
  }
  client.stop_host("the times are verified");
  if (options.json)
    std::printf("%s\n", pretty(document).c_str());
  else
    print(counts);
  return counts.unraced == 0 && counts.inside == counts.judged();
}

}  // namespace tuner
