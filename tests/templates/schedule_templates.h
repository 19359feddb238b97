// The templates whose schedules are ours: all but those that pass on what a user wrote, which
// kernel_workload_test.cpp has.
#pragma once

#include <string_view>
#include <vector>

#include "templates/schedule_template.h"

namespace tuner::testing {

inline std::vector<const AnyTemplate*> schedule_templates() {
  std::vector<const AnyTemplate*> found;
  for (const AnyTemplate* t : all_templates())
    if (!t->name().starts_with("source_kernel_")) found.push_back(t);
  return found;
}

}  // namespace tuner::testing
