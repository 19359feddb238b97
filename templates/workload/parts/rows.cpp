#include "templates/workload/parts/rows.h"

#include "templates/workload/parts/checks.h"

namespace tuner {

void describe_matrix(int64_t& rows, int64_t& columns, WorkloadFields& fields) {
  fields.extent({.word = "rows", .required = true}, rows);
  fields.extent({.word = "columns", .required = true}, columns);
}

void describe_matrix_type(DType& dtype, WorkloadFields& fields) {
  static constexpr DType kServed[] = {DType::kFloat32};
  fields.type({.word = "dtype"}, dtype, kServed, DType::kFloat32);
}

Status check_matrix(int64_t rows, int64_t columns, DType dtype) {
  RETURN_IF_ERROR(float32_only(dtype));
  return shape_fits("x", {rows, columns}, dtype);
}

TaskShape matrix_shape(std::string_view op, int64_t rows, int64_t columns, DType dtype) {
  return {str(op, " dtype=", dtype_name(dtype)), {{"rows", rows}, {"columns", columns}}};
}

Buffer over_columns(te::Builder& b, const std::string& name, int64_t rows, int64_t columns, ReduceOp op,
                    const std::function<Expr(const te::Indices&)>& f) {
  return b.reduce(name, {rows}, {{"j", columns}}, op,
                  [&](const te::Indices& i, const te::Indices& r) {
                    return f({i[0], r[0]});
                  },
                  BufferRole::kIntermediate, {"i"});
}

}  // namespace tuner
