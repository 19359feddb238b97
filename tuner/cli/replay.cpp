// tuner study replay JOB: plays a job's search again from the database and compares what it proposes.
#include <cstdio>
#include <memory>

#include "tuner/cli/study_commands.h"
#include "tuner/daemon/search/replay.h"
#include "tuner/daemon/search/warm_start.h"
#include "tuner/jobs/job_word.h"
#include "tuner/text/facts.h"
#include "tuner/text/hint.h"

namespace tuner::cli {
namespace {

struct ReplayOptions {
  std::string job, db;
  bool json = false;
};

nlohmann::ordered_json side_json(const ReplayDifference::Side& side) {
  return {{"candidate", side.what}, {"draws", side.rng_counter}, {"model", side.model_digest}};
}

void print_side(const char* name, const ReplayDifference::Side& side) {
  std::printf("  %-9s %s; %s draws, model %s\n", name, side.what.c_str(),
              std::to_string(side.rng_counter).c_str(),
              side.model_digest.empty() ? "none" : side.model_digest.c_str());
}

int run_replay(const ReplayOptions& options) {
  const Result<std::unique_ptr<Store>> store = Store::open(options.db, Store::Mode::kRead);
  if (!store) return report(store.status());
  const Result<std::string> job_id = job_of_word(options.job, store->get());
  if (!job_id) return report(job_id.status());
  const Result<JobRow> job = (*store)->job(*job_id);
  if (!job) return report(job.status());
  const PriorsFactory priors = [&](const JobRow::Task& task, const SearchSpace& space, int64_t donors) {
    return warm_start(**store, task, space, donors);
  };
  const Result<ReplayReport> played = replay_job(**store, *job, make_task_space, make_strategy, priors);
  if (!played) return report(played.status());
  const ReplayReport& r = *played;
  if (options.json) {
    nlohmann::ordered_json j{{"job", job->id},           {"search", job->search}, {"seed", job->seed},
                             {"proposals", r.proposals}, {"trials", r.trials},    {"results", r.results},
                             {"difference", nullptr}};
    if (r.difference)
      j["difference"] = {{"trial", r.difference->trial},
                         {"task", r.difference->task_index},
                         {"proposal", r.difference->proposal},
                         {"results_seen", r.difference->results_seen},
                         {"expected", side_json(r.difference->expected)},
                         {"found", side_json(r.difference->found)}};
    std::printf("%s\n", pretty(j).c_str());
  } else if (r.difference) {
    const ReplayDifference& d = *r.difference;
    std::printf("job %s differs first at %s%s: task %d, proposal %s, after %s results\n", job->id.c_str(),
                d.trial.empty() ? "a trial that was not stored" : "trial ", d.trial.c_str(), d.task_index,
                std::to_string(d.proposal).c_str(), std::to_string(d.results_seen).c_str());
    print_side("expected", d.expected);
    print_side("found", d.found);
    std::printf(
        "  why       the search %s, its templates or its donors are others than when the job ran; or rows "
        "were "
        "changed since: %s\n",
        job->search.c_str(), command_line("records check").c_str());
  } else {
    std::printf("job %s: %s, seed %s, gives the same %s trials again in %s proposals, bit for bit\n",
                job->id.c_str(), job->search.c_str(), std::to_string(job->seed).c_str(),
                std::to_string(r.trials).c_str(), std::to_string(r.proposals).c_str());
  }
  return r.difference ? kExitFailed : kExitDone;
}

}  // namespace

void add_replay_command(Command study, CommandContext& context) {
  auto options = std::make_shared<ReplayOptions>();
  const Command command = add_command(
      study, context, "replay",
      "Play a job's search again from the database: the same seed and results give the same trials",
      [options] { return run_replay(*options); });
  command
      .add_option("JOB", options->job,
                  "The job, as tuner jobs lists it, or its job file: the newest job of that")
      .required();
  add_db_option(command, options->db);
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
