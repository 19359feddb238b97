#include "db/resolve/locked.h"

#include <algorithm>

#include "db/device_records.h"
#include "db/resolve/default_time.h"

namespace tuner {
namespace {

// The target itself, the one that its name stands for, and two whose caches hold nothing or everything.
std::vector<Target> beside_any_caches(const Target& target) {
  constexpr int64_t kEverything = int64_t{1} << 40;
  std::vector<Target> targets{target};
  if (Result<Target> named = parse_target(target.name())) targets.push_back(*std::move(named));
  for (const int64_t bytes : {int64_t{0}, kEverything}) {
    targets.push_back(target);
    targets.back().l1d_bytes = targets.back().l2_bytes = targets.back().l3_bytes = bytes;
  }
  return targets;
}

Status check_algorithm(const Answer& answer, std::string_view algorithms) {
  const std::vector<std::string> allowed = templates_of(algorithms);
  if (allowed.empty() || std::ranges::find(allowed, answer.template_name) != allowed.end())
    return Status::ok();
  const AnyTemplate* const t = find_template(answer.template_name);
  return not_found("template ", answer.template_name, ", which computes by ",
                   t == nullptr ? "nothing known here" : t->algorithm(), "; allowed is ", algorithms);
}

bool is_of(const TunedConfig& tuned, const Answer& answer) {
  return tuned.template_name == answer.template_name && tuned.template_version == answer.template_version &&
         tuned.config == answer.config;
}

// NotFound: nothing was measured.
Result<TunedConfig> measured_of(const Store& store, const TargetFamily& family, std::string_view algorithms,
                                Constants constants, bool counted, const Answer& answer) {
  const JobRow::Task task{
      .workload_key = answer.workload_key, .target = answer.target, .constants = constants};
  Result<TunedConfig> best = best_on_device(store, task, templates_of(algorithms), counted);
  if (!best || is_of(*best, answer)) return best;
  best = store.measured_config(task, answer.template_name, answer.template_version, answer.config);
  if (best || best.status().code() != StatusCode::kNotFound) return best;
  ASSIGN_OR_RETURN(const std::vector<RecordsElsewhere> elsewhere,
                   records_elsewhere(store, task, /*has_own=*/false));
  for (const RecordsElsewhere& records : elsewhere) {
    Result<TunedConfig> found =
        store.measured_config(records.task, answer.template_name, answer.template_version, answer.config);
    if (!found && found.status().code() == StatusCode::kNotFound) continue;
    if (!found || is_of_class(family, records.device_class, found->environment.hardware)) return found;
  }
  return best;
}

}  // namespace

Result<Answer> locked_answer(const AnswerLock& lock, const Workload& workload, const Target& target,
                             std::string_view algorithms, Constants constants, std::string_view fix) {
  const LockedTask task = locked_task(workload, target, algorithms, constants);
  const LockEntry* entry = lock.find(task);
  // What is locked for any device is locked for each.
  if (const std::string any = target.family->any_device(target); entry == nullptr && !any.empty()) {
    LockedTask wide = task;
    wide.target = any;
    entry = lock.find(wide);
  }
  if (entry == nullptr) return lock.missing(task, fix);
  Answer answer;
  answer.kind = AnswerKind::kLocked;
  answer.workload_key = task.workload_key;
  answer.target = task.target;
  answer.template_name = entry->choice.template_name;
  answer.template_version = entry->choice.template_version;
  answer.config = entry->choice.config;
  answer.locked_at = lock.place(*entry);
  Status usable = check_algorithm(answer, algorithms);
  if (usable) usable = kernel_of(answer, workload, target).status();
  if (!usable)
    return not_found(answer.locked_at, ": ", described(task), " is locked to ", usable.message(),
                     ". To choose anew: ", fix);
  return answer;
}

void add_measured(const Store& store, const Workload& workload, const Target& target,
                  std::string_view algorithms, Constants constants, bool count_outcomes, Answer& answer) {
  const Constants kind = workload.has_constants() ? constants : Constants::kWarm;
  Result<TunedConfig> found = measured_of(store, *target.family, algorithms, kind, count_outcomes, answer);
  Status status = found.status();
  if (found && count_outcomes) status = add_default_time(store, workload, target, algorithms, *found);
  if (!status && status.code() != StatusCode::kNotFound)
    answer.note = str("what was measured of it cannot be read: ", status.message());
  if (!found) return;
  if (const Result<TrialWithRecord> trial = store.trial(found->trial_id))
    found->trial_name = trial->trial.name();
  answer.rests_on = {{found->trial_id, found->workload_key, found->target, found->time_ns,
                      found->finished_at_us, found->trial_name}};
  answer.tuned = *std::move(found);
}

Result<ResolvedKernel> locked_kernel(const Answer& answer, const Workload& workload, const Target& target) {
  Answer asked = answer;
  asked.kind = AnswerKind::kExact;
  std::optional<Status> first;
  for (const Target& beside : beside_any_caches(target)) {
    Result<ResolvedKernel> kernel = kernel_of(asked, workload, beside);
    if (kernel) return kernel;
    if (!first) first = kernel.status();
  }
  return *first;
}

}  // namespace tuner
