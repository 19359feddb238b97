// Reference answers on disk. A worker computes one for each (workload, seed), and the runner compares every
// candidate with it.
//
// There are two kinds. kFull holds every element as a double. kChecksums is for answers that cost too much to
// store and to read back after every candidate (above 20 GFLOP of work; in packs above 65,536 elements). It
// sees the answer as a matrix that is about square: the last dimensions give the columns, all others the
// rows; where no dimensions do, rows are cut from the flat answer, and the last may be shorter. It holds the
// sum of every row and of every column, which together cover every element, and 4,096 single elements: all
// corners, elements of every border (first and last index of each dimension), and the rest drawn from a fixed
// seed.
//
// Tolerance of a sum. An element may be off by t = absolute + relative * |reference|. Rounding errors of
// different elements are independent, so a sum of n elements may be off by sqrt(sum of t^2), which grows with
// sqrt(n), not n; one wrong element of size d is therefore seen in its row and its column when d > sqrt(n) *
// t. To form that sum for any tolerance the file also holds, per row and column, the sums of |reference| and
// of reference^2.
// Sums are of the answer as the output's type stores it: rounding to 16 bits errs by up to t itself, and so
// would a sum of exact values by more than sqrt(sum of t^2), two or three times in a thousand rows. Single
// elements are exact. Where elements share an error (OutputFacts), a sum may be off by the sum of their t.
//
// Layout, little-endian: "TUNERREF", u32 version (1), u32 kind, u64 rank, i64 dims[rank], payload of doubles,
// u64 hash of everything before it. Payload: full (kind 1): the elements; checksums (kind 3): u64 number of
// columns, per row {sum, abs sum, square sum}, per column the same, u64 count, per sample {u64 flat index,
// value}. Version 2 has two doubles behind the shape: the absolute and the relative part of this output's own
// tolerance. Kind 2, of before, has as many columns as the last dimension, and does not say so. A torn or
// altered file is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

enum class ReferenceKind : uint32_t { kFull = 1, kChecksums = 3 };

// Above this much work a reference is kept as checksums; in a pack, which travels, above this many elements,
// too.
inline constexpr int64_t kChecksumsAbovePackedElements = 65'536;
inline constexpr double kChecksumsAboveFlops = 20e9;

// The size of such a file.
int64_t reference_file_bytes(const std::vector<int64_t>& shape, ReferenceKind kind);

// What is known of an output beside the exact answer.
struct OutputFacts {
  DType stored_as = DType::kFloat32;
  // Its elements share what they err by, relative to themselves: a row of a softmax is divided by one sum.
  // Then the errors of a sum's elements add up, in place of their squares: the third number is the square of
  // the second.
  bool shares_errors = false;
  // Of this output alone, in place of the task's.
  std::optional<CheckSpec> tolerance = std::nullopt;
};
// Writes the whole file or none (temporary file, rename). answer.size() must be the product of `shape`.
Status write_reference(const std::string& path, std::span<const double> answer,
                       const std::vector<int64_t>& shape, ReferenceKind kind, const OutputFacts& output = {});

// A parsed file. Its spans point into the bytes given to parse_reference(), which must outlive it and be
// aligned to 8 bytes.
struct ReferenceView {
  struct Sums {
    double sum, abs_sum, square_sum;
  };
  struct Sample {
    uint64_t index;
    double value;
  };

  ReferenceKind kind = ReferenceKind::kFull;
  std::vector<int64_t> shape;
  std::optional<CheckSpec> tolerance;  // in place of what a check is told
  std::span<const double> full;
  std::span<const Sums> rows, columns;
  std::span<const Sample> samples;
};
// Failed: it is not a reference file, or torn or altered; the message says which.
Result<ReferenceView> parse_reference(std::string_view bytes);
// The same of bytes that parse_reference() has accepted before: their hash is not computed again.
Result<ReferenceView> parse_verified_reference(std::string_view bytes);

// The result of comparing one output.
struct CheckResult {
  bool ok = true;
  double max_error = 0;  // largest |out - reference| in units of the tolerance; infinity for NaN
  std::string message;   // first wrong element: "out[0, 3, 17, 5] is 1.25, reference 1.5, tolerance 1e-4";
                         // empty when ok
  // Of that element, if it is one and no sum: where it is, and both values as text.
  std::vector<int64_t> index;
  std::string found, expected;
};
// Compares `output` (elements of `dtype`, reference.shape, row-major) with the reference. `name` appears in
// the message.
CheckResult check_output(const ReferenceView& reference, const void* output, DType dtype,
                         const CheckSpec& spec, std::string_view name);

// What an output comes to, for a reference kept as checksums: sums of its rows and columns, and the sampled
// elements, in the reference's order. check_output() adds it up here; a GPU can do so where the output lies.
struct OutputSums {
  std::vector<double> rows, columns, samples;
};
CheckResult check_sums(const ReferenceView& reference, const OutputSums& found, const CheckSpec& spec,
                       std::string_view name);
// Compares only a part of it, which is quick: `most` elements in a row, from a place that `random` decides;
// of a reference kept as checksums, its sampled elements.
CheckResult check_part(const ReferenceView& reference, const void* output, DType dtype, const CheckSpec& spec,
                       std::string_view name, int64_t most, uint64_t random);

}  // namespace tuner
