#include "templates/workload/operators/matmul_nbits.h"

#include <algorithm>
#include <array>
#include <bit>

#include "templates/workload/parts/checks.h"
#include "templates/workload/parts/operator.h"
#include "templates/workload/parts/product_math.h"
#include "templates/workload/parts/rounding.h"

namespace tuner {
namespace {

using te::Indices;

constexpr int64_t kWordWeights = 8;  // weights of a word of 32 bits
constexpr int64_t kLastWeight = kWordWeights - 1;
constexpr int64_t kUsualZero = 8;
constexpr std::array<std::string_view, 1> kTypeNames = {"int4"};

Expr int32(int64_t value) { return int_imm(value, DType::kInt32); }

// The weight in the low half of a byte (place 0) or the high one (1), as an int32.
Expr half_of(const Expr& byte, const Expr& place) {
  const Expr shift = cast(DType::kInt32, place * 4);
  return binary(BinaryOp::kBitAnd, binary(BinaryOp::kShiftRight, cast(DType::kInt32, byte), shift),
                int32(15));
}

struct Operands {
  Buffer a, b, scales, zero_points;  // null: none
  Epilogue epilogue;
};

Operands declare(te::Builder& b, const MatmulNBitsWorkload& w) {
  Operands o;
  o.a = b.input("a", {w.m, w.k});
  o.b = declare_operand(b, w.constant, "b", {w.n, w.groups(), w.group / 2}, DType::kUInt8);
  o.scales = declare_operand(b, w.constant, "scales", {w.n, w.groups()});
  if (w.zero_points)
    o.zero_points =
        declare_operand(b, w.constant, "zero_points", {w.n, ceil_div(w.groups(), 2)}, DType::kUInt8);
  ProductFields p;
  p.bias = w.bias;
  p.activation = w.activation;
  p.constant = w.constant;
  o.epilogue = declare_epilogue(b, p, w.n, {w.m, w.n});
  return o;
}

Expr zero_point(const Operands& o, const Expr& column, const Expr& group) {
  return half_of(load(o.zero_points, {column, floor_div(group, 2)}), floor_mod(group, 2));
}

void add_out(te::Builder& b, const MatmulNBitsWorkload& w, const Operands& o, const Buffer& acc) {
  b.compute("out", {w.m, w.n}, [&](const Indices& i) { return finished(o.epilogue, load(acc, i), i[1], i); },
            BufferRole::kOutput, {"i", "j"});
}

// a[i, k], and 0 beyond k.
Expr padded(const MatmulNBitsWorkload& w, const Buffer& a, const Expr& row, const Expr& k) {
  const Expr value = load(a, {row, k});
  return w.groups() * w.group == w.k ? value : select(k < Expr(w.k), value, float_imm(0, w.dtype));
}

// Adds what does not depend on the columns: spread and minus.
struct Left {
  Buffer spread, minus;
};
Left add_left(te::Builder& b, const MatmulNBitsWorkload& w, const Buffer& a) {
  const int64_t words_of_group = w.group / kWordWeights;
  Left left;
  left.spread = b.compute("spread", {w.m, w.groups() * words_of_group, kWordWeights}, [&](const Indices& i) {
    const Expr place = cast(DType::kInt32, i[2] * 4);
    const Expr size = cast(w.dtype, binary(BinaryOp::kShiftLeft, int32(1), place));
    const Expr value = padded(w, a, i[0], i[1] * kWordWeights + i[2]);
    return value * select(i[2] < Expr(kLastWeight), float_imm(1, w.dtype) / size, float_imm(1, w.dtype));
  });
  const Expr factor = float_imm(w.zero_points ? -1.0 : -static_cast<double>(kUsualZero), w.dtype);
  left.minus = b.reduce("minus", {w.m, w.groups()}, {{"t", words_of_group}, {"e", kWordWeights}},
                        ReduceOp::kSum, [&](const Indices& i, const Indices& r) {
                          return padded(w, a, i[0], i[1] * w.group + r[0] * kWordWeights + r[1]) * factor;
                        });
  return left;
}

class MatmulNBitsFacts final : public OperatorFacts<MatmulNBitsWorkload> {
 public:
  void describe(MatmulNBitsWorkload& w, WorkloadFields& f) const override {
    if (f.has_shapes()) {
      describe_shapes(w, f);
    } else {
      f.extent({.word = "m", .name = "m (rows of a)"}, w.m);
      f.extent({.word = "n", .name = "n (rows of b)"}, w.n);
      f.extent({.word = "k", .name = "k (columns of a)"}, w.k);
    }
    f.choice_of({.word = "b_dtype"}, kTypeNames, w.b_dtype);
    f.extent({.word = "group", .least = kLeastGroup, .required = true}, w.group);
    f.flag({.word = "zero_points"}, w.zero_points);
    f.flag({.word = "bias"}, w.bias);
    f.activation({.word = "act", .json = "activation"}, w.activation);
    static constexpr DType kServed[] = {DType::kFloat32};
    f.type({.word = "dtype"}, w.dtype, kServed, DType::kFloat32);
    std::vector<std::string> known = {"b", "scales"};
    if (w.zero_points) known.emplace_back("zero_points");
    if (w.bias) known.emplace_back("bias");
    f.operands({.word = "const", .json = "constant"}, w.constant, known);
  }

