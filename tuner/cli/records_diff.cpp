// tuner records diff: is what one database answers slower than what another does? A gate for continuous
// integration.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "db/exchange/diff.h"
#include "tuner/cli/records_commands.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/terminal.h"

namespace tuner::cli {

namespace {

using exchange::DiffReport;
using exchange::TaskDiff;
using nlohmann::ordered_json;

struct RecordsDiffOptions {
  std::string a, b;
  double threshold_percent = 2, confidence_percent = 95;
  bool json = false;
};

std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * (ratio - 1));
  return text;
}

void print_task(const TaskDiff& d) {
  const std::string name(verdict_name(d.verdict));
  const bool judged = d.verdict != TaskDiff::Verdict::kRefused;
  char change[80] = "";
  if (judged)
    std::snprintf(change, sizeof change, "%9s  (%s .. %s)  ", percent(d.ratio).c_str(),
                  percent(d.low).c_str(), percent(d.high).c_str());
  const std::string line =
      str(name, std::string(name.size() < 8 ? 8 - name.size() : 0, ' '), change, format_time(d.a.time_ns),
          " -> ", format_time(d.b.time_ns), d.raced ? "  (raced)  " : "  (single trials)  ",
          d.task.workload_key, "  on  ", d.task.target);
  std::printf("%s\n", on_a_line(line).c_str());
  if (d.by_sentinel) std::printf("        hardware differs: in units of the sentinel kernel\n");
  if (!d.note.empty()) std::printf("        %s\n", d.note.c_str());
}

ordered_json side_json(const TunedConfig& t) { return tuned_json(t, 0); }
ordered_json tasks_json(const std::vector<JobRow::Task>& tasks) {
  ordered_json out = ordered_json::array();
  for (const JobRow::Task& t : tasks) out.push_back({{"workload", t.workload_key}, {"target", t.target}});
  return out;
}

void print_json(const RecordsDiffOptions& options, const DiffReport& r, bool regressed) {
  ordered_json tasks = ordered_json::array();
  for (const TaskDiff& d : r.tasks)
    tasks.push_back({{"workload", d.task.workload_key},
                     {"target", d.task.target},
                     {"verdict", verdict_name(d.verdict)},
                     {"ratio", d.ratio},
                     {"low", d.low},
                     {"high", d.high},
                     {"raced", d.raced},
                     {"by_sentinel", d.by_sentinel},
                     {"note", d.note},
                     {"a", side_json(d.a)},
                     {"b", side_json(d.b)}});
  const ordered_json facts{{"a", options.a},
                           {"b", options.b},
                           {"threshold", options.threshold_percent / 100},
                           {"confidence", options.confidence_percent / 100},
                           {"compared", r.compared},
                           {"ratio", r.ratio},
                           {"low", r.low},
                           {"high", r.high},
                           {"regressed", regressed},
                           {"tasks", std::move(tasks)},
                           {"only_a", tasks_json(r.only_a)},
                           {"only_b", tasks_json(r.only_b)}};
  std::printf("%s\n", pretty(facts).c_str());
}

// A database that was named is there, or the name is wrong.
Result<std::unique_ptr<Store>> open_named(const std::string& path) {
  Result<std::unique_ptr<Store>> store = Store::open(path, Store::Mode::kRead);
  if (store.status().code() == StatusCode::kNotFound) return invalid_argument(store.message());
  return store;
}

int run_records_diff(const RecordsDiffOptions& options) {
  const exchange::DiffOptions wanted{options.threshold_percent / 100, options.confidence_percent / 100};
  const Result<std::unique_ptr<Store>> a = open_named(options.a), b = open_named(options.b);
  if (!a) return report(a.status());
  if (!b) return report(b.status());
  const Result<DiffReport> diff = exchange::diff_databases(**a, **b, wanted);
  if (!diff) return report(diff.status());
  const bool regressed = diff->regressed(wanted);
  if (options.json) {
    print_json(options, *diff, regressed);
  } else {
    for (const TaskDiff& task : diff->tasks) print_task(task);
    using V = TaskDiff::Verdict;
    std::printf("%lld tasks compared", static_cast<long long>(diff->compared));
    if (diff->compared > 0)
      std::printf(": mean %s (%s .. %s)", percent(diff->ratio).c_str(), percent(diff->low).c_str(),
                  percent(diff->high).c_str());
    std::printf(
        "; %lld slower, %lld faster, %lld the same within %g %%, %lld unsure, %lld refused; only in %s: %zu, "
        "only "
        "in %s: %zu\n",
        static_cast<long long>(diff->count(V::kSlower)), static_cast<long long>(diff->count(V::kFaster)),
        static_cast<long long>(diff->count(V::kSame)), options.threshold_percent,
        static_cast<long long>(diff->count(V::kUnsure)), static_cast<long long>(diff->count(V::kRefused)),
        options.a.c_str(), diff->only_a.size(), options.b.c_str(), diff->only_b.size());
  }
  if (diff->compared == 0) {
    std::fprintf(stderr, "tuner: nothing could be compared: no task has enough samples in both databases\n");
    return kExitFailed;
  }
  return regressed ? kExitFailed : kExitDone;
}

}  // namespace

void add_records_diff(Command records, CommandContext& context) {
  auto options = std::make_shared<RecordsDiffOptions>();
  const Command command =
      add_command(records, context, "diff",
                  "Compare the best configs of two databases task by task. Exit code 1: a task, or all "
                  "together, became slower by "
                  "more than the threshold, and that is certain; or nothing could be compared",
                  [options] { return run_records_diff(*options); });
  command.add_option("A", options->a, "Database: before").required().offers(offer_files({".db"}));
  command.add_option("B", options->b, "Database: after").required().offers(offer_files({".db"}));
  command.add_option("--threshold", options->threshold_percent, "Percent; smaller changes do not count")
      .in_range(0.0, 1000.0)
      .type_name("PERCENT")
      .show_default();
  command
      .add_option("--confidence", options->confidence_percent,
                  "Percent: how certain all verdicts together are")
      .in_range(50.0, 99.999)
      .type_name("PERCENT")
      .show_default();
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
