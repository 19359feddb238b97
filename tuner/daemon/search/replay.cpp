#include "tuner/daemon/search/replay.h"

#include <algorithm>
#include <map>

#include "tuner/daemon/search/search_history.h"

namespace tuner {
namespace {

// One task: its trials in the order proposed, its results in the order observed.
class TaskReplay {
 public:
  TaskReplay(const JobRow& job, int index, const TaskSpace& space, SearchStrategy& search)
      : job_(job), index_(index), space_(space), search_(search) {}

  Status add(const TrialWithRecord& t) {
    ASSIGN_OR_RETURN(const Candidate candidate, candidate_of(t.trial));
    PastTrial past{.seq = t.trial.seq, .candidate = candidate};
    if (t.record) past.result = past_result(t.record_id, *t.record);
    history_.add(past);
    rows_.emplace(t.trial.seq, t.trial);
    return Status::ok();
  }

  // False at the first difference, which is then in `report`.
  bool play(const ProposalRow& p, ReplayReport& report) {
    const SearchHistory::Call call = history_.play(p, search_);
    results_seen_ += static_cast<int64_t>(call.shown);
    report.results += static_cast<int64_t>(call.shown);
    ++proposals_;
    ++report.proposals;
    for (size_t i = 0; i < std::max(call.now.size(), call.then.size()); ++i) {
      ReplayDifference d{.task_index = index_, .proposal = proposals_, .results_seen = results_seen_};
      if (i < call.then.size()) {
        const TrialRow& row = rows_.at(call.then[i].seq);
        d.trial = row.name();
        d.expected = {row.template_name + " " + row.config, row.rng_counter, row.model_digest};
      } else {
        d.expected.what = "nothing";
      }
      if (i < call.now.size()) {
        const SearchSpace::Part& part = space_.search.parts[static_cast<size_t>(call.now[i].template_index)];
        d.found = {part.template_name + " " + part.space->at(call.now[i].config).to_text(),
                   search_.rng_counter(), search_.model_digest()};
      } else {
        d.found.what = "nothing";
      }
      if (!(d.expected == d.found)) {
        report.difference = std::move(d);
        return false;
      }
      ++report.trials;
    }
    return true;
  }

 private:
  Result<Candidate> candidate_of(const TrialRow& row) const {
    const std::vector<SearchSpace::Part>& parts = space_.search.parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].template_name != row.template_name) continue;
      if (space_.template_versions[i] != row.template_version)
        return not_found("job ", job_.id, " cannot be replayed: trial ", row.id, " is of version ",
                         row.template_version, " of template ", row.template_name,
                         ", this program has version ", space_.template_versions[i]);
      const Result<Config> config = config_from_text(row.config);
      const Result<ConfigIndex> index = config ? parts[i].space->index_of(*config) : config.status();
      if (!index)
        return not_found("job ", job_.id, " cannot be replayed: trial ", row.id,
                         " is not of the space of this ", "program: ", index.message());
      return Candidate{static_cast<int>(i), *index};
    }
    return not_found("job ", job_.id, " cannot be replayed: trial ", row.id, " is of template ",
                     row.template_name, ", which does not serve its task in this program");
  }

  const JobRow& job_;
  const int index_;
  const TaskSpace& space_;
  SearchStrategy& search_;
  SearchHistory history_;
  std::map<int64_t, TrialRow> rows_;  // by seq
  int64_t proposals_ = 0, results_seen_ = 0;
};

}  // namespace

Result<ReplayReport> replay_job(const Store& store, const JobRow& job, const TaskSpaceFactory& make_space,
                                const StrategyFactory& make_search, const PriorsFactory& make_priors) {
  ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> trials, store.trials(job.id));
  ASSIGN_OR_RETURN(const std::vector<ProposalRow> proposals, store.proposals(job.id));
  if (proposals.empty() && !trials.empty())
    return not_found("job ", job.id, " cannot be replayed: its ", trials.size(),
                     " trials are from before proposals were stored (schema version 1), or imported");
  ReplayReport report;
  for (int index = 0; index < static_cast<int>(job.tasks.size()); ++index) {
    std::vector<ProposalRow> own;
    for (const ProposalRow& p : proposals)
      if (p.task_index == index) own.push_back(p);
    if (own.empty()) continue;
    ASSIGN_OR_RETURN(TaskSpace space, make_space(job.tasks[static_cast<size_t>(index)]));
    if (const int64_t donors = own.front().donor_record_id; donors > 0) {
      if (!make_priors)
        return not_found("job ", job.id, " cannot be replayed: it was warmed by other records, which this ",
                         "program cannot draw again");
      ASSIGN_OR_RETURN(space.search.priors,
                       make_priors(job.tasks[static_cast<size_t>(index)], space.search, donors));
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<SearchStrategy> search,
                     make_search(job.search, space.search, job.seed));
    TaskReplay replay(job, index, space, *search);
    for (const TrialWithRecord& t : trials)
      if (t.trial.task_index == index) RETURN_IF_ERROR(replay.add(t));
    for (const ProposalRow& p : own)
      if (!replay.play(p, report)) return report;
  }
  return report;
}

}  // namespace tuner
