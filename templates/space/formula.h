// Formula: an integer expression that a person wrote, in a job file: a shape, a constraint, a launch.
//
//   tile_m * tile_n <= 1024 and n % tile_n == 0
//
// The syntax that C and Python share, with integers that are 64 bits wide:
//
//   or ||   and &&   not !   < <= > >= == !=   + -   * // %   **   min(a, b, ...)   max(a, b, ...)   "word"
//
// weakest first. Where the two differ it means what Python means: // and % round down, -2 ** 2 is -4, and a <
// b < c is a < b and b < c. Comparisons and logic give 0 or 1, and any number but 0 counts as true. `/` is
// refused, as the two differ in it for good. A word in quotes is compared, by == or !=, with a name whose
// values are words.
//
// A text has at most 4,096 bytes, 64 levels and 512 operations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler_core/base/status.h"
#include "templates/space/knob.h"

namespace tuner {

struct FormulaNode;

class Formula {
 public:
  // InvalidArgument: "column 9: expected a number, a name or (, found <=".
  static Result<Formula> parse(std::string_view text);

  const std::string& text() const { return text_; }
  // Each name it reads once, in the order of their first appearance.
  const std::vector<std::string>& names() const { return names_; }

  // What a name stands for; empty: it is unknown.
  using Value = std::variant<int64_t, std::string>;
  using Values = std::function<std::optional<Value>(const std::string& name)>;
  // Its value. The right side of `and` and `or` is evaluated only where the left one does not decide.
  // InvalidArgument in one line: an unknown name, a division by zero, a negative power, a number beyond 64
  // bits, a word where a number is expected.
  Result<int64_t> value(const Values& values) const;

  // A name in a space: a constant, or a knob with its candidates; `labels` of a knob whose values are words.
  struct InSpace {
    IntExpr expr;
    std::vector<int64_t> candidates;
    std::vector<std::string> labels;
  };
  using Space = std::function<std::optional<InSpace>(const std::string& name)>;
  // The same expression over the knobs of a space. InvalidArgument in one line: an unknown name, a word that
  // no candidate is, a divisor or power that may be 0 or negative for some candidates, unless it stands right
  // of `and` or `or`, which may exclude them. Arithmetic saturates at 64 bits (IntExpr).
  Result<IntExpr> over(const Space& space) const;

 private:
  std::string text_;
  std::vector<std::string> names_;
  std::shared_ptr<const FormulaNode> root_;
};

}  // namespace tuner