  Status check(const MatmulNBitsWorkload& w) const override {
    if (w.group > kMostGroup || !std::has_single_bit(static_cast<uint64_t>(w.group)))
      return invalid_argument("group: expected a power of two from ", kLeastGroup, " to ", kMostGroup,
                              ", found ", w.group);
    RETURN_IF_ERROR(float32_only(w.dtype));
    RETURN_IF_ERROR(check_activation_numbers(w.activation));
    RETURN_IF_ERROR(shape_fits("a", {w.m, w.groups() * w.group}, w.dtype));
    RETURN_IF_ERROR(shape_fits("b", {w.n, w.groups() * w.group}, DType::kUInt8));
    RETURN_IF_ERROR(shape_fits("out", {w.m, w.n}, w.dtype));
    return countable({w.m, w.n, w.k});
  }

  Program math(const MatmulNBitsWorkload& w) const override {
    te::Builder b("matmul_nbits", w.dtype);
    const Operands o = declare(b, w);
    const Buffer acc = b.reduce(
        "acc", {w.m, w.n}, {{"k", w.k}}, ReduceOp::kSum,
        [&](const Indices& i, const Indices& r) {
          const Expr group = floor_div(r[0], w.group), inside = floor_mod(r[0], w.group);
          const Expr weight = half_of(load(o.b, {i[1], group, floor_div(inside, 2)}), floor_mod(inside, 2));
          const Expr zero = o.zero_points ? zero_point(o, i[1], group) : int32(kUsualZero);
          return load(o.a, {i[0], r[0]}) * (cast(w.dtype, weight - zero) * load(o.scales, {i[1], group}));
        },
        BufferRole::kIntermediate, {"i", "j"});
    add_out(b, w, o, acc);
    return b.finish();
  }

  int64_t flops(const MatmulNBitsWorkload& w) const override { return 2 * w.m * w.n * w.k; }

  // Scales are drawn from [-1, 1), weights from all of 0 to 15, of root mean square 8.8. A kernel may sum up
  // weights as they are, and take the zero points away from the sum: two sums of products which are 8.8 times
  // those of product_sum_tolerance(), whose errors are independent, 12.4 times together.
  Tolerance tolerance(const MatmulNBitsWorkload& w) const override {
    constexpr double kLarger = 12.5;
    const double steep = std::max(1.0, steepest(w.activation));
    return {steep * kLarger * product_sum_tolerance(w.k), kRelativeTolerance};
  }

  TaskShape shape(const MatmulNBitsWorkload& w) const override {
    ProductFields p;
    p.constant = w.constant;
    return {str(w.kOp, " b_dtype=", kTypeNames[static_cast<size_t>(w.b_dtype)],
                " zero_points=", w.zero_points, types_text(p), packed_text(p)),
            {{"m", w.m}, {"n", w.n}, {"k", w.k}, {"group", w.group}}};
  }
  std::string shape_name(const MatmulNBitsWorkload& w) const override {
    return str(w.m, "x", w.n, "x", w.k, "_g", w.group);
  }

