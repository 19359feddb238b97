#include "templates/workload/operators/attention.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "compiler_core/te/te.h"
#include "templates/workload/parts/checks.h"
#include "templates/workload/parts/operator.h"
#include "templates/workload/parts/rounding.h"

namespace tuner {
namespace {

using te::Indices;

// Splits "36:12" or "1x12x1" into integers of at least `least`. Nothing if it is no such list.
std::optional<std::vector<int64_t>> integers_of(std::string_view text, char separator, int64_t least) {
  std::vector<int64_t> found;
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + end, number);
    if (error != std::errc() || stop != text.data() + end || number < least) return std::nullopt;
    found.push_back(number);
    if (end == text.size()) return found;
    text.remove_prefix(end + 1);
  }
}

// The head axes of a tensor: keys have `kv_heads`; where several heads share them, an axis of its own says
// which of these.
class HeadAxes {
 public:
  explicit HeadAxes(const AttentionWorkload& w) : w_(w) {}

  // [batch, kv_heads, (group,) rest...]
  std::vector<int64_t> shape(std::initializer_list<int64_t> rest) const {
    std::vector<int64_t> s{w_.batch, w_.kv_heads};
    if (w_.group() > 1) s.push_back(w_.group());
    s.insert(s.end(), rest);
    return s;
  }
  std::vector<std::string> names(std::initializer_list<const char*> rest) const {
    std::vector<std::string> n{"b", "g"};
    if (w_.group() > 1) n.emplace_back("r");
    n.insert(n.end(), rest.begin(), rest.end());
    return n;
  }
  // The place of the first index behind the heads.
  size_t rest() const { return w_.group() > 1 ? 3 : 2; }
  Expr head(const Indices& i) const { return w_.group() > 1 ? i[1] * w_.group() + i[2] : i[1]; }
  static Indices leading(const Indices& i, size_t count) {
    return {i.begin(), i.begin() + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  const AttentionWorkload& w_;
};

// An operand with its heads where its layout has them.
struct Operand {
  Buffer buffer;
  HeadLayout layout;

  Operand(te::Builder& b, const char* name, const std::string& text, const AttentionWorkload& w,
          int64_t heads, int64_t sequence, int64_t size)
      : layout(*head_layout_from_text(text, heads)) {
    buffer = b.input(name, layout.row == 0 ? std::vector<int64_t>{w.batch, heads, sequence, size}
                                           : std::vector<int64_t>{w.batch, sequence, layout.row, size});
  }
  Expr at(const Expr& batch, const Expr& head, const Expr& place, const Expr& element) const {
    if (layout.row == 0) return load(buffer, {batch, head, place, element});
    return load(buffer, {batch, place, layout.first == 0 ? head : head + layout.first, element});
  }
};

// A summand of the scores, or none.
struct Summand {
  Buffer buffer;
  std::array<int64_t, 3> extents{};

  Summand(te::Builder& b, const char* name, const std::string& text, const AttentionWorkload& w) {
    const std::optional<std::array<int64_t, 3>> given = *score_summand(text);
    if (!given) return;
    extents = *given;
    buffer = b.input(name, {extents[0], extents[1], extents[2], w.keys});
  }
  Expr added(const Expr& x, const AttentionWorkload& w, const Expr& batch, const Expr& head,
             const Expr& query, const Expr& key) const {
    if (buffer == nullptr) return x;
    const Expr zero(0);
    const Expr image = extents[0] == 1         ? zero
                       : extents[0] == w.batch ? batch
                                               : floor_mod(batch, Expr(extents[0]));
    return x + load(buffer, {image, extents[1] == 1 ? zero : head, extents[2] == 1 ? zero : query, key});
  }
};

class AttentionMath {
 public:
  AttentionMath(const AttentionWorkload& w, bool with_copies)
      : w_(w),
        axes_(w),
        b_("attention", w.dtype),
        q_(b_, "q", w.q_layout, w, w.heads, w.queries, w.size),
        k_(b_, "k", w.k_layout, w, w.kv_heads, w.keys, w.size),
        v_(b_, "v", w.v_layout, w, w.kv_heads, w.keys, w.v_size),
        mask_(b_, "mask", w.mask, w),
        bias_(b_, "bias", w.bias, w) {
    if (!with_copies) return;
    keys_ = copy("keys", k_, w.size, "d");
    values_ = copy("values", v_, w.v_size, "e");
  }

  Program program() {
    const Buffer exps = this->exps();
    const size_t at = axes_.rest();
    const Buffer row_sum = over_keys("row_sum", ReduceOp::kSum, exps);
    const Buffer sums = b_.reduce(
        "sums", axes_.shape({w_.queries, w_.v_size}), {{"s", w_.keys}}, ReduceOp::kSum,
        [&](const Indices& i, const Indices& r) {
          Indices weight = i;
          weight.back() = r[0];
          return load(exps, weight) * of_head(values_, v_, i, r[0], i[at + 1]);
        },
        BufferRole::kIntermediate, axes_.names({"i", "e"}));
    const Buffer scale = b_.compute(
        "row_scale", axes_.shape({w_.queries}),
        [&](const Indices& i) { return float_imm(1, w_.dtype) / load(row_sum, i); },
        BufferRole::kIntermediate, axes_.names({"i"}));
    // Side by side: [batch, queries, kv_heads, (group,) v_size].
    const bool apart = head_layout_from_text(w_.out_layout, w_.heads)->row == 0;
    std::vector<int64_t> shape = axes_.shape({w_.queries, w_.v_size});
    std::vector<std::string> names = axes_.names({"i", "e"});
    if (!apart) {
      std::rotate(shape.begin() + 1, shape.begin() + static_cast<std::ptrdiff_t>(at), shape.end() - 1);
      std::rotate(names.begin() + 1, names.begin() + static_cast<std::ptrdiff_t>(at), names.end() - 1);
    }
    b_.compute(
        "out", shape,
        [&](Indices i) {
          if (!apart) std::rotate(i.begin() + 1, i.begin() + 2, i.end() - 1);
          return load(sums, i) * load(scale, HeadAxes::leading(i, at + 1));
        },
        BufferRole::kOutput, names);
    return b_.finish();
  }

 private:
  Buffer copy(const char* name, const Operand& from, int64_t size, const char* element) {
    return b_.compute(name, {w_.batch, w_.kv_heads, w_.keys, size},
                      [&](const Indices& i) { return from.at(i[0], i[1], i[2], i[3]); },
                      BufferRole::kIntermediate, {"b", "g", "s", element});
  }
  // i: batch, head of the keys, ...
  static Expr of_head(const Buffer& copy, const Operand& from, const Indices& i, const Expr& place,
                      const Expr& element) {
    return copy != nullptr ? load(copy, {i[0], i[1], place, element}) : from.at(i[0], i[1], place, element);
  }
  Buffer over_keys(const char* name, ReduceOp op, const Buffer& scores) {
    return b_.reduce(
        name, axes_.shape({w_.queries}), {{"s", w_.keys}}, op,
        [&](Indices i, const Indices& r) {
          i.push_back(r[0]);
          return load(scores, i);
        },
        BufferRole::kIntermediate, axes_.names({"i"}));
  }
  Buffer exps() {
    const size_t at = axes_.rest();
    const std::vector<int64_t> shape = axes_.shape({w_.queries, w_.keys});
    const std::vector<std::string> names = axes_.names({"i", "s"});
    const Buffer products = b_.reduce(
        "products", shape, {{"d", w_.size}}, ReduceOp::kSum,
        [&](const Indices& i, const Indices& r) {
          return q_.at(i[0], axes_.head(i), i[at], r[0]) * of_head(keys_, k_, i, i[at + 1], r[0]);
        },
        BufferRole::kIntermediate, names);
    const Buffer scores = b_.compute(
        "scores", shape,
        [&](const Indices& i) {
          const Expr &query = i[at], &key = i[at + 1], head = axes_.head(i);
          Expr x = load(products, i) * float_imm(w_.scale, w_.dtype);
          if (w_.causal)
            x = select(key <= query + (w_.keys - w_.queries), x, float_imm(double{w_.hidden}, w_.dtype));
          return bias_.added(mask_.added(x, w_, i[0], head, query, key), w_, i[0], head, query, key);
        },
        BufferRole::kIntermediate, names);
    const Buffer row_max = over_keys("row_max", ReduceOp::kMax, scores);
    return b_.compute(
        "exps", shape,
        [&](const Indices& i) {
          return unary(UnaryOp::kExp, load(scores, i) - load(row_max, HeadAxes::leading(i, at + 1)));
        },
        BufferRole::kIntermediate, names);
  }

  const AttentionWorkload& w_;
  const HeadAxes axes_;
  te::Builder b_;
  const Operand q_, k_, v_;
  const Summand mask_, bias_;
  Buffer keys_, values_;  // null: operands are read where they lie
};

Status check_summand(std::string_view name, const std::string& text, const AttentionWorkload& w) {
  const auto extents = score_summand(text);
  if (!extents) return extents.status().with_context(str(name, ": "));
  if (!*extents) return Status::ok();
  const auto [batch, heads, queries] = **extents;
  if (w.batch % batch != 0 || (heads != 1 && heads != w.heads) || (queries != 1 && queries != w.queries))
    return invalid_argument(name, ": expected a divisor of ", w.batch, ", then 1 or ", w.heads,
                            ", then 1 or ", w.queries, ", found ", text);
  return shape_fits(name, {batch, heads, queries, w.keys}, w.dtype);
}

Status check_layout_of(std::string_view name, const std::string& text, int64_t heads,
                       const AttentionWorkload& w, int64_t sequence, int64_t size) {
  const Result<HeadLayout> layout = head_layout_from_text(text, heads);
  if (!layout) return layout.status().with_context(str(name, ": "));
  return shape_fits(name, {w.batch, sequence, std::max(layout->row, heads), size}, w.dtype);
}

class AttentionFacts final : public OperatorFacts<AttentionWorkload> {
 public:
  void describe(AttentionWorkload& w, WorkloadFields& f) const override {
    f.extent({.word = "b", .json = "batch"}, w.batch);
    f.extent({.word = "h", .json = "heads", .required = true}, w.heads);
    if (f.reads_shapes()) w.kv_heads = w.heads;  // unless said
    f.extent({.word = "g", .json = "kv_heads", .required = true}, w.kv_heads);
    f.extent({.word = "i", .json = "queries", .required = true}, w.queries);
    f.extent({.word = "s", .json = "keys", .required = true}, w.keys);
    f.extent({.word = "d", .json = "size", .required = true}, w.size);
    f.extent({.word = "e", .json = "v_size", .required = true}, w.v_size);
    f.number({.word = "scale"}, w.scale, -1e6, 1e6);
    f.flag({.word = "causal", .may_lack = true}, w.causal);
    if (w.causal) {
      double hidden{w.hidden};
      f.number({.word = "hidden"}, hidden, double{std::numeric_limits<float>::lowest()}, 0);
      w.hidden = static_cast<float>(hidden);
    }
    f.layout({.word = "mask", .may_lack = true}, w.mask, "none");
    f.layout({.word = "bias", .may_lack = true}, w.bias, "none");
    for (const auto& [word, layout] : {std::pair("q_layout", &w.q_layout),
                                       {"k_layout", &w.k_layout},
                                       {"v_layout", &w.v_layout},
                                       {"out_layout", &w.out_layout}})
      f.layout({.word = word, .may_lack = true}, *layout, "BHSD");
    static constexpr DType kServed[] = {DType::kFloat32};
    f.type({.word = "dtype"}, w.dtype, kServed, DType::kFloat32);
  }

  Status check(const AttentionWorkload& w) const override {
    RETURN_IF_ERROR(float32_only(w.dtype));
    if (w.heads % w.kv_heads != 0)
      return invalid_argument("kv_heads: expected a divisor of heads = ", w.heads, ", found ", w.kv_heads);
    if (w.causal && w.keys < w.queries)
      return invalid_argument("causal: expected at least as many keys as queries, found ", w.keys, " and ",
                              w.queries);
    RETURN_IF_ERROR(check_layout_of("q_layout", w.q_layout, w.heads, w, w.queries, w.size));
    RETURN_IF_ERROR(check_layout_of("k_layout", w.k_layout, w.kv_heads, w, w.keys, w.size));
    RETURN_IF_ERROR(check_layout_of("v_layout", w.v_layout, w.kv_heads, w, w.keys, w.v_size));
    RETURN_IF_ERROR(check_layout_of("out_layout", w.out_layout, w.heads, w, w.queries, w.v_size));
    if (w.out_layout != "BHSD" && w.out_layout != "BSHD")
      return invalid_argument("out_layout: expected BHSD or BSHD, found ", w.out_layout);
    RETURN_IF_ERROR(check_summand("mask", w.mask, w));
    RETURN_IF_ERROR(check_summand("bias", w.bias, w));
    RETURN_IF_ERROR(shape_fits("scores", {w.batch, w.heads, w.queries, w.keys}, w.dtype));
    return countable({w.batch, w.heads, w.queries, w.keys, w.size + w.v_size + 5});
  }

  Program math(const AttentionWorkload& w) const override { return AttentionMath(w, false).program(); }
  // Both products; scale, maximum, subtract, exp, sum.
  int64_t flops(const AttentionWorkload& w) const override {
    return w.batch * w.heads * w.queries * w.keys * (2 * (w.size + w.v_size) + 5);
  }
  // What scores are off changes each weight by that share of it, and so does what their sum is off; exp
  // itself is good to 2^-21 on every target. An output is a mean of values between -1 and 1.
  Tolerance tolerance(const AttentionWorkload& w) const override {
    const double scores = product_sum_tolerance(w.size) * std::max(1e-3, std::abs(w.scale));
    return {kLeastTolerance + 2 * scores + positive_sum_error(w.keys) + 0x1p-20, kRelativeTolerance};
  }
  bool shares_errors() const override { return true; }
  // Of a row of heads the operand's own ones; summands once.
  double least_bytes(const AttentionWorkload& w) const override {
    const auto n = [](std::initializer_list<int64_t> factors) {
      double product = 4;
      for (const int64_t f : factors) product *= static_cast<double>(f);
      return product;
    };
    double bytes = n({w.batch, w.heads, w.queries, w.size + w.v_size}) +
                   n({w.batch, w.kv_heads, w.keys, w.size + w.v_size});
    for (const std::string& text : {w.mask, w.bias})
      if (const auto extents = *score_summand(text))
        bytes += n({(*extents)[0], (*extents)[1], (*extents)[2], w.keys});
    return bytes;
  }

  TaskShape shape(const AttentionWorkload& w) const override {
    return {str(w.kOp, " dtype=", dtype_name(w.dtype)),
            {{"b", w.batch},
             {"g", w.kv_heads},
             {"r", w.group()},
             {"i", w.queries},
             {"s", w.keys},
             {"d", w.size},
             {"e", w.v_size}}};
  }
  std::string shape_name(const AttentionWorkload& w) const override {
    return str(w.batch > 1 ? str(w.batch, "x") : "", w.heads, "x", w.queries, "x", w.keys, "x", w.size);
  }
};

}  // namespace

Result<HeadLayout> head_layout_from_text(std::string_view text, int64_t heads) {
  if (text == "BHSD") return HeadLayout{};
  if (text == "BSHD") return HeadLayout{heads, 0};
  constexpr std::string_view kRow = "BSHD:";
  if (text.starts_with(kRow)) {
    const auto numbers = integers_of(text.substr(kRow.size()), ':', 0);
    if (numbers && numbers->size() == 2) {
      const HeadLayout layout{(*numbers)[0], (*numbers)[1]};
      // One spelling for one layout, and no head outside the row.
      if (layout.first <= layout.row - heads && layout.row > heads) return layout;
    }
  }
  return invalid_argument("expected BHSD, BSHD, or BSHD:ROW:FIRST with ", heads,
                          " heads from FIRST on in a row of more, found ", text);
}

std::string head_layout_text(const HeadLayout& layout, int64_t heads) {
  if (layout.row == 0) return "BHSD";
  return layout.row == heads ? "BSHD" : str("BSHD:", layout.row, ":", layout.first);
}

Result<std::optional<std::array<int64_t, 3>>> score_summand(std::string_view text) {
  using Extents = std::array<int64_t, 3>;
  if (text == "none") return std::optional<Extents>();
  const auto numbers = integers_of(text, 'x', 1);
  if (numbers && numbers->size() == 3)
    return std::optional(Extents{(*numbers)[0], (*numbers)[1], (*numbers)[2]});
  return invalid_argument("expected none, or extents of batch, heads and queries such as 1x12x1, found ",
                          text);
}

const OperatorFacts<AttentionWorkload>& AttentionWorkload::facts() {
  static const AttentionFacts facts;
  return facts;
}

Program attention_of_copies(const AttentionWorkload& w) { return AttentionMath(w, true).program(); }

}  // namespace tuner
