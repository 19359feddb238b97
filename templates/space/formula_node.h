// The tree of a Formula. Private to formula.cpp and formula_value.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "templates/space/knob.h"

namespace tuner {

enum class FormulaKind : uint8_t {
  kNumber,
  kName,
  kWord,    // in quotes
  kApply,   // `op` to two operands: arithmetic and comparisons
  kNegate,  // of one operand
  kNot,
  kAnd,  // two operands; the second one only where the first one does not decide
  kOr,
};

struct FormulaNode {
  FormulaKind kind = FormulaKind::kNumber;
  IntOp op = IntOp::kConst;
  int64_t number = 0;
  std::string text;        // of a name or word
  int64_t operations = 1;  // to evaluate it: what is read twice, as the middle of a < b < c, counts twice
  size_t column = 1;       // where it, or its sign, begins in the text; counted from 1
  std::vector<std::shared_ptr<const FormulaNode>> operands;
};

}  // namespace tuner
