#include "compiler_core/codegen_cuda/round_variables.h"

#include <cstdint>

#include "compiler_core/base/status.h"

namespace tuner::cuda {

void RoundVariables::define_before(const VarNode* loop, RangeMap& ranges) {
  for (const IndexNames::Named& n : index_names_.defined_before(loop)) define_array(n, ranges);
  for (const StepMask& mask : masks_)
    if (mask.before == loop) define_mask(mask, ranges);
}

void RoundVariables::begin(const Var& rounds, const std::string& round, RangeMap& ranges) {
  name_elements(rounds, round);
  name_bits(rounds, round, ranges);
}

void RoundVariables::define_array(const IndexNames::Named& n, RangeMap& ranges) {
  const std::string name = names_.declare(n.var->name);
  RangeMap inside = ranges;
  inside.bind(n.over->var, n.over->extent);
  const auto bounds = const_bounds(n.value, inside);
  const bool fits = bounds.has_value() && bounds->first > INT32_MIN && bounds->second < INT32_MAX;
  text_.line(str(fits ? "int " : "long long ", name, "[", n.over->extent, "];  // of each round: ", n.about));
  text_.line("#pragma unroll");
  names_.open();
  const std::string round = names_.declare(n.over->var, n.over->var->name);
  text_.open(str("for (int ", round, " = 0; ", round, " < ", n.over->extent, "; ++", round, ")"));
  name_elements(n.over->var, round);
  text_.line(str(name, "[", round, "] = ", expr_text_.index(n.value, inside), ";"));
  text_.close();
  names_.close();
  if (bounds.has_value()) ranges.bind(n.var, bounds->first, bounds->second + 1);
  if (!fits) expr_text_.is_wide(n.var);
  array_names_[n.var.get()] = name;
  arrays_.emplace_back(n.var, n.over->var);
}

void RoundVariables::define_mask(const StepMask& mask, const RangeMap& ranges) {
  const std::string name = names_.declare(mask.name);
  text_.line(str("unsigned ", name, "[", mask.over->extent, "];  // of each round: a bit for each of ",
                 mask.kinds.size(), " kinds of steps"));
  text_.line("#pragma unroll");
  names_.open();
  index_names_.look_ahead(true);
  const std::string round = names_.declare(mask.over->var, mask.over->var->name);
  text_.open(str("for (int ", round, " = 0; ", round, " < ", mask.over->extent, "; ++", round, ")"));
  RangeMap inside = ranges;
  inside.bind(mask.over->var, mask.over->extent);
  name_elements(mask.over->var, round);
  text_.line(str(name, "[", round, "] = 0;"));
  for (size_t kind = 0; kind < mask.kinds.size(); ++kind) {
    int64_t always = 0;
    const std::string condition = is_const_int(mask.kinds[kind], &always) && always != 0
                                      ? ""
                                      : str("if (", places_.value(mask.kinds[kind], inside), ") ");
    text_.line(str(condition, name, "[", round, "] |= ", uint32_t{1} << kind, "u;"));
  }
  text_.close();
  names_.close();
  index_names_.look_ahead(false);
  array_names_[mask.var.get()] = name;
  bits_tables_[mask.var.get()] = bits_table(mask);
}

void RoundVariables::name_elements(const Var& rounds, const std::string& round) {
  for (const auto& [array, over] : arrays_)
    if (over == rounds) names_.alias(array, str(array_names_.at(array.get()), "[", round, "]"));
}

void RoundVariables::name_bits(const Var& rounds, const std::string& round, RangeMap& ranges) {
  for (const StepMask& mask : masks_) {
    if (mask.over->var != rounds) continue;
    ranges.bind(mask.var, 0, INT32_MAX);  // compared with 0 alone
    names_.alias(mask.var, str("(", array_names_.at(mask.var.get()), "[", round, "] & ",
                               bits_tables_.at(mask.var.get()), "[", step_text(mask.steps, ranges), "])"));
  }
}

std::string RoundVariables::bits_table(const StepMask& mask) {
  std::string bits;
  for (const int64_t kind : mask.kind_of_step)
    bits += str(bits.empty() ? "" : ", ", uint32_t{1} << kind, "u");
  return table(mask.name, "unsigned", bits, "which bit of " + mask.name + " it asks for");
}

std::string RoundVariables::looked_up(const IndexNames::Named& n, const RangeMap& ranges) {
  std::string values;
  for (const int64_t v : n.values) values += str(values.empty() ? "" : ", ", v);
  return str(table(n.var->name, "int", values, n.about), "[", step_text(n.steps, ranges), "]");
}

std::string RoundVariables::step_text(const Steps& steps, const RangeMap& ranges) {
  return expr_text_.index(simplify(step_number(steps), ranges), ranges);
}

// In front of the kernel, in constant memory. Returns its name.
std::string RoundVariables::table(const std::string& wanted, const char* type, const std::string& values,
                                  const std::string& about) {
  const std::string name = names_.declare(str(kernel_, "_", wanted));
  names_.reserve(name);
  std::string text =
      str("// Of each step: ", about, ".\nstatic __constant__ ", type, " ", name, "[] = {", values, "};\n");
  tables_ += text;
  return name;
}

}  // namespace tuner::cuda
