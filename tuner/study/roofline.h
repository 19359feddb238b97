// Text of tuner show --as roofline: what bounds a kernel, how far away that is, and whether more search can
// help.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/backend.h"
#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/jobs/tasks.h"

namespace tuner {

// Asks the back end for the machine's peak and bandwidths (Backend::roofs), which measures them if the target
// is this machine. If it knows none, the result has only `recorded_gflops`.
MachineRoofs measure_roofs(const Target& target, DType dtype, double recorded_gflops);
// Returns what its peak is called: "FMA peak" of float32, else "int8 peak".
std::string peak_name(DType dtype);

// Returns the first level that holds that many bytes, memory at the latest; it lives as long as `machine`,
// which must have levels.
const MachineRoofs::Level& level_for(const MachineRoofs& machine, int64_t bytes);

// A summary of a search, by which to judge whether more trials can help.
struct SearchCourse {
  int trials = 0;                    // correct and measured to the end
  double best_ns = 0;                // over all of them
  double best_of_first_half_ns = 0;  // over the earlier half of them
};
// Reads the task's trials in the order of measurement.
Result<SearchCourse> search_course(const CliTask& task, const Store& store);

// True if the template seems to be the limit: a search with at least 64 correct trials gained less than 0.5 %
// in its later half, and its best is still below 85 % of the bound. `share`: its speed over the
// bound, from 0 to 1; 0 if not known.
bool template_is_ceiling(const SearchCourse& course, double share);

// Returns several lines. InvalidArgument if no roofs are known of such targets. `store`: where the course of
// the search is read; null: it is left out. If the task's target is this CPU, measures its peak and
// bandwidths (about 0.2 s per thread); otherwise they come from the record, or are missing.
Result<std::string> roofline_text(const CliTask& task, const ChosenKernel& kernel, const Store* store);

}  // namespace tuner
