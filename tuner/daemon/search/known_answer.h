// What the database answers for a task before a job of it measures anything.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "compiler_core/base/status.h"
#include "db/records.h"

namespace tuner {

struct KnownConfig {
  std::string template_name;
  int template_version = 1;
  std::string config;  // Config::to_text
};
// None: nothing but a default config.
using KnownAnswer = std::function<Result<std::optional<KnownConfig>>(const JobRow::Task&)>;

}  // namespace tuner
