// ReferenceTensor: a value of a graph as the reference computes it: floats of any size as float64, integers
// as they are. Half of what a vector of doubles takes for images of bytes, and no copy where a kernel reads
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "compiler_core/runtime/kernel.h"

namespace tuner {

class ReferenceTensor {
 public:
  ReferenceTensor() = default;
  explicit ReferenceTensor(const graph::TensorType& type);  // its elements are not set
  // Of `type.bytes()` bytes: elements as the model has them.
  static ReferenceTensor of(const graph::TensorType& type, const void* elements);

  const graph::TensorType& type() const { return type_; }
  int64_t elements() const { return type_.elements(); }
  void* data() const { return memory_.data(); }
  // Requires a float type.
  double* doubles() const { return memory_.as<double>(); }
  double at(int64_t element) const;
  void set(int64_t element, double number) const;  // integers wrap around, as their types do

  // What the value's own type cannot hold becomes infinite or 0, as it does in the library. Requires a float.
  void limit_to_type() const;
  // A copy, each float off by up to `relative` of itself, but small whole numbers.
  ReferenceTensor disturbed(double relative, uint64_t seed) const;

 private:
  graph::TensorType type_;
  AlignedBuffer memory_;
};

// The largest finite number of a float type; its least normal one; the distance of 1 to the next number,
// halved.
double largest_of(DType dtype);
double least_normal_of(DType dtype);
double unit_of(DType dtype);

// The indices of a row-major element: "0, 3, 17".
std::string index_text(int64_t element, const std::vector<int64_t>& shape);

}  // namespace tuner
