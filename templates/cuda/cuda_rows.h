// What the templates that work row by row on a GPU share: how a row is dealt to threads, where it stays
// between two passes over it, and how a reduction over it is put together.
//
// A block works on `rows` rows, threadIdx.y one each; the threads of threadIdx.x share a row:
//
//   column = (chunk * threads + thread) * vector + lane
//
// so that neighbouring threads read neighbouring vectors. A chunk is what all threads of a row read at once.
// A reduction over a row has two stages: each thread sums up its own columns in a register, then the threads
// combine (by warp shuffles, and through shared memory above 32 threads).
#pragma once

#include <cstdint>
#include <optional>

#include "compiler_core/schedule/schedule.h"
#include "compiler_core/target.h"
#include "templates/cuda/cuda_schedule.h"
#include "templates/schedule_template.h"
#include "templates/space/knob.h"

namespace tuner::cuda {

// Where a row stays between passes over it. The order is that of the knob.
enum class RowKept : uint8_t {
  kRegisters,  // each thread keeps its own columns; for rows that are not long
  kShared,     // in shared memory, each thread its own columns again: no barrier is needed
  kNowhere,    // read again from global memory, mostly from the caches
};

struct RowKnobs {
  ChoiceKnob threads, rows, vector, loads;
  std::optional<CategoryKnob> kept;  // none with a single pass: there is nothing to keep
};

// One config in numbers.
struct RowTile {
  int64_t threads, rows, vector;
  int64_t chunks;  // that cover a row
  int64_t loads;   // vectors a thread has under way at once; all chunks of a row kept in registers
  RowKept kept;
};

// CUDA targets, float32.
Support supports_rows(const Target& t, DType dtype);
// A decent tile for [rows, columns] before any tuning. `passes`: how often a row is read. `loads` as the
// knob.
RowTile first_row_tile(const Target& t, int64_t rows, int64_t columns, int passes);
// Declares the knobs and ties them; that tile is the default.
RowKnobs declare_rows(ConfigSpace& space, const Target& t, int64_t rows, int64_t columns, int passes);
RowTile row_tile(const RowKnobs& k, const Config& c, int64_t columns);

// --- steps of a schedule, in the order they are called ---

// Lays t[.., columns] out as [.., chunks, threads, vector], zeros beyond the columns, and lets all readers
// use that; t itself is computed there if it was computed here.
Tensor by_threads(Schedule& s, const Tensor& t, const RowTile& tile);
// Splits the reduction `total` over columns (its only reduce axis): returns the sums of each thread, which
// `total` then combines.
Tensor sums_of_threads(Schedule& s, const Tensor& total, const RowTile& tile);
// The loop over rows of an output in blocks and threads. Returns that of the threads: what a row needs is
// computed in it.
Axis place_rows(Schedule& s, Axis rows, const RowTile& tile);
// The loop over columns of an output [rows, columns], inside `row`, shared among the threads; `data` (from
// by_threads) is read ahead.
void place_columns(Schedule& s, const Tensor& out, Axis row, Axis columns, const Tensor& data,
                   const RowTile& tile);
// `total` in every thread of the row, from `sums` (of sums_of_threads), which reads `data`.
void compute_total(Schedule& s, const Tensor& total, const Tensor& sums, const Tensor& data, Axis row,
                   const RowTile& tile);
// A value of each row that every thread computes for itself.
void compute_in_row(Schedule& s, const Tensor& t, Axis row);
// Puts `data` where it is kept; nowhere: its readers read what it is made of. After all readers are placed.
void keep_row(Schedule& s, const Tensor& data, Axis row, const RowTile& tile);

}  // namespace tuner::cuda
