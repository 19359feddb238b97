// Judges what a step of a library computed against the reference.
//
// An element is right if it is near the reference's: within 1e-4 (more where floats of 16 bits are rounded)
// of its own size, or of the size that elements of the value have. It is right, too, if a computation in the
// model's types could have made it: if it lies within what the reference makes of the same inputs when each
// is off by some roundings. So a sum of large numbers that cancel, a sine of a large number, and a number on
// the border between two integers are judged by what their types can do.
#pragma once

#include <functional>
#include <optional>

#include "compiler_core/base/status.h"
#include "tuner/compile/reference_cone.h"

namespace tuner {

struct Verdict {
  double error = 0;  // the largest of all elements, relative to the largest element; infinite: not a number
  // The worst element that is wrong; nothing: all are right.
  struct Wrong {
    int64_t element = 0;
    double found = 0, expected = 0, allowed = 0;
  };
  std::optional<Wrong> wrong;
  size_t num_wrong = 0;
  double accepts = 0;  // the error of the largest element that would accept all of them; infinite: none would
};

struct JudgeOptions {
  double accepted = 0;  // an error that the user accepts, of the largest element; 0: none
  std::function<bool()> stop = [] { return false; };  // asked between computations
};

// The relative error that is always allowed in this cone.
double allowed_error(const ReferenceCone& cone);

// Computes the cone and judges `found`, elements as the library has them. Aborted: `stop` said so. Other
// errors as compute_cone().
Result<Verdict> judge_step(const graph::Graph& model, const ReferenceCone& cone, const KnownValues& known,
                           const void* found, ReferencePrograms& programs, const JudgeOptions& options);

}  // namespace tuner
