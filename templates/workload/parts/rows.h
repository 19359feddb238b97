// What operators on the rows of a matrix [rows, columns] share. They do little arithmetic per element, so
// traffic counts (Workload::bytes()). None of their operands is worth packing ahead, so none is constant.
#pragma once

#include <functional>
#include <string>

#include "compiler_core/te/te.h"
#include "templates/workload/parts/operator.h"

namespace tuner {

// "rows" and "columns", the first fields of all of them; and the last one, "dtype", which is float32.
void describe_matrix(int64_t& rows, int64_t& columns, WorkloadFields& fields);
void describe_matrix_type(DType& dtype, WorkloadFields& fields);
Status check_matrix(int64_t rows, int64_t columns, DType dtype);
TaskShape matrix_shape(std::string_view op, int64_t rows, int64_t columns, DType dtype);

// name[i] = op over j of f(i, j)
Buffer over_columns(te::Builder& b, const std::string& name, int64_t rows, int64_t columns, ReduceOp op,
                    const std::function<Expr(const te::Indices&)>& f);

// An operator whose only fields are "rows", "columns" and "dtype" needs no describe() of its own.
template <class W>
class RowOperator : public OperatorFacts<W> {
 public:
  void describe(W& w, WorkloadFields& f) const override {
    describe_matrix(w.rows, w.columns, f);
    describe_matrix_type(w.dtype, f);
  }
  Status check(const W& w) const override { return check_matrix(w.rows, w.columns, w.dtype); }
  TaskShape shape(const W& w) const override { return matrix_shape(W::kOp, w.rows, w.columns, w.dtype); }
  std::string shape_name(const W& w) const override { return str(w.rows, "x", w.columns); }
};

}  // namespace tuner
