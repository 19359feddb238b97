// fill_database FILE [FACTOR]: writes the database that the page is tested with: 200 jobs with 50 tasks each,
// one of which has many trials and a race, and texts that would run if a page took them for markup. All times
// are FACTOR (1) times as long.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "db/store.h"

namespace tuner {
namespace {

constexpr int kJobs = 200, kTasksOfAJob = 50, kTrials = 400;
constexpr char kTarget[] = "llvm -mcpu=haswell -threads=1";
constexpr char kNasty[] = "<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script>\"'&";
constexpr int64_t kBegin = 1'790'000'000'000'000;

MeasureRecord record_of(const std::string& trial, double ns, int64_t us) {
  MeasureRecord r{.trial_id = trial};
  r.run_ns = r.cpu_ns = {ns, ns * 1.01, ns * 0.99};
  r.peak_gflops = 100, r.read_gbps = 40, r.finished_at_us = us;
  r.environment = {.hardware = "machine", .toolchain = "llvm 1", .worker_id = kNasty, .host = kNasty};
  return r;
}

Status fill(Store& store, double factor) {
  std::mt19937 random(1);
  std::vector<MeasureRecord> records;
  for (int j = 0; j < kJobs; ++j) {
    JobRow job{.id = str("j", j + 1),
               .request_id = str(j),
               .trials = 1,
               .search = j % 3 == 0 ? "random" : "bayesian"};
    for (int t = 0; t < kTasksOfAJob; ++t)
      job.tasks.push_back({j == 0 && t == 1 ? str("v1 ", kNasty)
                                            : str("v1 matmul b=1 m=", 16 + j, " n=", 16 + t,
                                                  " k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=b"),
                           kTarget});
    job.submitted_at_us = kBegin + j * 60'000'000LL;
    RETURN_IF_ERROR(store.add_job(job));
    RETURN_IF_ERROR(store.set_job_state(job.id, JobState::kFinished, j == 0 ? kNasty : ""));
    for (int t = 0; t < kTasksOfAJob; ++t) {
      const int n = j == 0 && t == 0 ? kTrials : 1;
      std::vector<TrialRow> trials(static_cast<size_t>(n));
      for (int i = 0; i < n; ++i)
        trials[static_cast<size_t>(i)] = {
            .job_id = job.id,
            .task_index = t,
            .template_name = j == 0 && t == 1 ? kNasty : "matmul_cpu",
            .config = str("tile_m=", 1 << (i % 5), " tile_n=", 8 << (i / 5 % 4), " unroll=", i % 2)};
      RETURN_IF_ERROR(store.add_trials(trials));
      for (int i = 0; i < n; ++i) {
        MeasureRecord r = record_of(trials[static_cast<size_t>(i)].id,
                                    factor * (900 + 4.0 * (random() % 1000) + 3000.0 / (1 + i)),
                                    job.submitted_at_us + i * 50'000);
        if (i % 11 == 10) {
          r.outcome = Outcome::kBuildError;
          r.run_ns.clear(), r.cpu_ns.clear();
          r.message = kNasty;
        }
        records.push_back(r);
      }
      if (n == 1) continue;
      RETURN_IF_ERROR(store.add_records(records));
      records.clear();
      RaceRow race{.job_id = job.id, .winner_trial_id = trials[3].id, .tie_set = {trials[3].id}};
      for (int f = 0; f < 3; ++f) {
        RaceFinalist finalist{.trial_id = trials[static_cast<size_t>(f + 3)].id};
        for (int s = 0; s < 27; ++s) {
          finalist.samples_ns.push_back(factor * (850 + 40.0 * f + random() % 20));
          finalist.sentinel_ns.push_back(500);
          finalist.process.push_back(s / 3);
        }
        race.finalists.push_back(finalist);
      }
      race.time_ns = factor * 858, race.time_low_ns = factor * 851, race.time_high_ns = factor * 868;
      race.ratio = 1.7, race.ratio_low = 1.6, race.ratio_high = 1.8;
      race.default_trial_id = trials[5].id, race.default_time_ns = factor * 1400;
      race.environment.hardware = "machine";
      race.finished_at_us = job.submitted_at_us + 60'000'000;
      RETURN_IF_ERROR(store.add_race(race));
    }
  }
  return store.add_records(records);
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "fill_database: expected FILE [FACTOR]\n");
    return 2;
  }
  const auto store = tuner::Store::open(argv[1], tuner::Store::Mode::kWrite);
  const tuner::Status done = store ? tuner::fill(**store, argc > 2 ? std::atof(argv[2]) : 1) : store.status();
  if (!done) std::fprintf(stderr, "fill_database: %s\n", done.message().c_str());
  return done ? 0 : 1;
}
