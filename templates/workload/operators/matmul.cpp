#include "templates/workload/operators/matmul.h"

#include "compiler_core/ir/intrinsic.h"
#include "templates/workload/parts/checks.h"
#include "templates/workload/parts/operator.h"
#include "templates/workload/parts/product_math.h"

namespace tuner {
namespace {

// How a product is computed: of a widened apart, or of `tf32_terms` products of tf32 numbers (0: as it
// stands).
struct MatmulForm {
  bool with_wide = false;
  int tf32_terms = 0;
};

// A batch of one has no axis of its own.
Program matmul_math(const MatmulWorkload& w, const MatmulForm& form) {
  using te::Indices;
  const DType sums = sum_dtype(w.dtype);
  te::Builder b("matmul", sums);
  const size_t d = w.batch > 1 ? 1 : 0;  // position of the row axis
  const auto shape = [&](int64_t rows, int64_t columns) {
    return d == 1 ? std::vector<int64_t>{w.batch, rows, columns} : std::vector<int64_t>{rows, columns};
  };
  const auto at = [&](const Indices& i, const Expr& row, const Expr& column) {
    return d == 1 ? Indices{i[0], row, column} : Indices{row, column};
  };
  Buffer lhs = declare_operand(b, w.constant, "a", w.transpose_a ? shape(w.k, w.m) : shape(w.m, w.k),
                               left_dtype(w.dtype));
  const Buffer rhs =
      declare_operand(b, w.constant, "b", w.transpose_b ? shape(w.n, w.k) : shape(w.k, w.n), w.dtype);
  const Epilogue epilogue = declare_epilogue(b, w, w.n, shape(w.m, w.n));
  if (form.with_wide)
    lhs = b.compute("wide", lhs->shape, [&](const Indices& i) { return cast(sums, load(lhs, i)); });
  std::vector<std::string> names = {"i", "j"};
  if (d == 1) names.insert(names.begin(), "b");
  const Buffer acc = b.reduce(
      "acc", shape(w.m, w.n), {{"k", w.k}}, ReduceOp::kSum,
      [&](const Indices& i, const Indices& r) {
        const Expr x = cast(sums, load(lhs, w.transpose_a ? at(i, r[0], i[d]) : at(i, i[d], r[0])));
        const Expr y = cast(sums, load(rhs, w.transpose_b ? at(i, i[d + 1], r[0]) : at(i, r[0], i[d + 1])));
        return form.tf32_terms > 0 ? tf32_product(x, y, form.tf32_terms) : x * y;
      },
      BufferRole::kIntermediate, names);
  b.compute(
      "out", shape(w.m, w.n), [&](const Indices& i) { return finished(epilogue, load(acc, i), i[d + 1], i); },
      BufferRole::kOutput, names);
  return b.finish();
}

// The shapes of a and b as they are stored, in place of m, n and k. Whether they are transposed is read
// before them.
void describe_shapes(MatmulWorkload& w, WorkloadFields& f) {
  if (f.reads_shapes()) {
    f.flag({.word = "transpose_a"}, w.transpose_a);
    f.flag({.word = "transpose_b"}, w.transpose_b);
  }
  int64_t k_of_b = w.k;
  const std::string_view order_of_b = w.transpose_b ? "[N, K]" : "[K, N]";
  if (w.transpose_a)
    f.shape({"a", "[K, M], as stored"}, {{"", "", w.k}, {"", "", w.m}});
  else
    f.shape({"a", "[M, K], as stored"}, {{"", "", w.m}, {"", "", w.k}});
  if (w.transpose_b)
    f.shape({"b", "[N, K], as stored"}, {{"", "", w.n}, {"", "", k_of_b}});
  else
    f.shape({"b", "[K, N], as stored"}, {{"", "", k_of_b}, {"", "", w.n}});
  if (k_of_b == w.k) return;
  const std::string found =
      w.transpose_b ? str("[", w.n, ", ", k_of_b, "]") : str("[", k_of_b, ", ", w.n, "]");
  f.refuse("b", str("expected K = ", w.k, " as in a, found K = ", k_of_b, " in ", found, ". Order is ",
                    order_of_b, ", as stored."));
}

class MatmulFacts final : public OperatorFacts<MatmulWorkload> {
 public:
  void describe(MatmulWorkload& w, WorkloadFields& f) const override {
    f.extent({.word = "b", .json = "batch"}, w.batch);
    if (f.has_shapes()) {
      describe_shapes(w, f);
    } else {
      f.extent({.word = "m", .name = "m (rows of a)"}, w.m);
      f.extent({.word = "n", .name = "n (columns of b)"}, w.n);
      f.extent({.word = "k", .name = "k (columns of a)"}, w.k);
    }
    f.flag({.word = "ta", .json = "transpose_a"}, w.transpose_a);
    f.flag({.word = "tb", .json = "transpose_b"}, w.transpose_b);
    ProductFields p = product_fields(w);
    describe_epilogue_and_types(p, f);
    describe_constants(p, {"a", "b"}, f);
    set_product_fields(w, p);
  }

  Status check(const MatmulWorkload& w) const override {
    RETURN_IF_ERROR(check_product(product_fields(w), "k (columns of a)", w.k));
    RETURN_IF_ERROR(shape_fits("a", {w.batch, w.m, w.k}, left_dtype(w.dtype)));
    RETURN_IF_ERROR(shape_fits("b", {w.batch, w.k, w.n}, w.dtype));
    RETURN_IF_ERROR(shape_fits("out", {w.batch, w.m, w.n}, w.out_dtype()));
    return countable({w.batch, w.m, w.n, w.k});
  }

  Program math(const MatmulWorkload& w) const override { return matmul_math(w, {}); }
  int64_t flops(const MatmulWorkload& w) const override { return 2 * w.batch * w.m * w.n * w.k; }
  Tolerance tolerance(const MatmulWorkload& w) const override {
    return product_tolerance(product_fields(w), w.k);
  }
  float drawn_factor(const MatmulWorkload& w, std::string_view operand) const override {
    return product_drawn_factor(product_fields(w), operand);
  }

  TaskShape shape(const MatmulWorkload& w) const override {
    const ProductFields p = product_fields(w);
    return {str(w.kOp, " ta=", w.transpose_a, " tb=", w.transpose_b, types_text(p), packed_text(p)),
            {{"b", w.batch}, {"m", w.m}, {"n", w.n}, {"k", w.k}}};
  }
  std::string shape_name(const MatmulWorkload& w) const override {
    return str(w.batch > 1 ? str(w.batch, "x") : "", w.m, "x", w.n, "x", w.k);
  }
};

}  // namespace

const OperatorFacts<MatmulWorkload>& MatmulWorkload::facts() {
  static const MatmulFacts facts;
  return facts;
}

Program matmul_of_wide(const MatmulWorkload& w) { return matmul_math(w, {.with_wide = true}); }
Program matmul_of_tf32(const MatmulWorkload& w, int terms) { return matmul_math(w, {.tf32_terms = terms}); }

}  // namespace tuner
