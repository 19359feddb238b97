// What the templates that work row by row on a CPU share.
//
// A row is read in steps of `wide` columns, some whole vectors. A reduction over a row has two stages: each
// lane of these vectors sums up its own columns in a register, so that as many additions are under way as
// there are vectors; then the lanes are combined, once a row.
//
//   for block of rows                            the threads share the blocks
//     unrolled row i of the block
//       partial[l] = start                       l in 0..wide: vectors of lanes
//       for step: partial[l] += x[i, step*wide + l]
//       total[i] = sum over l of partial[l]      lane by lane, then halves of one vector
//     the next pass, over all rows of the block
//
// Combining the lanes takes ten dependent instructions, and what follows waits for them: those of the rows of
// a block wait together.
#pragma once

#include <cstdint>

#include "compiler_core/schedule/schedule.h"
#include "compiler_core/target.h"
#include "templates/schedule_template.h"
#include "templates/space/knob.h"

namespace tuner::cpu {

// CPUs, float32.
Support supports_rows(const Target& t, DType dtype);

// Whole vectors a row of that many columns takes.
int64_t vectors_of(const Target& t, int64_t columns);
// Declares the vectors of a step: a power of two up to 16, no more than the row takes.
ChoiceKnob declare_vectors(ConfigSpace& space, const Target& t, int64_t columns, int64_t first);
// Declares the rows of a block.
ChoiceKnob declare_rows(ConfigSpace& space, int64_t rows, int64_t first);

// --- steps of a schedule ---

// Splits the reduction `total` over columns (its only reduce axis): returns the sums of the lanes.
Tensor sums_of_lanes(Schedule& s, const Tensor& total, int64_t wide);
// The loop of `total`, which combines the lanes.
void combine_lanes(Schedule& s, const Tensor& total);
// The loops of `sums` (of sums_of_lanes), in registers inside `row`.
void compute_lanes(Schedule& s, const Tensor& sums, Axis row);
// Both, for each row of the block, `total` in registers inside `block`. Called for the last reduction of the
// rows first.
void compute_total(Schedule& s, const Tensor& total, const Tensor& sums, Axis block);
// A value of each row, in registers.
void compute_in_rows(Schedule& s, const Tensor& t, Axis block);
// Rows that are computed and read several times: in registers, or in memory that stays in the cache.
void keep_rows(Schedule& s, const Tensor& t, Axis block, int64_t wide, bool in_registers);
// The loop over columns of a stage in steps; all its steps are written out when the row is in registers.
// Returns that of the steps.
Axis step_columns(Schedule& s, Axis columns, int64_t wide);
// The rows [rows, columns] of `out`, and where they are few blocks of columns of them, are shared among the
// threads. `steps` is that of step_columns; only for templates that need no value of a whole row.
void share_blocks(Schedule& s, const Target& t, Axis rows, Axis steps);

}  // namespace tuner::cpu
