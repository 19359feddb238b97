// RoundVariables: what the rounds of a copy keep in registers over all steps: arrays of index sums
// (index_names.h), masks of conditions (step_masks.h); and tables of what depends on the step alone.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/codegen_cuda/expr_text.h"
#include "compiler_core/codegen_cuda/index_names.h"
#include "compiler_core/codegen_cuda/names.h"
#include "compiler_core/codegen_cuda/place_text.h"
#include "compiler_core/codegen_cuda/printed_lines.h"
#include "compiler_core/codegen_cuda/step_masks.h"

namespace tuner::cuda {

class RoundVariables {
 public:
  // How the text of the kernel is written. All of it must outlive this.
  struct Text {
    Names& names;
    IndexNames& index_names;
    ExprText& expr_text;
    PlaceText& places;
    PrintedLines& lines;
  };
  // `kernel`: its name. `masks` must outlive this.
  RoundVariables(std::string kernel, const std::vector<StepMask>& masks, const Text& text)
      : kernel_(std::move(kernel)),
        masks_(masks),
        names_(text.names),
        index_names_(text.index_names),
        expr_text_(text.expr_text),
        places_(text.places),
        text_(text.lines) {}

  // Writes the arrays and masks that are defined before the loop.
  void define_before(const VarNode* loop, RangeMap& ranges);
  // The loop of rounds begins: from here on names stand for the elements of its round, and for the bits of
  // this step.
  void begin(const Var& rounds, const std::string& round, RangeMap& ranges);
  // The element that this step has of a table of the values of `n`.
  std::string looked_up(const IndexNames::Named& n, const RangeMap& ranges);
  // Definitions that stand in front of the kernel.
  const std::string& tables() const { return tables_; }

 private:
  void define_array(const IndexNames::Named& n, RangeMap& ranges);
  void define_mask(const StepMask& mask, const RangeMap& ranges);
  void name_elements(const Var& rounds, const std::string& round);
  void name_bits(const Var& rounds, const std::string& round, RangeMap& ranges);
  std::string step_text(const Steps& steps, const RangeMap& ranges);
  std::string bits_table(const StepMask& mask);
  std::string table(const std::string& wanted, const char* type, const std::string& values,
                    const std::string& about);

  std::string kernel_;
  const std::vector<StepMask>& masks_;
  Names& names_;
  IndexNames& index_names_;
  ExprText& expr_text_;
  PlaceText& places_;
  PrintedLines& text_;
  std::vector<std::pair<Var, Var>> arrays_;  // what is one over rounds, and their loop's variable
  std::map<const VarNode*, std::string> array_names_, bits_tables_;
  std::string tables_;
};

}  // namespace tuner::cuda
