// Shared by the templates that work row by row on a GPU: how a row is dealt to threads, where it stays
// between two passes over it, and how a reduction over it is built.
//
// A block works on `rows` rows, one per threadIdx.y; the threads of threadIdx.x share a row:
//
//   column = (chunk * threads + thread) * vector + lane
//
// So neighbouring threads read neighbouring vectors. A chunk is what all threads of a row read at once. A
// reduction over a row has two stages: each thread sums its own columns in a register, then the threads
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

// Where a row stays between passes over it, in the order of the knob's values.
enum class RowKept : uint8_t {
  kRegisters,  // each thread keeps its own columns; for rows that are not too long
  kShared,     // in shared memory; each thread reads only its own columns, so no barrier is needed
  kNowhere,    // read again from global memory, mostly out of the caches
};

struct RowKnobs {
  ChoiceKnob threads, rows, vector, loads;
  std::optional<CategoryKnob> kept;  // empty with a single pass, where there is nothing to keep
};

// One config in numbers.
struct RowTile {
  int64_t threads, rows, vector;
  int64_t chunks;  // chunks that cover a row
  int64_t loads;   // vectors that a thread loads at once; for rows kept in registers, all chunks
  RowKept kept;
};

// Accepts CUDA targets with float32.
Support supports_rows(const Target& t, DType dtype);
// Returns a decent tile for [rows, columns] without tuning. `passes`: how often a row is read. `loads` has
// the knob's value.
RowTile first_row_tile(const Target& t, int64_t rows, int64_t columns, int passes);
// Declares the knobs and their constraints; first_row_tile() is the default.
RowKnobs declare_rows(ConfigSpace& space, const Target& t, int64_t rows, int64_t columns, int passes);
RowTile row_tile(const RowKnobs& k, const Config& c, int64_t columns);

// --- steps of a schedule, in the order they are called ---

// Lays t[.., columns] out as [.., chunks, threads, vector], with zeros beyond the columns, and lets all
// readers use that. If t was computed here, it is now computed in this layout.
Tensor by_threads(Schedule& s, const Tensor& t, const RowTile& tile);
// Splits the reduction `total` over columns, its only reduce axis. Returns the sums of each thread, which
// `total` then combines.
Tensor sums_of_threads(Schedule& s, const Tensor& total, const RowTile& tile);
// Splits the loop over rows of an output into blocks and threads. Returns the loop of the threads; compute
// what a row needs inside it.
Axis place_rows(Schedule& s, const Axis& rows, const RowTile& tile);
// Shares the loop over columns of an output [rows, columns], inside `row`, among the threads. `data` (from
// by_threads) is read ahead.
void place_columns(Schedule& s, const Tensor& out, const Axis& row, const Axis& columns, const Tensor& data,
                   const RowTile& tile);
// Computes `total` in every thread of the row, from `sums` (of sums_of_threads), which reads `data`.
void compute_total(Schedule& s, const Tensor& total, const Tensor& sums, const Tensor& data, const Axis& row,
                   const RowTile& tile);
// Computes one value of each row; every thread computes it for itself.
void compute_in_row(Schedule& s, const Tensor& t, const Axis& row);
// Puts `data` where it is kept; with kNowhere its readers read what it is made of. Call it after all readers
// are placed.
void keep_row(Schedule& s, const Tensor& data, const Axis& row, const RowTile& tile);

}  // namespace tuner::cuda
