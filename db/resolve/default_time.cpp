#include "db/resolve/default_time.h"

#include "db/device_records.h"
#include "db/resolve/resolve.h"

namespace tuner {

std::optional<DefaultConfig> default_config(const Workload& workload, const Target& target,
                                            std::string_view algorithms) {
  const Result<Answer> answer = Resolver(nullptr).resolve(workload, target, algorithms);
  if (!answer) return std::nullopt;
  return DefaultConfig{answer->template_name, answer->config, answer->template_version};
}

Status add_default_time(const Store& store, const Workload& workload, const Target& target,
                        std::string_view algorithms, TunedConfig& tuned) {
  // A raced time is compared with the default's in the same race, a trial's with a trial's: never the one
  // with the other.
  if (tuned.default_time_ns > 0 || tuned.certified) return Status::ok();
  const std::optional<DefaultConfig> plain = default_config(workload, target, algorithms);
  if (!plain) return Status::ok();
  const JobRow::Task task{
      .workload_key = tuned.workload_key, .target = tuned.target, .constants = tuned.constants};
  constexpr int kMost = 64;
  ASSIGN_OR_RETURN(
      const std::vector<TrialWithRecord> measured,
      store.trials_of_config(task, plain->template_name, plain->template_version, plain->config, kMost));
  // Under a name that leaves the device open, some may have been measured on another one.
  const std::string device_class = target.family->device_class(tuned.environment.hardware);
  for (const TrialWithRecord& trial : measured) {
    if (!is_of_class(*target.family, device_class, trial.record->environment.hardware)) continue;
    tuned.default_time_ns = record_time_ns(*trial.record);
    tuned.default_trial_id = trial.trial.id;
    break;
  }
  return Status::ok();
}

}  // namespace tuner
