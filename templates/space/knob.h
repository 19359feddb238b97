// Knobs as a template declares and reads them, and the integer expressions that tie them together.
//
//   SplitKnob tile = space.split("tile_m", 1024).at_most(16).try_first(8);
//   FlagKnob pack = space.flag("pack_a").try_first(false);
//   space.require(tile.inner() * 2 + 3 <= 32 && (!pack || tile.inner() >= 4));
//   ... c[tile].inner, c[pack]
//
// A constraint is data: it can be bounded, partially evaluated, counted and printed. Division and modulo
// round down; x / 0 and x % 0 are 0. Comparisons and logic yield 0 or 1, and any value but 0 counts as true.
// Arithmetic saturates at 64 bits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "templates/space/config_space.h"

namespace tuner {

enum class IntOp : uint8_t {
  kConst,
  kKnob,  // leaves: `value` is the number, or the knob's position in ConfigSpace::knobs()
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kPow,  // x ** y; 0 where y is negative
  kMin,
  kMax,
  kLt,
  kLe,
  kEq,
  kNe,
  kAnd,
  kOr,
};

struct IntExprNode {
  IntOp op;
  int64_t value = 0;
  std::shared_ptr<const IntExprNode> a, b;
};

// An immutable handle; copies share the tree.
class IntExpr {
 public:
  IntExpr(int64_t value) : node_(std::make_shared<IntExprNode>(IntExprNode{IntOp::kConst, value, {}, {}})) {}
  IntExpr(int value) : IntExpr(static_cast<int64_t>(value)) {}
  explicit IntExpr(std::shared_ptr<const IntExprNode> node) : node_(std::move(node)) {}
  const std::shared_ptr<const IntExprNode>& node() const { return node_; }

 private:
  std::shared_ptr<const IntExprNode> node_;
};

inline IntExpr int_expr(IntOp op, const IntExpr& a, const IntExpr& b) {
  return IntExpr(std::make_shared<IntExprNode>(IntExprNode{op, 0, a.node(), b.node()}));
}
inline IntExpr operator+(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kAdd, a, b); }
inline IntExpr operator-(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kSub, a, b); }
inline IntExpr operator*(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kMul, a, b); }
inline IntExpr operator/(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kDiv, a, b); }
inline IntExpr operator%(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kMod, a, b); }
inline IntExpr pow(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kPow, a, b); }
inline IntExpr min(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kMin, a, b); }
inline IntExpr max(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kMax, a, b); }
inline IntExpr operator<(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kLt, a, b); }
inline IntExpr operator<=(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kLe, a, b); }
inline IntExpr operator>(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kLt, b, a); }
inline IntExpr operator>=(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kLe, b, a); }
inline IntExpr operator==(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kEq, a, b); }
inline IntExpr operator!=(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kNe, a, b); }
inline IntExpr operator&&(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kAnd, a, b); }
inline IntExpr operator||(const IntExpr& a, const IntExpr& b) { return int_expr(IntOp::kOr, a, b); }
inline IntExpr operator!(const IntExpr& a) { return int_expr(IntOp::kEq, a, IntExpr(0)); }
inline IntExpr ceil_div(const IntExpr& a, const IntExpr& b) { return (a + b - 1) / b; }

// Prints an expression as written, with few parentheses: "tile_m * 2 + 3 <= 32". `knobs` gives the names.
std::string to_text(const IntExpr& e, const std::vector<KnobInfo>& knobs);

// --- handles: what a template keeps, by value; valid for every config of the space they come from ---

class KnobHandle {
 public:
  KnobHandle() = default;
  KnobHandle(std::string name, int position) : name_(std::move(name)), position_(position) {}
  const std::string& name() const { return name_; }
  int position() const { return position_; }  // in ConfigSpace::knobs(); -1: of no space

 protected:
  IntExpr expr() const {
    CHECK(position_ >= 0) << "a knob handle that no space declared is used in a constraint";
    return IntExpr(std::make_shared<IntExprNode>(IntExprNode{IntOp::kKnob, position_, {}, {}}));
  }

 private:
  std::string name_;
  int position_ = -1;
};

class SplitKnob : public KnobHandle {
 public:
  SplitKnob() = default;
  SplitKnob(std::string name, int position, int64_t extent)
      : KnobHandle(std::move(name), position), extent_(extent) {}
  IntExpr inner() const { return expr(); }
  IntExpr outer() const { return ceil_div(extent_, expr()); }
  int64_t extent() const { return extent_; }

 private:
  int64_t extent_ = 1;
};
class FlagKnob : public KnobHandle {
 public:
  using KnobHandle::KnobHandle;
  operator IntExpr() const { return expr(); }
};
class ChoiceKnob : public KnobHandle {
 public:
  using KnobHandle::KnobHandle;
  operator IntExpr() const { return expr(); }
};
class CategoryKnob : public KnobHandle {
 public:
  using KnobHandle::KnobHandle;
  operator IntExpr() const { return expr(); }  // position in the list
};

