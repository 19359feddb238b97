#include "tests/bench/gpu/estimate_judgement.h"

#include <algorithm>
#include <map>

#include "compiler_core/base/json_reader.h"
#include "compiler_core/base/statistics.h"
#include "tuner/cost_model/cost_model.h"

namespace tuner {
namespace {

using json_input::kRequired;
using json_input::Reader;
using nlohmann::json;

// What a line says of one run.
struct Run {
  std::string pack, workload, target, picked;
  int64_t task = 0, round = 0;
  double estimated_ns = 0, run_ms = 0, min_repeat_ms = 0;
  std::vector<double> run_ns;
  bool ok = false;
};

Result<Run> read_run(const std::string& line) {
  ASSIGN_OR_RETURN(const json document, json_input::parse(line));
  Reader in(document, "");
  Run run;
  std::string outcome;
  in.read("pack", run.pack, kRequired);
  in.read("task", run.task, kRequired);
  in.read("round", run.round, kRequired);
  in.read("workload", run.workload, kRequired);
  in.read("target", run.target, kRequired);
  in.read("picked", run.picked, kRequired);
  in.read("outcome", outcome, kRequired);
  in.read("estimated_ns", run.estimated_ns, kRequired);
  in.read("run_ms", run.run_ms, kRequired);
  in.read("run_ns", run.run_ns, kRequired);
  in.read_object(
      "options", [&run](Reader& plan) { plan.read("min_repeat_ms", run.min_repeat_ms, kRequired); },
      kRequired);
  if (in.failed()) return in.status();
  run.ok = outcome == "ok" && !run.run_ns.empty();
  return run;
}

// Collects the runs of one task.
class Collector {
 public:
  void add(const Run& run) {
    judgement_.workload = run.workload;
    judgement_.target = run.target;
    const bool counts = run.round == 0 && run.picked == "random" && run.estimated_ns > 0;
    if (counts && !run.ok) ++judgement_.failed;
    if (!run.ok) return;
    if (counts) {
      estimates_.push_back(static_cast<float>(run.estimated_ns));
      times_.push_back(static_cast<float>(median(run.run_ns)));
    }
    // A sample is as many calls as fill this, one at least. What is left over is warming up, two runs that
    // are compared, operands and the comparison.
    double timed_ms = 0;
    for (const double ns : run.run_ns) timed_ms += std::max(run.min_repeat_ms, ns * 1e-6);
    beside_ms_.push_back(run.run_ms - timed_ms);
  }
  TaskJudgement judgement() const {
    TaskJudgement found = judgement_;
    found.random = static_cast<int>(times_.size());
    found.trials = static_cast<int>(beside_ms_.size());
    if (found.random >= kFewestPicks) found.correlation = rank_correlation(estimates_, times_);
    if (found.trials > 0) found.beside_ms = median(beside_ms_);
    return found;
  }

 private:
  TaskJudgement judgement_;
  std::vector<float> estimates_, times_;
  std::vector<double> beside_ms_;
};

}  // namespace

Result<std::vector<TaskJudgement>> judge_estimates(std::istream& results) {
  std::map<std::pair<std::string, int64_t>, size_t> places;
  std::vector<Collector> tasks;
  int number = 0;
  for (std::string line; std::getline(results, line);) {
    ++number;
    if (results.eof()) break;  // a kill left it
    const Result<Run> run = read_run(line);
    if (!run.is_ok()) return run.status().with_context(str("line ", number, ": not a result of run-pack: "));
    const auto [place, is_new] = places.try_emplace({run->pack, run->task}, tasks.size());
    if (is_new) tasks.emplace_back();
    tasks[place->second].add(*run);
  }
  std::vector<TaskJudgement> judgements;
  for (const Collector& task : tasks) judgements.push_back(task.judgement());
  return judgements;
}

}  // namespace tuner
