#include "tuner/study/whatif_play.h"

#include <algorithm>

#include "compiler_core/base/statistics.h"

namespace tuner {
namespace {

double share_after(const WhatIfRun& run, size_t trials) {
  if (run.share.empty() || trials == 0) return 0;
  return run.share[std::min(trials, run.share.size()) - 1];
}

}  // namespace

int64_t WhatIfResult::proposed() const {
  int64_t n = 0;
  for (const WhatIfRun& run : runs) n += run.proposed;
  return n;
}
int64_t WhatIfResult::recorded() const {
  int64_t n = 0;
  for (const WhatIfRun& run : runs) n += run.recorded;
  return n;
}
double WhatIfResult::coverage() const {
  return proposed() == 0 ? 0 : static_cast<double>(recorded()) / static_cast<double>(proposed());
}

Result<WhatIfResult> play_whatif(const SearchSpace& space, const TaskRecords& records,
                                 std::string_view strategy, const WhatIfOptions& options) {
  const RowIndex index = index_rows(records, space);
  double optimum = 0;
  for (const TaskRecords::Row& row : records.rows)
    if (row.is_timed() && (optimum == 0 || row.time_ns() < optimum)) optimum = row.time_ns();
  WhatIfResult result;
  for (int seed = 0; seed < options.seeds; ++seed) {
    ASSIGN_OR_RETURN(const std::unique_ptr<SearchStrategy> search,
                     make_strategy(strategy, space, static_cast<uint64_t>(seed)));
    WhatIfRun run;
    double best = 0;
    while (run.share.size() < options.trials) {
      const std::vector<Candidate> batch =
          search->propose(std::min(options.batch, options.trials - run.share.size()));
      if (batch.empty()) break;
      std::vector<Observation> seen;
      for (const Candidate& c : batch) {
        ++run.proposed;
        if (const int r = index.find(c); r >= 0) {
          ++run.recorded;
          const TaskRecords::Row& row = records.rows[static_cast<size_t>(r)];
          const bool ok = row.outcome == Outcome::kOk;
          seen.push_back({.candidate = c,
                          .ok = ok,
                          .time_ns = !ok              ? 0
                                     : row.is_timed() ? row.time_ns()
                                                      : row.bound_ns,
                          .cut = ok && !row.is_timed()});
          if (row.is_timed() && (best == 0 || row.time_ns() < best)) best = row.time_ns();
        }
        run.share.push_back(best > 0 ? optimum / best : 0);
      }
      search->observe(seen);
    }
    result.runs.push_back(std::move(run));
  }
  return result;
}

WhatIfMark mark_after(const WhatIfResult& result, size_t trials) {
  WhatIfMark mark;
  const size_t n = result.runs.size();
  if (n == 0) return mark;
  mark.worst = 1;
  std::vector<double> shares;
  for (const WhatIfRun& run : result.runs) {
    shares.push_back(share_after(run, trials));
    mark.worst = std::min(mark.worst, shares.back());
  }
  const Mean mean = mean_of(shares);
  mark.mean = mean.mean;
  if (n < 2) return mark;
  const double half = student_quantile(0.975, static_cast<double>(n - 1)) * mean.deviation_of_mean();
  mark.low = std::max(0.0, mark.mean - half);
  mark.high = std::min(1.0, mark.mean + half);
  return mark;
}

Result<WhatIfResult> found_by_job(const Store& store, const std::string& job, int task, double optimum_ns) {
  ASSIGN_OR_RETURN(std::vector<TrialWithRecord> trials, store.trials(job));
  std::erase_if(trials, [&](const TrialWithRecord& t) { return !t.record || t.trial.task_index != task; });
  std::sort(trials.begin(), trials.end(),
            [](const TrialWithRecord& a, const TrialWithRecord& b) { return a.record_id < b.record_id; });
  WhatIfRun run;
  double best = 0;
  for (const TrialWithRecord& t : trials) {
    const double time = t.record->outcome == Outcome::kOk && !t.record->cut ? record_time_ns(*t.record) : 0;
    if (time > 0 && (best == 0 || time < best)) best = time;
    run.share.push_back(best > 0 ? std::min(1.0, optimum_ns / best) : 0);
  }
  run.proposed = run.recorded = static_cast<int64_t>(run.share.size());
  return WhatIfResult{{std::move(run)}};
}

std::vector<size_t> whatif_marks(size_t trials) {
  std::vector<size_t> marks;
  for (size_t mark = 32; mark < trials; mark *= 2) marks.push_back(mark);
  marks.push_back(trials);
  return marks;
}

}  // namespace tuner
