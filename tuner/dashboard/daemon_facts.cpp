#include "tuner/dashboard/daemon_facts.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/convert.h"
#include "tuner/client/daemon_client.h"
#include "tuner/client/job_list.h"
#include "tuner/dashboard/fact_json.h"
#include "tuner/text/facts.h"

namespace tuner::dashboard {
namespace {

using nlohmann::ordered_json;
using Steady = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kJobsFor{1'000},
    kLookFor{300};  // what was told is told again for so long
constexpr double kListLimitS = 3;
constexpr size_t kMostCurves = 256, kMostPoints = 4'000;

using Jobs = std::shared_ptr<const std::vector<ListedJob>>;

Status read_races(const v1::RacesReply& reply, std::vector<RaceRow>& races) {
  for (const v1::StoredRace& sent : reply.races()) {
    ASSIGN_OR_RETURN(RaceRow race, from_proto(sent));
    races.push_back(std::move(race));
  }
  return Status::ok();
}

Result<ordered_json> rows_of(const v1::RecordsReply& reply, ordered_json (*row)(const TrialWithRecord&)) {
  ordered_json rows = ordered_json::array();
  for (const v1::TrialResult& sent : reply.results()) {
    ASSIGN_OR_RETURN(const TrialWithRecord result, from_proto(sent));
    rows.push_back(row(result));
  }
  return rows;
}

// An older daemon is no failure of ours, and the connection to it is as good as before.
Status refused_politely(const Status& told) {
  return is_of_older_daemon(told) ? unavailable(told.message()) : told;
}

// What was seen of a job while it ran.
struct Curve {
  struct Point {
    int64_t id = 0, trials = 0;
    int task = 0;
    double best_ns = 0;
  };
  std::vector<Point> points;
};

class DaemonFacts final : public FactSource {
 public:
  DaemonFacts(std::string name, std::unique_ptr<LiveDaemon> daemon)
      : name_(std::move(name)), daemon_(std::move(daemon)) {}

  std::string name() const override { return "daemon " + name_; }
  Result<std::string> jobs(const Part& part, const Tenant& tenant) const override;
  Result<std::string> job(const std::string& id, const Tenant& tenant) const override;
  Result<std::string> curve(const std::string& id, const After& after, const Tenant& tenant) const override;
  Result<std::string> answers(const Part& part) const override;
  Result<std::string> task(const TaskName& task, const Tenant&) const override;
  Result<std::string> race(const std::string& job, int64_t id, const Tenant& tenant) const override;
  Result<std::string> records(const TaskName& task, const After& after, const Tenant&) const override;
  Result<std::string> workers(const Tenant&) const override;
  Result<std::string> mark() const override;
  Result<std::string> submit(const std::string& job_file, bool only_check) override {
    return daemon_->submit(job_file, only_check);
  }
  Result<std::string> cancel(const std::string& job) override { return daemon_->cancel(job); }
  Result<std::string> tune_on(const TaskName& task, int more) override;
  Result<std::string> tune_job_on(const std::string& id, int more, const Tenant& tenant) override {
    ASSIGN_OR_RETURN(const ListedJob job, seen_job(id, tenant));
    return daemon_->submit_job(job_on(job.job, job.done, more));
  }
  Result<std::string> verify(const TaskName&) override { return on_its_host("checks times"); }
  Result<Download> library(const TaskName&) override { return on_its_host("builds libraries"); }

 private:
  static Status on_its_host(const char* what) {
    return unavailable("only the page of a database ", what,
                       ". On the daemon's host: tuner dashboard --db FILE");
  }
  Result<Jobs> all_jobs() const;
  Result<ListedJob> seen_job(const std::string& id, const Tenant& tenant) const;
  Status look() const;
  // What the daemon said of running jobs since the page was opened: for those of older versions.
  Result<std::string> seen_curve(const std::string& id, const After& after, JobState state) const;
  // The answers of all jobs, each task once.
  Result<std::vector<TunedConfig>> all_answers() const;

  const std::string name_;
  const std::unique_ptr<LiveDaemon> daemon_;
  mutable std::mutex mutex_;
  mutable Jobs jobs_;
  mutable Steady::time_point jobs_told_, looked_;
  mutable std::map<std::string, Curve> curves_;
  mutable int64_t latest_point_ = 0;
  mutable std::string mark_;
};

Result<Jobs> DaemonFacts::all_jobs() const {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_ != nullptr && Steady::now() - jobs_told_ < kJobsFor) return jobs_;
  }
  std::vector<ListedJob> all;
  RETURN_IF_ERROR(daemon_->with([&](const DaemonClient& client) -> Status {
    ASSIGN_OR_RETURN(all, listed_jobs(client, /*counted=*/false));
    return Status::ok();
  }));
  const std::lock_guard lock(mutex_);
  jobs_ = std::make_shared<const std::vector<ListedJob>>(std::move(all));
  jobs_told_ = Steady::now();
  return jobs_;
}

Result<ListedJob> DaemonFacts::seen_job(const std::string& id, const Tenant& tenant) const {
  ASSIGN_OR_RETURN(const Jobs all, all_jobs());
  for (const ListedJob& job : *all)
    if (job.job.id == id && sees(tenant, job.job)) return job;
  return no_such_job(id);
}

Result<std::string> DaemonFacts::tune_on(const TaskName& task, int more) {
  ASSIGN_OR_RETURN(const JobRow usual, usual_job(task));
  ASSIGN_OR_RETURN(const Jobs all, all_jobs());
  const auto before =
      std::ranges::find_if(*all, [&](const ListedJob& job) { return is_same_search(job.job, usual); });
  return daemon_->submit_job(job_on(usual, before == all->end() ? 0 : before->done, more));
}

Result<std::string> DaemonFacts::jobs(const Part& part, const Tenant& tenant) const {
  ASSIGN_OR_RETURN(const Jobs all, all_jobs());
  std::vector<std::string> rows;
  for (auto job = all->rbegin(); job != all->rend(); ++job)
    if (sees(tenant, job->job))
      rows.push_back(one_line(
          job_row(job->job, std::string(job_state_name(job->job.state)), job->job.message, job->done)));
  return list_text("jobs", rows, part);
}

Result<std::string> DaemonFacts::job(const std::string& id, const Tenant& tenant) const {
  ASSIGN_OR_RETURN(const ListedJob job, seen_job(id, tenant));
  ordered_json out = job_row(job.job, std::string(job_state_name(job.job.state)), job.job.message, job.done);
  ordered_json tasks = ordered_json::array();
  for (size_t i = 0; i < job.job.tasks.size() && i < Part::kMost; ++i) {
    const auto tuned = job.tuned.find(i);
    tasks.push_back(task_row(job.job.tasks[i], tuned == job.tuned.end() ? nullptr : &tuned->second));
  }
  out["tasks"] = tasks;
  std::vector<RaceRow> races;
  const Status told = daemon_->with([&](const DaemonClient& client) -> Status {
    ASSIGN_OR_RETURN(const v1::RacesReply reply, client.races(id));
    return read_races(reply, races);
  });
  if (!told && !is_of_older_daemon(told)) return told;
  out["races"] = races_of_job(races);
  return one_line(out);
}

// Adds what the daemon says of running jobs to their curves.
Status DaemonFacts::look() const {
  {
    const std::lock_guard lock(mutex_);
    if (Steady::now() - looked_ < kLookFor) return Status::ok();
    looked_ = Steady::now();
  }
  v1::ListReply reply;
  RETURN_IF_ERROR(daemon_->with([&](const DaemonClient& client) -> Status {
    ASSIGN_OR_RETURN(reply, client.known_jobs(kListLimitS));
    return Status::ok();
  }));
  const std::lock_guard lock(mutex_);
  mark_ = str(reply.daemon().results(), " ", reply.jobs_size());
  for (const v1::JobSummary& job : reply.jobs()) {
    mark_ += str(" ", static_cast<int>(job.state()));
    const v1::Progress& now = job.progress();
    if (now.best_ns() <= 0 || (curves_.size() >= kMostCurves && !curves_.contains(job.job_id()))) continue;
    std::vector<Curve::Point>& points = curves_[job.job_id()].points;
    if (!points.empty() && points.back().trials == now.trials_done()) continue;
    if (points.size() >= kMostPoints) points.erase(points.begin(), points.begin() + kMostPoints / 2);
    points.push_back({++latest_point_, now.trials_done(), now.task_index(), now.best_ns()});
  }
  return Status::ok();
}

Result<std::string> DaemonFacts::curve(const std::string& id, const After& after,
                                       const Tenant& tenant) const {
  ASSIGN_OR_RETURN(const ListedJob job, seen_job(id, tenant));
  v1::RecordsReply reply;
  const Status told = daemon_->with([&](const DaemonClient& client) -> Status {
    ASSIGN_OR_RETURN(reply, client.records(id, after.id, after.count));
    return Status::ok();
  });
  if (is_of_older_daemon(told)) return seen_curve(id, after, job.job.state);
  RETURN_IF_ERROR(told);
  ASSIGN_OR_RETURN(const ordered_json points, rows_of(reply, curve_point));
  return one_line({{"points", points},
                   {"next", reply.next()},
                   {"more", reply.more()},
                   {"state", job_state_name(job.job.state)}});
}

Result<std::string> DaemonFacts::seen_curve(const std::string& id, const After& after, JobState state) const {
  RETURN_IF_ERROR(look());
  const std::lock_guard lock(mutex_);
  ordered_json points = ordered_json::array();
  int64_t next = after.id;
  bool more = false;
  if (const auto found = curves_.find(id); found != curves_.end())
    for (const Curve::Point& p : found->second.points) {
      if (p.id <= after.id) continue;
      more = points.size() >= static_cast<size_t>(after.count);
      if (more) break;
      points.push_back({p.id, p.task, p.best_ns, "best", "", p.trials});
      next = p.id;
    }
  return one_line({{"points", points}, {"next", next}, {"more", more}, {"state", job_state_name(state)}});
}

Result<std::string> DaemonFacts::records(const TaskName& name, const After& after, const Tenant&) const {
  ASSIGN_OR_RETURN(const JobRow::Task task, task_of_name(name));
  v1::RecordsReply reply;
  RETURN_IF_ERROR(refused_politely(daemon_->with([&](const DaemonClient& client) -> Status {
    ASSIGN_OR_RETURN(reply, client.records(task, after.id, after.count));
    return Status::ok();
  })));
  ASSIGN_OR_RETURN(const ordered_json rows, rows_of(reply, record_row));
  return one_line({{"records", rows}, {"next", reply.next()}, {"more", reply.more()}});
}

Result<std::string> DaemonFacts::race(const std::string& job, int64_t id, const Tenant& tenant) const {
  RETURN_IF_ERROR(seen_job(job, tenant).status());
  v1::RacesReply reply;
  RETURN_IF_ERROR(refused_politely(daemon_->with([&](const DaemonClient& client) -> Status {
    ASSIGN_OR_RETURN(reply, client.races(job, id));
    return Status::ok();
  })));
  if (reply.races_size() != 1) return failed(name_, ": sent ", reply.races_size(), " races, expected one");
  const v1::StoredRace& sent = reply.races(0);
  ASSIGN_OR_RETURN(const RaceRow race, from_proto(sent));
  std::vector<TrialRow> trials;
  for (const v1::TrialResult& t : sent.trials()) {
    TrialRow& trial = trials.emplace_back();
    if (t.template_name().empty()) continue;  // it is not there any more
    trial.id = t.trial_name().empty() ? t.trial_id() : t.trial_name();
    trial.template_name = t.template_name();
    trial.config = t.config();
  }
  return one_line(whole_race(race, trials));
}

Result<std::vector<TunedConfig>> DaemonFacts::all_answers() const {
  ASSIGN_OR_RETURN(const Jobs all, all_jobs());
  std::map<std::tuple<std::string, std::string, Constants>, const TunedConfig*> latest;
  for (const ListedJob& job : *all)
    for (const auto& [index, tuned] : job.tuned)
      latest[{tuned.workload_key, tuned.target, tuned.constants}] = &tuned;
  std::vector<TunedConfig> answers;
  answers.reserve(latest.size());
  for (const auto& [key, tuned] : latest) answers.push_back(*tuned);
  return answers;
}

Result<std::string> DaemonFacts::answers(const Part& part) const {
  ASSIGN_OR_RETURN(const std::vector<TunedConfig> all, all_answers());
  std::vector<std::string> rows;
  rows.reserve(all.size());
  for (const TunedConfig& tuned : all) rows.push_back(one_line(answer_row(tuned)));
  return list_text("answers", rows, part);
}

Result<std::string> DaemonFacts::task(const TaskName& task, const Tenant&) const {
  ASSIGN_OR_RETURN(const std::vector<TunedConfig> all, all_answers());
  for (const TunedConfig& tuned : all) {
    if (tuned.workload_key != task.workload || tuned.target != task.target ||
        constants_name(tuned.constants) != task.constants)
      continue;
    ordered_json out = tuned_json(tuned, 0);
    out["answer"] = answer_row(tuned);
    ASSIGN_OR_RETURN(const JobRow::Task row, task_of_name(task));
    std::vector<RaceRow> races;
    const Status told = daemon_->with([&](const DaemonClient& client) -> Status {
      ASSIGN_OR_RETURN(const v1::RacesReply reply, client.races(row));
      return read_races(reply, races);
    });
    if (!told && !is_of_older_daemon(told)) return told;
    out["races"] = races_of_task(races);
    return one_line(out);
  }
  return not_found("nothing correct was measured of this task here. /api/answers lists all that are known");
}

Result<std::string> DaemonFacts::workers(const Tenant&) const {
  ASSIGN_OR_RETURN(const std::string text, daemon_->look());
  ordered_json out = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  out["leases"] = ordered_json::array();
  return one_line(out);
}

Result<std::string> DaemonFacts::mark() const {
  RETURN_IF_ERROR(look());
  const std::lock_guard lock(mutex_);
  return mark_;
}

}  // namespace

std::unique_ptr<FactSource> facts_of_daemon(const std::string& name, std::unique_ptr<LiveDaemon> daemon) {
  return std::make_unique<DaemonFacts>(name, std::move(daemon));
}

}  // namespace tuner::dashboard
