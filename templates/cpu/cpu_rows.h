// Shared by the templates that work row by row on a CPU.
//
// A row is read in steps of `wide` columns, a whole number of vectors. A reduction over a row has two stages.
// First each lane sums its own columns in a register, so there are as many independent additions as vectors.
// Then the lanes are combined, once per row.
//
//   for block of rows                            the threads share the blocks
//     unrolled row i of the block
//       partial[l] = start                       l in 0..wide: vectors of lanes
//       for step: partial[l] += x[i, step*wide + l]
//       total[i] = sum over l of partial[l]      lane by lane, then halves of one vector
//     the next pass, over all rows of the block
//
// Combining the lanes takes ten dependent instructions, and the next step waits for them. With several rows
// in a block, these waits overlap.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler_core/schedule/schedule.h"
#include "compiler_core/target.h"
#include "templates/schedule_template.h"
#include "templates/space/knob.h"

namespace tuner::cpu {

// Accepts CPUs with float32.
Support supports_rows(const Target& t, DType dtype);

// Returns how many whole vectors a row of that many columns takes.
int64_t vectors_of(const Target& t, int64_t columns);
// Declares the knob for the vectors of a step: a power of two up to 16, at most what the row takes.
ChoiceKnob declare_vectors(ConfigSpace& space, const Target& t, int64_t columns, int64_t first);
// Declares the knob for the rows of a block.
ChoiceKnob declare_rows(ConfigSpace& space, int64_t rows, int64_t first);

// --- steps of a schedule ---

// Splits the reduction `total` over columns, its only reduce axis. Returns the sums of the lanes.
Tensor sums_of_lanes(Schedule& s, const Tensor& total, int64_t wide);
// Schedules the loop of `total`, which combines the lanes.
void combine_lanes(Schedule& s, const Tensor& total);
// What a reduction asks the caches for: the elements of `of` that it reads `steps` steps later, at a row's
// end those of the next rows. It pays for rows that come from memory: a CPU's own prefetchers end at a page
// (4 KiB).
struct Ahead {
  Tensor of;
  int64_t lanes;  // of a vector
  int64_t steps;
};
// Schedules the loops of `sums` (made by sums_of_lanes), in registers inside `row`.
void compute_lanes(Schedule& s, const Tensor& sums, const Axis& row, const std::optional<Ahead>& ahead = {});
// Schedules both for each row of the block, with `total` in registers inside `block`. Call it for the last
// reduction of the rows first.
void compute_total(Schedule& s, const Tensor& total, const Tensor& sums, const Axis& block,
                   const std::optional<Ahead>& ahead = {});
// Keeps one value of each row in registers.
void compute_in_rows(Schedule& s, const Tensor& t, const Axis& block);
// Keeps rows that are computed and read several times: in registers, or in memory that stays in the cache.
void keep_rows(Schedule& s, const Tensor& t, const Axis& block, int64_t wide, bool in_registers);
// Splits a stage's loop over columns into steps; all steps are unrolled if the row is in registers. Returns
// the loop of the steps.
Axis step_columns(Schedule& s, const Axis& columns, int64_t wide);
// Shares the rows [rows, columns] of `out` among the threads; if there are few rows, also blocks of their
// columns. `steps` comes from step_columns. Only for templates that need no value of a whole row.
void share_blocks(Schedule& s, const Target& t, const Axis& rows, const Axis& steps);

}  // namespace tuner::cpu
