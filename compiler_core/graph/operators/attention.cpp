// Attention and the rotation of its operands.
#include <cmath>
#include <limits>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace attention_ops {
namespace {

// A tensor of heads: [batch, heads, sequence, size], or [batch, sequence, heads * size].
struct Heads {
  int64_t batch, heads, sequence, size;
  bool together;  // of three dimensions

  Expr load_from(const Buffer& b, const te::Indices& i) const {  // i: batch, head, place, element
    return together ? load(b, {i[0], i[2], i[1] * Expr(size) + i[3]}) : load(b, i);
  }
  Shape shape() const {
    return together ? Shape{batch, sequence, heads * size} : Shape{batch, heads, sequence, size};
  }
};
Result<Heads> heads_of(const Use& use, size_t input, std::string_view attribute) {
  const Shape& s = use.shape(input);
  if (s.size() == 4) {
    const int64_t named = use.integer(attribute, s[1]);
    if (named != s[1] && named != 0)
      return invalid_argument(attribute, " is ", named, ", input ", input, " has ", s[1], " heads");
    return Heads{s[0], s[1], s[2], s[3], false};
  }
  const int64_t heads = use.integer(attribute, 0);
  if (s.size() != 3 || heads < 1 || s[2] % heads != 0)
    return invalid_argument("input ", input, " is ", to_text(use.type(input)), " with ", attribute, " = ",
                            heads, ", expected 4 dimensions, or 3 and a number of heads");
  return Heads{s[0], heads, s[1], s[2] / heads, true};
}

// --- RotaryEmbedding: pairs of elements turned by an angle that depends on their place ---
struct Rotary {
  Heads heads;
  int64_t half;  // pairs that are turned
  bool interleaved;
};
Result<Rotary> rotary_of(const Use& use) {
  ASSIGN_OR_RETURN(const Heads x, heads_of(use, 0, "num_heads"));
  const int64_t given = use.integer("rotary_embedding_dim", 0), turned = given == 0 ? x.size : given;
  if (turned < 2 || turned > x.size || turned % 2 != 0)
    return invalid_argument("turns ", turned, " of ", x.size, " elements, expected an even number of them");
  const Rotary r{x, turned / 2, use.integer("interleaved", 0) != 0};
  if (use.has(3) && use.shape(3) != Shape{x.batch, x.sequence})
    return invalid_argument("position_ids are ", to_text(use.type(3)), ", expected [", x.batch, ", ",
                            x.sequence, "]");
  for (const size_t i : {1, 2}) {
    const Shape& s = use.shape(i);
    const bool fits = use.has(3) ? s.size() == 2 && s[1] == r.half : s == Shape{x.batch, x.sequence, r.half};
    if (!fits || s != use.shape(1))
      return invalid_argument("input ", i, " is ", to_text(use.type(i)), ", expected ",
                              use.has(3) ? "[positions, " : str("[", x.batch, ", ", x.sequence, ", "), r.half,
                              "]");
  }
  return r;
}
Result<std::vector<TensorType>> rotary_types(const Use& use) {
  RETURN_IF_ERROR(rotary_of(use).status());
  return like_first(use);
}
void rotary(const Use& use, MathWriter& m) {
  const Rotary r = *rotary_of(use);
  const Heads& x = r.heads;
  const Expr half(r.half), two(2);
  m.result([&](const te::Indices& i) {
    // Batch, head, place, element.
    const te::Indices at =
        x.together ? te::Indices{i[0], floor_div(i[2], Expr(x.size)), i[1], floor_mod(i[2], Expr(x.size))}
                   : i;
    const Expr& e = at[3];
    const Expr pair = r.interleaved ? floor_div(e, two) : floor_mod(e, half);
    const Expr is_second = r.interleaved ? equals(floor_mod(e, two), Expr(1)) : e >= half;
    const auto element = [&](const Expr& place) {
      return x.load_from(m.in(0), {at[0], at[1], at[2], place});
    };
    const auto cached = [&](size_t input) {
      const Expr p = min(pair, half - Expr(1));
      if (!use.has(3)) return load(m.in(input), {at[0], at[2], p});
      const Expr position = as(DType::kInt64, load(m.in(3), {at[0], at[2]}));
      return load(m.in(input), {min(max(position, Expr(0)), Expr(use.shape(1)[0] - 1)), p});
    };
    const Expr first = element(r.interleaved ? pair * two : pair),
               second = element(r.interleaved ? pair * two + Expr(1) : pair + half);
    const Expr cosine = cached(1), sine = cached(2);
    const Expr turned = select(is_second, sine * first + cosine * second, cosine * first - sine * second);
    return 2 * r.half == x.size ? turned : select(e < Expr(2 * r.half), turned, element(e));
  });
}

// --- Attention: softmax(scale * Q K^T + mask) V ---
struct Attention {
  Heads q, k, v;
  int64_t past = 0;  // places before those of k
  double scale, softcap;
  int64_t total() const { return past + k.sequence; }
};
// Q, K, V, mask, past K and V; Y, present K and V, scores.
enum Operand : size_t { kQ, kK, kV, kMask, kPastK, kPastV };
enum Shown : int64_t { kProducts, kMasked, kCapped, kWeights };  // what the scores are

Status check_past(const Use& use, const Attention& a) {
  if (use.has(kPastK) != use.has(kPastV))
    return invalid_argument("has one of past_key and past_value, expected both");
  if (!use.has(kPastK)) return Status::ok();
  for (const auto& [input, heads] : {std::pair(kPastK, a.k), std::pair(kPastV, a.v)})
    if (use.shape(input) != Shape{heads.batch, heads.heads, a.past, heads.size})
      return invalid_argument("input ", size_t{input}, " is ", to_text(use.type(input)), ", expected [",
                              heads.batch, ", ", heads.heads, ", ", a.past, ", ", heads.size, "]");
  return Status::ok();
}
Result<Attention> attention_of(const Use& use) {
  Attention a{};
  ASSIGN_OR_RETURN(a.q, heads_of(use, kQ, "q_num_heads"));
  ASSIGN_OR_RETURN(a.k, heads_of(use, kK, "kv_num_heads"));
  ASSIGN_OR_RETURN(a.v, heads_of(use, kV, "kv_num_heads"));
  if (use.has(kPastK) && use.rank(kPastK) == 4) a.past = use.shape(kPastK)[2];
  RETURN_IF_ERROR(check_past(use, a));
  const bool fits = a.q.batch == a.k.batch && a.k.batch == a.v.batch && a.q.size == a.k.size &&
                    a.k.heads == a.v.heads && a.k.sequence == a.v.sequence && a.k.heads > 0 &&
                    a.q.heads % a.k.heads == 0;
  if (!fits)
    return invalid_argument("Q, K and V are ", to_text(use.type(kQ)), ", ", to_text(use.type(kK)), " and ",
                            to_text(use.type(kV)), ", which do not fit together");
  if (use.has(kMask)) {
    const Shape whole{a.q.batch, a.q.heads, a.q.sequence, a.total()};
    ASSIGN_OR_RETURN(const Shape shape, broadcast(whole, use.shape(kMask)));
    if (shape != whole)
      return invalid_argument("the mask is ", to_text(use.type(kMask)), ", which does not broadcast");
  }
  a.scale = use.number("scale", 1 / std::sqrt(static_cast<double>(a.q.size)));
  a.softcap = use.number("softcap", 0);
  const int64_t shown = use.integer("qk_matmul_output_mode", 0);
  if (shown < kProducts || shown > kWeights)
    return invalid_argument("qk_matmul_output_mode is ", shown, ", expected 0 to 3");
  // Revisions of the standard differ in whether the mask comes before the cap.
  if (use.gives(3) && a.softcap != 0 && (shown == kMasked || shown == kCapped))
    return invalid_argument("qk_matmul_output_mode = ", shown, " beside a softcap is not served");
  return a;
}
Result<std::vector<TensorType>> attention_types(const Use& use) {
  ASSIGN_OR_RETURN(const Attention a, attention_of(use));
  Heads y = a.q;
  y.size = a.v.size;
  const DType dtype = use.dtype(kQ);
  const Shape scores{a.q.batch, a.q.heads, a.q.sequence, a.total()};
  return std::vector<TensorType>{{dtype, y.shape()},
                                 {use.dtype(kK), {a.k.batch, a.k.heads, a.total(), a.k.size}},
                                 {use.dtype(kV), {a.v.batch, a.v.heads, a.total(), a.v.size}},
                                 {dtype, scores}};
}

class Scores {
 public:
  Scores(const Use& use, MathWriter& m) : use_(use), m_(m), a_(*attention_of(use)) {}

