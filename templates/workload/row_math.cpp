// The math of the operators on rows. Names of stages are what templates ask for.
#include "compiler_core/te/te.h"
#include "templates/workload/workload_math.h"

namespace tuner {
namespace {

using te::Indices;

ReduceOp reduce_op(RowReduction reduction) {
  switch (reduction) {
    case RowReduction::kMax:
      return ReduceOp::kMax;
    case RowReduction::kMin:
      return ReduceOp::kMin;
    case RowReduction::kSum:
    case RowReduction::kMean:
      break;
  }
  return ReduceOp::kSum;
}

// name[i] = op over j of f(i, j)
Buffer over_columns(te::Builder& b, const std::string& name, int64_t rows, int64_t columns, ReduceOp op,
                    const std::function<Expr(const Indices&)>& f) {
  return b.reduce(name, {rows}, {{"j", columns}}, op,
                  [&](const Indices& i, const Indices& r) {
                    return f({i[0], r[0]});
                  },
                  BufferRole::kIntermediate, {"i"});
}

// The largest element is taken off before exp: no overflow, and at least one term of the sum is 1.
Program softmax(const SoftmaxWorkload& w, bool by_reciprocals) {
  te::Builder b("softmax", w.dtype);
  const Buffer x = b.input("x", {w.rows, w.columns});
  const Buffer row_max = over_columns(b, "row_max", w.rows, w.columns, ReduceOp::kMax,
                                      [&](const Indices& i) { return load(x, i); });
  const Buffer exps =
      b.compute("exps", {w.rows, w.columns},
                [&](const Indices& i) { return unary(UnaryOp::kExp, load(x, i) - load(row_max, {i[0]})); },
                BufferRole::kIntermediate, {"i", "j"});
  const Buffer row_sum = over_columns(b, "row_sum", w.rows, w.columns, ReduceOp::kSum,
                                      [&](const Indices& i) { return load(exps, i); });
  const Buffer scale =
      !by_reciprocals ? nullptr
                      : b.compute("row_scale", {w.rows},
                                  [&](const Indices& i) { return float_imm(1, w.dtype) / load(row_sum, i); },
                                  BufferRole::kIntermediate, {"i"});
  b.compute("out", {w.rows, w.columns},
            [&](const Indices& i) {
              return by_reciprocals ? load(exps, i) * load(scale, {i[0]})
                                    : load(exps, i) / load(row_sum, {i[0]});
            },
            BufferRole::kOutput, {"i", "j"});
  return b.finish();
}

}  // namespace

Program math_of(const SoftmaxWorkload& w) { return softmax(w, /*by_reciprocals=*/false); }
Program softmax_by_reciprocals(const SoftmaxWorkload& w) { return softmax(w, /*by_reciprocals=*/true); }

// The variance is of centred values: the difference of two large sums would lose what is asked for.
Program math_of(const LayerNormWorkload& w) {
  te::Builder b("layer_norm", w.dtype);
  const Buffer x = b.input("x", {w.rows, w.columns});
  const Buffer gamma = b.input("gamma", {w.columns});
  const Buffer beta = b.input("beta", {w.columns});
  const Expr columns = float_imm(static_cast<double>(w.columns), w.dtype);
  const Buffer row_sum = over_columns(b, "row_sum", w.rows, w.columns, ReduceOp::kSum,
                                      [&](const Indices& i) { return load(x, i); });
  const Buffer mean =
      b.compute("mean", {w.rows}, [&](const Indices& i) { return load(row_sum, i) / columns; },
                BufferRole::kIntermediate, {"i"});
  const Buffer centred = b.compute("centred", {w.rows, w.columns},
                                   [&](const Indices& i) { return load(x, i) - load(mean, {i[0]}); },
                                   BufferRole::kIntermediate, {"i", "j"});
  const Buffer squares = over_columns(b, "squares", w.rows, w.columns, ReduceOp::kSum,
                                      [&](const Indices& i) { return load(centred, i) * load(centred, i); });
  const Buffer inverse =
      b.compute("inverse_deviation", {w.rows},
                [&](const Indices& i) {
                  return float_imm(1, w.dtype) /
                         unary(UnaryOp::kSqrt, load(squares, i) / columns + float_imm(w.epsilon, w.dtype));
                },
                BufferRole::kIntermediate, {"i"});
  b.compute("out", {w.rows, w.columns},
            [&](const Indices& i) {
              return load(centred, i) * load(inverse, {i[0]}) * load(gamma, {i[1]}) + load(beta, {i[1]});
            },
            BufferRole::kOutput, {"i", "j"});
  return b.finish();
}

Program math_of(const ReduceWorkload& w) {
  te::Builder b("reduce", w.dtype);
  const Buffer x = b.input("x", {w.rows, w.columns});
  const Buffer acc = over_columns(b, "acc", w.rows, w.columns, reduce_op(w.reduction),
                                  [&](const Indices& i) { return load(x, i); });
  b.compute("out", {w.rows},
            [&](const Indices& i) {
              const Expr all = load(acc, i);
              const bool mean = w.reduction == RowReduction::kMean;
              return mean ? all / float_imm(static_cast<double>(w.columns), w.dtype) : all;
            },
            BufferRole::kOutput, {"i"});
  return b.finish();
}

Program math_of(const TransposeWorkload& w) {
  te::Builder b("transpose", w.dtype);
  const Buffer x = b.input("x", {w.rows, w.columns});
  b.compute("out", {w.columns, w.rows},
            [&](const Indices& i) {
              return load(x, {i[1], i[0]});
            },
            BufferRole::kOutput, {"j", "i"});
  return b.finish();
}

Program math_of(const ElementwiseWorkload& w) {
  te::Builder b("elementwise", w.dtype);
  const Buffer x = b.input("x", {w.rows, w.columns});
  const Buffer scale = w.scale ? b.input("scale", {w.columns}) : nullptr;
  const Buffer bias = w.bias ? b.input("bias", {w.columns}) : nullptr;
  const Buffer residual = w.residual ? b.input("residual", {w.rows, w.columns}) : nullptr;
  b.compute("out", {w.rows, w.columns},
            [&](const Indices& i) {
              Expr value = load(x, i);
              if (scale) value = value * load(scale, {i[1]});
              if (bias) value = value + load(bias, {i[1]});
              if (residual) value = value + load(residual, i);
              return activated(w.activation, value);
            },
            BufferRole::kOutput, {"i", "j"});
  return b.finish();
}

}  // namespace tuner
