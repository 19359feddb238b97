// OperatorFacts: what is known of an operator, in one place. templates/workload/README.md says how to add
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "templates/workload/parts/fields.h"

namespace tuner {

// An element is right when |out - reference| <= absolute + relative * |reference|.
struct Tolerance {
  double absolute = 0, relative = 0;
};

// TaskShape: a workload as others compare it: its dimensions as numbers, and the words that must be equal
// before a config of one workload means anything for another.
struct TaskShape {
  // Operator, types, layouts, transposes, packed operands: "conv2d dtype=float32 layout=NCHW const=weight".
  std::string variant;
  // The real dimensions, each at least 1: of a convolution the output channels, output height, ..., and also
  // strides and groups. An operator always has the same names in the same order.
  std::vector<std::pair<std::string_view, int64_t>> dimensions;
};

// Bytes of the arguments: each read or written once, an accumulated one both.
int64_t argument_bytes(const Program& math);

// W is the operator's workload: a struct with its fields, their default values, and
//   static constexpr std::string_view kOp         its name in keys and job files
//   static constexpr bool kMemoryBound            true: times are compared with bytes, not operations
//   static const OperatorFacts<W>& facts()
// A method with a body says what holds of most operators.
template <class W>
class OperatorFacts {
 public:
  virtual ~OperatorFacts() = default;

  // Its fields, which keys, job files and checks follow.
  virtual void describe(W& w, WorkloadFields& fields) const = 0;
  // Returns what is wrong although each extent, pair, number and name of an operand may be as it is.
  virtual Status check(const W& w) const = 0;

  // The unscheduled math. Arguments are inputs and constants, then "out".
  virtual Program math(const W& w) const = 0;
  // How far a right answer may be off (tolerance.h).
  virtual Tolerance tolerance(const W& w) const = 0;
  // True if elements of an output share what they err by, as those of a row that is divided by one sum.
  virtual bool shares_errors() const { return false; }
  // Of one output, where outputs are allowed different errors. `place`: of math()'s arguments.
  virtual std::optional<Tolerance> output_tolerance(const W& /*w*/, size_t /*place*/) const {
    return std::nullopt;
  }
  // What limits the word "right", for people: "right as the default config is". Empty: nothing does.
  virtual std::string_view caveat(const W& /*w*/) const { return {}; }
  // The bytes of an argument before a call, where the operator says what they are; else numbers are drawn. `place`: of math()'s
  // arguments. And the right answer for an output, where it is brought and not computed.
  virtual std::optional<Result<std::string>> operand(const W& /*w*/, size_t /*place*/,
                                                     uint64_t /*seed*/) const {
    return std::nullopt;
  }
  virtual std::optional<Result<std::string>> answer(const W& /*w*/, size_t /*place*/) const {
    return std::nullopt;
  }
  // What drawn elements of an operand are multiplied by (tolerance.h).
  virtual float drawn_factor(const W& /*w*/, std::string_view /*operand*/) const { return 1; }

  // Operations on elements (Workload::flops()); those that its sums need; and the fewest that any algorithm
  // does.
  virtual int64_t flops(const W& w) const = 0;
  virtual int64_t needed_flops(const W& w) const { return flops(w); }
  virtual double least_operations(const W& w) const {
    return W::kMemoryBound ? 0 : static_cast<double>(flops(w));
  }
  // The fewest bytes that any algorithm moves.
  virtual double least_bytes(const W& w) const { return static_cast<double>(argument_bytes(math(w))); }

  virtual TaskShape shape(const W& w) const = 0;
  // Its extents in the name of a kernel: "128x768".
  virtual std::string shape_name(const W& w) const = 0;
  // The C function that it is, where its user has named it; empty: it has no name of its own.
  virtual std::string own_name(const W& /*w*/) const { return {}; }
};

}  // namespace tuner