  const Attention& attention() const { return a_; }
  // K (or V), with what came before it. i: batch, head of K, place, element.
  Expr present(Operand operand, const te::Indices& i) const {
    const Heads& heads = operand == kK ? a_.k : a_.v;
    te::Indices now = i;
    now[2] = i[2] - Expr(a_.past);
    const Expr x = heads.load_from(m_.in(operand), now);
    if (a_.past == 0) return x;
    return select(i[2] < Expr(a_.past), load(m_.in(operand == kK ? kPastK : kPastV), i), x);
  }
  Expr head_of_k(const Expr& head) const { return floor_div(head, Expr(a_.q.heads / a_.k.heads)); }

  // Writes the stages up to the weights, which it returns, and what is shown of them.
  Buffer write() {
    const Shape shape{a_.q.batch, a_.q.heads, a_.q.sequence, a_.total()};
    const Buffer sums =
        m_.reduced("products", shape, {a_.q.size}, ReduceOp::kSum, [&](const auto& i, const auto& r) {
          return a_.q.load_from(m_.in(kQ), {i[0], i[1], i[2], r[0]}) *
                 present(kK, {i[0], head_of_k(i[1]), i[3], r[0]});
        });
    const auto scaled = [&](const te::Indices& i) {
      const Expr x = load(sums, i);
      return x * number(x->dtype, a_.scale);
    };
    const Buffer masked =
        m_.stage("masked", shape, [&](const te::Indices& i) { return mask(i, capped(scaled(i))); });
    const Buffer weights = softmax(masked, shape);
    m_.result(3, [&](const te::Indices& i) {
      const int64_t shown = use_.integer("qk_matmul_output_mode", 0);
      return shown == kProducts ? scaled(i) : load(shown == kWeights ? weights : masked, i);
    });
    return weights;
  }

