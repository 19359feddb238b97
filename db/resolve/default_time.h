// What a task takes with its default config: the other half of a gain.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/store.h"
#include "templates/workload/workload.h"

namespace tuner {

// The config that a build gets which knows no record.
struct DefaultConfig {
  std::string template_name, config;
  int template_version = 1;
  bool is(const TrialRow& trial) const {
    return trial.template_name == template_name && trial.template_version == template_version &&
           trial.config == config;
  }
};
// Of the first template that serves the task; none when none does.
std::optional<DefaultConfig> default_config(const Workload& workload, const Target& target,
                                            std::string_view algorithms = {});

// Where the race says nothing of the default, fills default_time_ns and default_trial_id from the fastest
// right and uncut trial of it, whatever job that is of. Both stay empty when there is none.
Status add_default_time(const Store& store, const Workload& workload, const Target& target,
                        std::string_view algorithms, TunedConfig& tuned);

}  // namespace tuner