 private:
  static constexpr int64_t kLeastGroup = 16, kMostGroup = 256;

  // The shapes of a and of the weights that b means, in place of m, n and k.
  static void describe_shapes(MatmulNBitsWorkload& w, WorkloadFields& f) {
    int64_t k_of_b = w.k;
    f.shape({"a", "[M, K]"}, {{"", "", w.m}, {"", "", w.k}});
    f.shape({"b", "[N, K], of single weights"}, {{"", "", w.n}, {"", "", k_of_b}});
    if (k_of_b == w.k) return;
    f.refuse("b", str("expected K = ", w.k, " as in a, found K = ", k_of_b, " in [", w.n, ", ", k_of_b,
                      "]. Order is [N, K], of single weights."));
  }
};

}  // namespace

const OperatorFacts<MatmulNBitsWorkload>& MatmulNBitsWorkload::facts() {
  static const MatmulNBitsFacts facts;
  return facts;
}

Program matmul_nbits_of_words(const MatmulNBitsWorkload& w) {
  const int64_t words_of_group = w.group / kWordWeights;
  te::Builder b("matmul_nbits", w.dtype);
  const Operands o = declare(b, w);
  const Buffer words = b.compute("words", {w.n, w.groups() * words_of_group}, [&](const Indices& i) {
    Expr word;
    for (int64_t at = 0; at < 4; ++at) {
      const Expr byte =
          load(o.b, {i[0], floor_div(i[1], words_of_group), floor_mod(i[1], words_of_group) * 4 + Expr(at)});
      const Expr part = binary(BinaryOp::kShiftLeft, cast(DType::kInt32, byte), int32(8 * at));
      word = at == 0 ? part : binary(BinaryOp::kBitOr, word, part);
    }
    return word;
  });
  const Left left = add_left(b, w, o.a);
  Buffer zeros;
  if (w.zero_points)
    zeros = b.compute("zeros", {w.n, w.groups()},
                      [&](const Indices& i) { return cast(DType::kUInt8, zero_point(o, i[0], i[1])); });
  const Buffer part = b.reduce(
      "part", {w.groups(), w.m, w.n}, {{"t", words_of_group}, {"e", kWordWeights}}, ReduceOp::kSum,
      [&](const Indices& i, const Indices& r) {
        const Expr t = i[0] * words_of_group + r[0];
        const Expr word = load(words, {i[2], t}), place = cast(DType::kInt32, r[1] * 4);
        // The last weight has the sign's place: shifted down, as a number without sign.
        const Expr last = cast(DType::kInt32, binary(BinaryOp::kShiftRight, cast(DType::kUInt32, word),
                                                     int_imm(4 * kLastWeight, DType::kUInt32)));
        const Expr weight =
            select(r[1] < Expr(kLastWeight),
                   binary(BinaryOp::kBitAnd, word, binary(BinaryOp::kShiftLeft, int32(15), place)), last);
        return load(left.spread, {i[1], t, r[1]}) * cast(w.dtype, weight);
      },
      BufferRole::kIntermediate, {"g", "i", "j"});
  const Buffer acc = b.reduce(
      "acc", {w.m, w.n}, {{"g", w.groups()}}, ReduceOp::kSum,
      [&](const Indices& i, const Indices& r) {
        const Expr sum = load(part, {r[0], i[0], i[1]}), less = load(left.minus, {i[0], r[0]});
        const Expr moved =
            zeros ? sum + cast(w.dtype, cast(DType::kInt32, load(zeros, {i[1], r[0]}))) * less : sum + less;
        return moved * load(o.scales, {i[1], r[0]});
      },
      BufferRole::kIntermediate, {"i", "j"});
  add_out(b, w, o, acc);
  return b.finish();
}

}  // namespace tuner
