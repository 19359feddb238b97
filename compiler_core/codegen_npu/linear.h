// Index expressions in a nest of loops, some of whose variables have a value already: the others are those of
// one instruction, in which the expression has to be linear.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler_core/ir/expr.h"

namespace tuner {

// base + sum of by[i] * (variable i).
struct Linear {
  int64_t base = 0;
  std::vector<int64_t> by;

  bool is_constant() const;
};

// Loops of one instruction, outermost first, and what of each is left by guards: begin <= variable < end.
struct InstructionLoop {
  const VarNode* var = nullptr;
  int64_t extent = 0;
  int64_t begin = 0, end = 0;
};

class LinearScope {
 public:
  void set(const VarNode* var, int64_t value) { values_[var] = value; }
  // From here on expressions are linear in these variables.
  void begin(std::vector<InstructionLoop> loops) {
    loops_ = std::move(loops);
    never_ = false;
  }
  std::vector<InstructionLoop>& loops() { return loops_; }
  const std::vector<InstructionLoop>& loops() const { return loops_; }

  // Nothing where it is not linear.
  std::optional<Linear> linear(const Expr& e) const;
  // Nothing where it depends on an inner loop.
  std::optional<int64_t> value(const Expr& e) const;
  // The least and the most it can be within begin and end of all loops.
  std::pair<int64_t, int64_t> range(const Linear& l) const;

  // Narrows the loops to where the condition holds. False: it cuts no box out of them.
  bool narrow(const Expr& condition);
  bool is_empty() const;

 private:
  std::optional<Linear> divided(const Linear& l, int64_t divisor, bool remainder) const;
  std::optional<bool> decided(const Expr& condition) const;
  bool narrow_to_positive(const Linear& l);  // to where l >= 0

  std::unordered_map<const VarNode*, int64_t> values_;
  std::vector<InstructionLoop> loops_;
  bool never_ = false;  // a condition failed that depends on none of them
};

}  // namespace tuner
