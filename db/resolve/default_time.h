// Finds a task's time with its default config, which a gain is measured against.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/store.h"
#include "templates/workload/workload.h"

namespace tuner {

// The config that a build uses if there are no records.
struct DefaultConfig {
  std::string template_name, config;
  int template_version = 1;
  bool is(const TrialRow& trial) const {
    return trial.template_name == template_name && trial.template_version == template_version &&
           trial.config == config;
  }
};
// Returns that of the first template that serves the task; nothing if no template does.
std::optional<DefaultConfig> default_config(const Workload& workload, const Target& target,
                                            std::string_view algorithms = {});

// Fills default_time_ns and default_trial_id of an answer that no race certified. It takes the fastest
// correct, uncut trial of the default config, whatever its job. Both stay empty if there is none.
Status add_default_time(const Store& store, const Workload& workload, const Target& target,
                        std::string_view algorithms, TunedConfig& tuned);

}  // namespace tuner
