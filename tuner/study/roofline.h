// tuner show --as roofline: what bounds a kernel, how far from that it is, and whether searching on can help.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/backend.h"
#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

// What the back end knows of the target's machine (Backend::roofs); where it knows nothing, the recorded peak.
MachineRoofs measure_roofs(const Target& target, double recorded_gflops);

// The first level that holds that many bytes. There must be levels.
const MachineRoofs::Level& level_for(const MachineRoofs& machine, int64_t bytes);

// How a search went, as far as the question "can more trials help?" needs it.
struct SearchCourse {
  int trials = 0;                    // right and measured to the end
  double best_ns = 0;                // of all
  double best_of_first_half_ns = 0;  // of the earlier half of them
};
// Of the task's trials in the order they were measured.
Result<SearchCourse> search_course(const CliTask& task, const Store& store);

// The template is taken for the ceiling when a search of at least 64 right trials gained less than 0.5 % in
// its later half and its best is still below 85 % of the bound. `share`: of the bound, 0 when not known.
bool template_is_ceiling(const SearchCourse& course, double share);

// Several lines. Measures this CPU's peak and bandwidths when the task's target is this CPU (about 0.2 s a
// thread); else they are what the record says, or missing.
Result<std::string> roofline_text(const CliTask& task, const ChosenKernel& kernel, const Store* store);

}  // namespace tuner
