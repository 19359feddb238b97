// NonMaxSuppression: of boxes that overlap the one with the best score.
//
// How many are selected depends on data, and extents may not. The result has as many rows as the attribute
// tuner.rows says, which readers of models set; rows that are not used are -1. Where boxes, scores and limits
// are constants, their rows are counted here.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace box_ops {
namespace {

enum Input : size_t { kBoxes, kScores, kMost, kOverlap, kLeast };
constexpr std::string_view kBound = "tuner.rows";

struct Suppression {
  int64_t batches, classes, boxes;
  int64_t rounds;  // at most so many are selected of each class
  bool centers;    // boxes are [x, y, width, height] of the middle, not two corners [y, x, y, x]
  int64_t all() const { return batches * classes * rounds; }
};
Result<Suppression> suppression_of(const Use& use) {
  const Shape &boxes = use.shape(kBoxes), &scores = use.shape(kScores);
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2])
    return invalid_argument("boxes are ", to_text(use.type(kBoxes)), ", scores ", to_text(use.type(kScores)),
                            ", expected [N, B, 4] and [N, C, B]");
  int64_t most = 0;
  if (use.has(kMost)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> given, use.integers(kMost));
    most = given[0];
  }
  if (most < 1)
    return invalid_argument("max_output_boxes_per_class is ", most, ": the result has no elements");
  const int64_t centers = use.integer("center_point_box", 0);
  if (centers != 0 && centers != 1)
    return invalid_argument("center_point_box is ", centers, ", expected 0 or 1");
  Suppression s{boxes[0], scores[1], boxes[1], std::min(most, boxes[1]), centers == 1};
  constexpr int64_t kMostWork = int64_t{1} << 32;  // boxes looked at
  if (use.type(kScores).elements() > kMostWork / s.rounds || s.all() > int64_t{1} << 16)
    return invalid_argument("selects up to ", s.rounds, " boxes of each of ", s.batches * s.classes,
                            " classes of ", s.boxes,
                            ", which are too many; a smaller max_output_boxes_per_class is served");
  return s;
}

// --- where all is constant ---
struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};
Box box_at(const std::vector<double>& numbers, int64_t k, bool centers) {
  const double* b = &numbers[static_cast<size_t>(4 * k)];
  if (centers) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}
double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top),
               width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double shared = std::max(height, 0.0) * std::max(width, 0.0);
  return shared <= 0 ? 0 : shared / (a.area() + b.area() - shared);
}
// How many of one class.
int64_t count_selected(const Suppression& s, std::vector<double> scores, const std::vector<Box>& boxes,
                       double most) {
  int64_t count = 0;
  for (; count < s.rounds; ++count) {
    const auto best = std::ranges::max_element(scores);
    if (*best == -HUGE_VAL) break;
    const Box chosen = boxes[static_cast<size_t>(best - scores.begin())];
    *best = -HUGE_VAL;
    for (size_t k = 0; k < boxes.size(); ++k)
      if (overlap(chosen, boxes[k]) > most) scores[k] = -HUGE_VAL;
  }
  return count;
}
Result<int64_t> known_rows(const Use& use, const Suppression& s) {
  ASSIGN_OR_RETURN(const std::vector<double> boxes, use.numbers(kBoxes));
  ASSIGN_OR_RETURN(const std::vector<double> scores, use.numbers(kScores));
  double limits[] = {0, -HUGE_VAL};
  for (const size_t k : {size_t{0}, size_t{1}}) {
    if (!use.has(kOverlap + k)) continue;
    ASSIGN_OR_RETURN(const std::vector<double> limit, use.numbers(kOverlap + k));
    limits[k] = limit[0];
  }
  int64_t rows = 0;
  for (int64_t n = 0; n < s.batches; ++n) {
    std::vector<Box> of_batch;
    for (int64_t b = 0; b < s.boxes; ++b) of_batch.push_back(box_at(boxes, n * s.boxes + b, s.centers));
    for (int64_t c = 0; c < s.classes; ++c) {
      const auto first = scores.begin() + (n * s.classes + c) * s.boxes;
      std::vector<double> own(first, first + s.boxes);
      for (double& x : own) x = x > limits[1] ? x : -HUGE_VAL;
      rows += count_selected(s, std::move(own), of_batch, limits[0]);
    }
  }
  if (rows == 0) return invalid_argument("no box is selected: the result has no elements");
  return rows;
}

Result<std::vector<TensorType>> nms_types(const Use& use) {
  ASSIGN_OR_RETURN(const Suppression s, suppression_of(use));
  if (use.has_attribute(kBound)) {
    const int64_t rows = use.integer(kBound, 0);
    if (rows < 1 || rows > s.all()) return invalid_argument(rows, " rows of result, expected 1 to ", s.all());
    return one({DType::kInt64, {rows, 3}});
  }
  auto rows = known_rows(use, s);
  if (!rows) return rows.status().with_context("the number of boxes it selects depends on data: ");
  return one({DType::kInt64, {*rows, 3}});
}

// --- the math: one box of each class a step ---
class Selection {
 public:
  Selection(const Use& use, MathWriter& m) : use_(use), m_(m), s_(*suppression_of(use)) {}

