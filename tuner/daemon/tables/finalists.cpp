#include "tuner/daemon/tables/finalists.h"

#include <algorithm>

#include "compiler_core/base/statistics.h"
#include "compiler_core/target.h"

namespace tuner {
namespace {

// Of 50 certified races of 14 finalists and more, on a machine mostly calm, the trials' twelve fastest held
// the winner but for 0.005 % in the mean and 0.17 % at most (eight: 0.035, 0.85 %); the others took a fifth
// of the processes.
constexpr size_t kLeastFinalists = 3, kMostFinalists = 12;

bool has_time(const TrialWithRecord& t, int task_index) {
  return t.trial.task_index == task_index && t.record && t.record->outcome == Outcome::kOk && !t.record->cut;
}

bool same_config(const TrialRow& a, const TrialRow& b) {
  return a.template_name == b.template_name && a.template_version == b.template_version &&
         a.config == b.config;
}

}  // namespace

bool is_raced(std::string_view target_name) {
  const Result<Target> target = parse_target(target_name);
  return target && target->family->races();
}

std::optional<TrialRow> stored_answer(const std::vector<TrialWithRecord>& job, int task_index,
                                      const TrialWithRecord& known, const TunedConfig& best,
                                      const std::set<std::string>& answers) {
  const TrialWithRecord* measured = nullptr;  // by this job
  for (const TrialWithRecord& t : job)
    if (has_time(t, task_index)) measured = &t;
  if (best.certified && known.record) {
    const Environment& then = best.environment;
    const bool as_today =
        measured == nullptr || (measured->record->environment.toolchain == then.toolchain &&
                                measured->record->environment.hardware == then.hardware &&
                                measured->record->environment.harness_abi == then.harness_abi);
    return as_today ? std::optional(known.trial) : std::nullopt;
  }
  for (const TrialWithRecord& t : job)
    if (answers.contains(t.trial.id) && t.record && t.record->outcome == Outcome::kOk) return t.trial;
  return std::nullopt;
}

Finalists choose_finalists(std::vector<TrialWithRecord> trials, int task_index, const TrialWithRecord& known,
                           const std::optional<DefaultConfig>& plain, const std::set<std::string>& answers,
                           const std::optional<TrialRow>& stored) {
  std::vector<TrialRow> right_answers;  // a disturbed moment may have cut them
  for (const TrialWithRecord& t : trials)
    if (answers.contains(t.trial.id) && t.record && t.record->outcome == Outcome::kOk)
      right_answers.push_back(t.trial);
  std::erase_if(trials, [&](const TrialWithRecord& t) { return !has_time(t, task_index); });
  const auto is_known = [&](const TrialWithRecord& t) { return same_config(t.trial, known.trial); };
  if (std::ranges::none_of(trials, is_known)) trials.push_back(known);
  std::ranges::stable_sort(trials, {}, [](const TrialWithRecord& t) { return record_time_ns(*t.record); });

  Finalists out;
  const auto add = [&](const TrialRow& trial) {
    if (std::ranges::none_of(out.trials, [&](const TrialRow& f) { return same_config(f, trial); }))
      out.trials.push_back(trial);
  };
  const double limit_ns = median_interval(trials.front().record->run_ns).high;
  for (const TrialWithRecord& t : trials) {
    if (out.trials.size() == kMostFinalists) break;
    if (out.trials.size() < kLeastFinalists || median_interval(t.record->run_ns).low <= limit_ns)
      add(t.trial);
  }
  for (const TrialWithRecord& t : trials)
    if (is_known(t)) add(t.trial);
  for (const TrialRow& answer : right_answers) add(answer);
  if (stored)
    for (const TrialRow& t : out.trials)
      if (same_config(t, *stored)) out.stored_trial_id = t.id;
  if (!plain) return out;
  const auto is_default = [&](const TrialWithRecord& t) { return plain->is(t.trial); };
  if (const auto found = std::ranges::find_if(trials, is_default); found != trials.end()) add(found->trial);
  for (const TrialRow& t : out.trials)
    if (plain->is(t)) out.default_trial_id = t.id;
  return out;
}

std::set<std::string> answers_tried(const std::vector<TrialWithRecord>& job,
                                    const std::vector<ProposalRow>& proposals, int task_index) {
  std::set<std::string> ids;
  for (const ProposalRow& p : proposals) {
    if (p.task_index != task_index || p.asked > 0) continue;
    for (const TrialWithRecord& t : job)
      if (t.trial.seq >= p.first_trial_seq && t.trial.seq < p.first_trial_seq + p.count)
        ids.insert(t.trial.id);
  }
  return ids;
}

bool is_settled(const std::vector<TrialWithRecord>& job, int task_index, const TunedConfig& best) {
  return best.certified && std::ranges::none_of(job, [&](const TrialWithRecord& t) {
           return has_time(t, task_index) && t.record_id > best.race_id &&
                  record_time_ns(*t.record) < best.time_ns;
         });
}

}  // namespace tuner
