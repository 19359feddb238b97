// A task whose times are a formula: jobs can be run without templates, compilers or devices.
#pragma once

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "db/records.h"
#include "templates/space/knob.h"
#include "tests/support/temporary_folder.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/daemon/tables/work.h"

namespace tuner::testing {

inline const char* const kAnalyticKey =
    "v1 matmul b=1 m=32 n=32 k=32 ta=0 tb=0 bias=0 act=none dtype=float32 const=none";
inline const char* const kAnalyticTarget = "llvm -mcpu=haswell -threads=1";

inline const std::vector<TemplateVersion> kAnalyticTemplates = {{"analytic", 1}};

// 4 knobs, `width` candidates each, the same of every template.
inline Result<TaskSpace> analytic_space(int width,
                                        const std::vector<TemplateVersion>& templates = kAnalyticTemplates) {
  auto space = std::make_shared<ConfigSpace>();
  std::vector<int64_t> candidates;
  for (int i = 0; i < width; ++i) candidates.push_back(i);
  for (const char* knob : {"a", "b", "c", "d"})
    space->choice(knob, candidates).try_first(knob[0] == 'd' ? 1 : 0);
  RETURN_IF_ERROR(space->seal());
  TaskSpace task;
  task.flops = 2 * 32 * 32 * 32;
  for (const TemplateVersion& t : templates) {
    task.search.parts.push_back({t.name, space.get(), {}});
    task.template_versions.push_back(t.version);
  }
  task.owned = space;
  return task;
}

// A bowl with its bottom at (2, 3, 1, 4); every config with a == d fails.
inline MeasureRecord analytic_record(const std::string& trial_id, int attempt,
                                     const std::string& config_text) {
  const Config config = config_from_text(config_text).value();
  const auto square = [&](const char* knob, int64_t bottom) {
    const double x = static_cast<double>(config.at(knob) - bottom);
    return x * x;
  };
  MeasureRecord record;
  record.trial_id = trial_id;
  record.attempt = attempt;
  record.finished_at_us = 1;
  // Whose it is the session says.
  record.environment = {.hardware = "formula", .toolchain = "none", .host = "h"};
  if (config.at("a") == config.at("d")) {
    record.outcome = Outcome::kCrashed;
    record.message = "a == d";
  } else {
    const double ns = 1000 + 100 * (square("a", 2) + square("b", 3) + square("c", 1) + square("d", 4));
    record.run_ns = {ns, ns, ns};
    record.cpu_ns = record.run_ns;
  }
  return record;
}

}  // namespace tuner::testing
