// judge_estimates: how true the estimates were that a pack was made by, from its results. See README.md
// beside this file.
//
//   judge_estimates RESULTS.jsonl...
//
// A line a task: the rank correlation of estimated and measured times over the configs that were drawn at
// random (1: the same order; asked: 0.7 and more), and what a trial costs beside the calls that are timed
// (asked: at most 20 ms where operands are 4096 x 4096). Exit status: 0 printed, whatever it says; 2 a file
// is not what run-pack writes.
#include <cstdio>
#include <fstream>

#include "tests/bench/gpu/estimate_judgement.h"

namespace tuner {
namespace {

void print(const TaskJudgement& task) {
  std::printf("%s on %s\n  ", task.workload.c_str(), task.target.c_str());
  if (task.random < kFewestPicks)
    std::printf("too few random picks (%d) to judge the estimate", task.random);
  else
    std::printf("rank correlation of the estimate %.2f over %d random picks%s", task.correlation, task.random,
                task.correlation < kWantedCorrelation ? ", BELOW the 0.7 asked for" : "");
  if (task.failed > 0) std::printf(", %d more failed", task.failed);
  if (task.trials > 0)
    std::printf("; a trial costs %.1f ms beside its kernel (median of %d)%s", task.beside_ms, task.trials,
                task.beside_ms > kWantedBesideMs ? ", ABOVE the 20 ms asked for" : "");
  std::printf("\n");
}

int judge(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  Result<std::vector<TaskJudgement>> tasks = invalid_argument("cannot be read");
  if (in) tasks = judge_estimates(in);
  if (!tasks.is_ok()) {
    std::fprintf(stderr, "judge_estimates: %s: %s\n", path.c_str(), tasks.message().c_str());
    return 2;
  }
  std::printf("%s: %zu task%s\n", path.c_str(), tasks->size(), tasks->size() == 1 ? "" : "s");
  for (const TaskJudgement& task : *tasks) print(task);
  return 0;
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  int status = argc > 1 ? 0 : 2;
  if (argc < 2) std::fprintf(stderr, "usage: judge_estimates RESULTS.jsonl...\n");
  for (int i = 1; i < argc; ++i)
    if (tuner::judge(argv[i]) != 0) status = 2;
  return status;
}