class PermutationKnob : public KnobHandle {
 public:
  PermutationKnob() = default;
  PermutationKnob(std::string name, int position, int items)
      : KnobHandle(std::move(name), position), items_(items) {}
  int items() const { return items_; }
  // Returns the item that comes first (outermost, for loops).
  IntExpr first() const {
    int64_t orders_of_rest = 1;
    for (int i = 2; i < items_; ++i) orders_of_rest *= i;
    return expr() / orders_of_rest;
  }

 private:
  int items_ = 1;
};
// Convert between orders of 0..n-1 and their lexicographic rank, 0 to n! - 1. A rank or list outside is our
// bug (CHECK).
std::vector<int> permutation_of_rank(int64_t rank, int n);
int64_t rank_of_permutation(const std::vector<int>& order);

// --- declaring: ConfigSpace::split() and its siblings return a builder, which converts to the handle ---

// What has been declared about a knob so far. ConfigSpace::seal() lists the candidates.
struct KnobSpec {
  KnobInfo info;
  int position = 0;
  int64_t multiple = 1, at_least = 1, at_most = INT64_MAX, first = 0;
  bool divisors_only = false, powers_of_two = false, has_first = false;
};

// Inner factors of an axis: 1..extent, unless narrowed. If more than 256 remain, only divisors of the extent,
// powers of two, multiples of 1/64 of the largest, and the first value are kept.
class SplitBuilder {
 public:
  explicit SplitBuilder(KnobSpec& spec) : spec_(spec) {}
  // Keeps n, 2n, ... up to the extent rounded up to n. For an extent below n the factor n stays (its block is
  // partly empty).
  SplitBuilder& multiples_of(int64_t n) {
    spec_.multiple = n;
    return *this;
  }
  SplitBuilder& at_most(int64_t n) {
    spec_.at_most = n;
    return *this;
  }
  SplitBuilder& at_least(int64_t n) {
    spec_.at_least = n;
    return *this;
  }
  SplitBuilder& divisors_only() {
    spec_.divisors_only = true;
    return *this;
  }
  SplitBuilder& powers_of_two() {
    spec_.powers_of_two = true;
    return *this;
  }
  // Tries first the largest candidate that is at most v, else the smallest. Without this call: the smallest.
  SplitBuilder& try_first(int64_t v) {
    spec_.first = v;
    spec_.has_first = true;
    return *this;
  }
  operator SplitKnob() const { return SplitKnob(spec_.info.name, spec_.position, spec_.info.extent); }

 private:
  KnobSpec& spec_;
};
// A flag starts unset, unless try_first() says otherwise.
class FlagBuilder {
 public:
  explicit FlagBuilder(KnobSpec& spec) : spec_(spec) {}
  FlagBuilder& try_first(bool v) {
    spec_.first = v ? 1 : 0;
    spec_.has_first = true;
    return *this;
  }
  operator FlagKnob() const { return FlagKnob(spec_.info.name, spec_.position); }

 private:
  KnobSpec& spec_;
};
// Numbers in a list; narrowing drops those outside. Order and repetitions do not matter.
class ChoiceBuilder {
 public:
  explicit ChoiceBuilder(KnobSpec& spec) : spec_(spec) { spec_.at_least = INT64_MIN; }
  ChoiceBuilder& at_most(int64_t n) {
    spec_.at_most = n;
    return *this;
  }
  ChoiceBuilder& at_least(int64_t n) {
    spec_.at_least = n;
    return *this;
  }
  ChoiceBuilder& try_first(int64_t v) {
    spec_.first = v;
    spec_.has_first = true;
    return *this;
  }  // like SplitBuilder
  operator ChoiceKnob() const { return ChoiceKnob(spec_.info.name, spec_.position); }

 private:
  KnobSpec& spec_;
};
// Names without order. The first of the list is tried first, unless try_first() says otherwise.
class CategoryBuilder {
 public:
  explicit CategoryBuilder(KnobSpec& spec) : spec_(spec) {}
  CategoryBuilder& try_first(const std::string& label) {
    spec_.has_first = true;
    spec_.first = -1;
    for (size_t i = 0; i < spec_.info.labels.size(); ++i)
      if (spec_.info.labels[i] == label) spec_.first = static_cast<int64_t>(i);
    CHECK(spec_.first >= 0) << "knob " << spec_.info.name << " has no label " << label;
    return *this;
  }
  operator CategoryKnob() const { return CategoryKnob(spec_.info.name, spec_.position); }

 private:
  KnobSpec& spec_;
};

// All orders of the items. The listed order is tried first, unless try_first() says otherwise.
class PermutationBuilder {
 public:
  explicit PermutationBuilder(KnobSpec& spec) : spec_(spec) {}
  PermutationBuilder& try_first(const std::vector<std::string>& order);
  operator PermutationKnob() const {
    return PermutationKnob(spec_.info.name, spec_.position, static_cast<int>(spec_.info.labels.size()));
  }

 private:
  KnobSpec& spec_;
};

}  // namespace tuner