  void write() {
    corners_ = m_.stage("corners", {s_.batches, s_.boxes, 4}, real_,
                        [&](const te::Indices& i) { return corner(i); });
    // [class, box]: scores of boxes that may still be selected. [step, class]: boxes, or -1.
    const Buffer alive = m_.declare("alive", {s_.batches, s_.classes, s_.boxes}, real_);
    chosen_ = m_.declare("chosen", {s_.rounds, s_.batches, s_.classes}, DType::kInt64);
    m_.steps("step", s_.rounds, [&](const Expr& step) {
      m_.fill(alive, {}, [&](const te::Indices& i) {
        const Expr before = load(chosen_, {max(step - Expr(1), Expr(0)), i[0], i[1]});
        return select(step < Expr(1), score(i), select(is_suppressed(i, before), never(), load(alive, i)));
      });
      const Shape classes{s_.batches, s_.classes};
      const auto at = [&](const te::Indices& i, const te::Indices& r) {
        return load(alive, {i[0], i[1], r[0]});
      };
      const Buffer best = m_.reduced("best", classes, {s_.boxes}, ReduceOp::kMax, at);
      const Buffer place =
          m_.reduced("place", classes, {s_.boxes}, ReduceOp::kMin, [&](const auto& i, const auto& r) {
            return select(equals(at(i, r), load(best, i)), r[0], Expr(s_.boxes - 1));
          });
      m_.fill(chosen_, {step}, [&](const te::Indices& i) {
        return select(equals(load(best, i), never()), Expr(-1), load(place, i));
      });
    });
    write_rows();
  }

 private:
  Expr never() const { return number(real_, -std::numeric_limits<double>::infinity()); }
  Expr single(size_t input) const { return at(m_.in(input), te::Indices(use_.shape(input).size(), Expr(0))); }

  // Top, left, bottom, right.
  Expr corner(const te::Indices& i) const {
    const auto given = [&](const Expr& k) { return as(real_, load(m_.in(kBoxes), {i[0], i[1], k})); };
    const Expr is_first = i[2] < Expr(2);
    if (!s_.centers) {
      const Expr k = floor_mod(i[2], Expr(2)), a = given(k), b = given(k + Expr(2));
      return select(is_first, min(a, b), max(a, b));
    }
    const Expr k = Expr(1) - floor_mod(i[2], Expr(2));
    const Expr half = given(k + Expr(2)) * number(real_, 0.5);
    return select(is_first, given(k) - half, given(k) + half);
  }
  // A NaN is no score.
  Expr score(const te::Indices& i) const {
    const Expr x = as(real_, load(m_.in(kScores), i));
    const Expr least = use_.has(kLeast) ? as(real_, single(kLeast)) : never();
    return select(binary(BinaryOp::kGt, x, least), x, never());
  }
  // Whether box i[2] is the one that was chosen before, or overlaps it too much.
  Expr is_suppressed(const te::Indices& i, const Expr& chosen) const {
    const Expr other = max(chosen, Expr(0)), zero = number(real_, 0);
    const auto of = [&](const Expr& box, int64_t k) { return load(corners_, {i[0], box, Expr(k)}); };
    const auto area = [&](const Expr& box) { return (of(box, 2) - of(box, 0)) * (of(box, 3) - of(box, 1)); };
    const auto shared = [&](int64_t k) {
      return max(min(of(i[2], k + 2), of(other, k + 2)) - max(of(i[2], k), of(other, k)), zero);
    };
    const Expr both = shared(0) * shared(1), any = area(i[2]) + area(other) - both;
    const Expr limit = use_.has(kOverlap) ? as(real_, single(kOverlap)) : zero;
    const Expr overlaps = binary(BinaryOp::kGt, both, zero) && binary(BinaryOp::kGt, both / any, limit);
    return equals(i[2], other) || overlaps;
  }
  // Rows are ordered by class (of the first batch, then the next), then as they were selected.
  void write_rows() {
    const int64_t groups = s_.batches * s_.classes;
    const auto group = [&](const Expr& g) {
      return te::Indices{floor_div(g, Expr(s_.classes)), floor_mod(g, Expr(s_.classes))};
    };
    const Buffer count =
        m_.reduced("count", {groups}, {s_.rounds}, ReduceOp::kSum, [&](const auto& i, const auto& r) {
          const te::Indices g = group(i[0]);
          return select(load(chosen_, {r[0], g[0], g[1]}) >= Expr(0), int_imm(1), int_imm(0));
        });
    const Buffer start = m_.reduced(
        "start", {groups}, {groups}, ReduceOp::kSum,
        [&](const auto& i, const auto& r) { return select(r[0] < i[0], load(count, r), int_imm(0)); });
    const Buffer owner = m_.reduced(
        "owner", {m_.type().shape[0]}, {groups}, ReduceOp::kMax, [&](const auto& i, const auto& r) {
          const Expr rest = i[0] - load(start, r);
          return select(rest >= Expr(0) && rest < load(count, r), r[0], int_imm(-1));
        });
    m_.result([&](const te::Indices& i) {
      const Expr found = load(owner, {i[0]}), held = max(found, Expr(0));
      const te::Indices g = group(held);
      const Expr step = min(max(i[0] - load(start, {held}), Expr(0)), Expr(s_.rounds - 1));
      const Expr value = select(equals(i[1], Expr(0)), g[0],
                                select(equals(i[1], Expr(1)), g[1], load(chosen_, {step, g[0], g[1]})));
      return select(found < Expr(0), Expr(-1), value);
    });
  }

  const Use& use_;
  MathWriter& m_;
  Suppression s_;
  DType real_ = DType::kFloat32;
  Buffer corners_, chosen_;
};
void nms(const Use& use, MathWriter& m) { Selection(use, m).write(); }

constexpr Operator kRows[] = {
    {"NonMaxSuppression", OperatorKind::kReduction, 2, 5, 1, nms_types, nms},
};

}  // namespace
}  // namespace box_ops

std::span<const Operator> box_operators() { return box_ops::kRows; }

}  // namespace tuner::graph
