// The matrices of MatMul and of its forms on integers: those in the last two dimensions, the others
// broadcast; one dimension is a row or a column.
#pragma once

#include "compiler_core/graph/families.h"

namespace tuner::graph {

struct Matrices {
  Shape a, b;    // with two dimensions at least
  Shape batch;   // broadcast
  Shape result;  // without what a or b did not have

  int64_t rows() const { return a[a.size() - 2]; }
  int64_t columns() const { return b.back(); }
};
// InvalidArgument: shapes that no product has.
Result<Matrices> matrices_of(const Shape& a, const Shape& b);

// Reads inputs `a` at [batch.., row, k] and `b` at [batch.., k, column]; the result's place is `i`.
Expr element_a(const Use& use, const MathWriter& m, size_t a, size_t b, const te::Indices& i, const Expr& k);
Expr element_b(const Use& use, const MathWriter& m, size_t a, size_t b, const te::Indices& i, const Expr& k);
// The row and the column of a place of the result. 0 where a, or b, has one dimension.
Expr row_of(const Use& use, size_t a, size_t b, const te::Indices& i);
Expr column_of(const Use& use, size_t b, const te::Indices& i);

}  // namespace tuner::graph