 private:
  Expr capped(const Expr& x) const {
    const Expr cap = number(x->dtype, a_.softcap);
    return a_.softcap == 0 ? x : unary(UnaryOp::kTanh, x / cap) * cap;
  }
  Expr mask(const te::Indices& i, Expr x) const {
    const Expr never = number(x->dtype, -std::numeric_limits<double>::infinity());
    if (use_.has(kMask)) {
      const Expr given = at(m_.in(kMask), i);
      x = given->dtype == DType::kBool ? select(given, x, never) : x + as(x->dtype, given);
    }
    if (use_.integer("is_causal", 0) == 0) return x;
    return select(i[3] <= i[2] + Expr(a_.past), x, never);
  }
  // A row that is masked wholly has weights of 0.
  Buffer softmax(const Buffer& scores, const Shape& shape) {
    const Shape rows(shape.begin(), shape.end() - 1), over{shape.back()};
    const auto score = [&](te::Indices i, const te::Indices& r) {
      i.push_back(r[0]);
      return load(scores, i);
    };
    const Buffer most = m_.reduced("most", rows, over, ReduceOp::kMax, score);
    const Buffer sum = m_.reduced("sum", rows, over, ReduceOp::kSum, [&](const auto& i, const auto& r) {
      return unary(UnaryOp::kExp, score(i, r) - load(most, i));
    });
    return m_.stage("weights", shape, [&](const te::Indices& i) {
      const te::Indices row(i.begin(), i.end() - 1);
      const Expr greatest = load(most, row), x = load(scores, i);
      const Expr is_masked = equals(greatest, number(x->dtype, -std::numeric_limits<double>::infinity()));
      return select(is_masked, number(x->dtype, 0), unary(UnaryOp::kExp, x - greatest) / load(sum, row));
    });
  }

  const Use& use_;
  MathWriter& m_;
  Attention a_;
};
void attention(const Use& use, MathWriter& m) {
  Scores scores(use, m);
  const Attention& a = scores.attention();
  if (m.wants(0) || m.wants(3)) {
    const Buffer weights = scores.write();
    const auto term = [&](const te::Indices& i, const te::Indices& r) {
      const te::Indices at = a.q.together ? te::Indices{i[0], floor_div(i[2], Expr(a.v.size)), i[1],
                                                        floor_mod(i[2], Expr(a.v.size))}
                                          : i;
      const Expr value = scores.present(kV, {at[0], scores.head_of_k(at[1]), r[0], at[3]});
      const Expr weight = load(weights, {at[0], at[1], at[2], r[0]});
      return weight * as(weight->dtype, value);
    };
    m.reduced_result({a.total()}, ReduceOp::kSum, term);
  }
  m.result(1, [&](const te::Indices& i) { return scores.present(kK, i); });
  m.result(2, [&](const te::Indices& i) { return scores.present(kV, i); });
}

constexpr Operator kRows[] = {
    {"Attention", OperatorKind::kProduct, 3, 6, 4, attention_types, attention},
    {"RotaryEmbedding", OperatorKind::kElementwise, 3, 4, 1, rotary_types, rotary},
};

}  // namespace
}  // namespace attention_ops

std::span<const Operator> attention_operators() { return attention_ops::kRows; }

}  // namespace tuner::graph
