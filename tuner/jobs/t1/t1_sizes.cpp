#include "tuner/jobs/t1/t1_sizes.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>

#include "compiler_core/base/printable.h"
#include "templates/space/formula.h"

namespace tuner::t1 {
namespace {

bool goes_on_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The text with each name replaced by what `instead` says of it and of the text behind it; nothing: it stays.
// `instead` may take some of the text behind the name away.
using Instead = std::function<std::optional<std::string>(std::string_view name, std::string_view& behind)>;
std::string with_names(std::string_view text, const Instead& instead) {
  std::string out;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '\'' || c == '"') {
      const size_t end = std::min(text.find(c, 1), text.size() - 1) + 1;
      out += text.substr(0, end);
      text.remove_prefix(end);
      continue;
    }
    size_t end = 0;
    while (end < text.size() && goes_on_name(text[end])) ++end;
    if (end == 0) {
      out += c;
      text.remove_prefix(1);
      continue;
    }
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(end);
    const std::optional<std::string> replaced = instead(name, text);
    out += replaced ? *replaced : std::string(name);
  }
  return out;
}

// "[1]" or "(block)" behind a name: what stands in the brackets, which are taken away.
std::optional<std::string_view> take_brackets(std::string_view& behind, char open, char close) {
  if (!behind.starts_with(open)) return std::nullopt;
  const size_t end = behind.find(close);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view held = behind.substr(1, end - 1);
  behind.remove_prefix(end + 1);
  return held;
}

const Parameter* named(const std::vector<Parameter>& parameters, std::string_view name) {
  const auto at = std::ranges::find(parameters, name, &Parameter::name);
  return at == parameters.end() ? nullptr : &*at;
}

std::optional<int64_t> extreme(const Parameter& parameter, bool largest) {
  std::optional<int64_t> found;
  for (const Value& value : parameter.values) {
    const auto* number = std::get_if<int64_t>(&value);
    if (number == nullptr) return std::nullopt;
    if (!found || (largest ? *number > *found : *number < *found)) found = *number;
  }
  return found;
}

}  // namespace

Result<std::string> expression_over(const std::vector<Parameter>& parameters, std::string_view text) {
  std::string ours =
      with_names(text, [](std::string_view name, std::string_view&) -> std::optional<std::string> {
        if (name == "True") return "1";
        if (name == "False") return "0";
        return std::nullopt;
      });
  ASSIGN_OR_RETURN(const Formula formula, Formula::parse(ours));
  for (const std::string& name : formula.names())
    if (named(parameters, name) == nullptr)
      return invalid_argument("there is no parameter ", printable(name.substr(0, 80)));
  return ours;
}

Result<int64_t> size_of(const std::vector<Parameter>& parameters, const std::vector<int64_t>& problem,
                        std::string_view text) {
  const std::string ours =
      with_names(text, [&](std::string_view name, std::string_view& behind) -> std::optional<std::string> {
        std::string_view rest = behind;
        if (name == "ProblemSize") {
          const std::optional<std::string_view> place = take_brackets(rest, '[', ']');
          if (!place || place->size() != 1 || (*place)[0] < '0') return std::nullopt;
          const auto index = static_cast<size_t>((*place)[0] - '0');
          if (index >= problem.size()) return std::nullopt;
          behind = rest;
          return std::to_string(problem[index]);
        }
        if (name != "max" && name != "min") return std::nullopt;
        const std::optional<std::string_view> held = take_brackets(rest, '(', ')');
        const Parameter* const of = held ? named(parameters, *held) : nullptr;
        const std::optional<int64_t> value = of == nullptr ? std::nullopt : extreme(*of, name == "max");
        if (!value) return std::nullopt;
        behind = rest;
        return std::to_string(*value);
      });
  ASSIGN_OR_RETURN(const Formula formula, Formula::parse(ours));
  for (const std::string& name : formula.names()) {
    const Parameter* const parameter = named(parameters, name);
    if (parameter == nullptr)
      return invalid_argument("there is no parameter ", printable(name.substr(0, 80)));
    if (parameter->values.size() > 1) return not_found("depends on the parameter ", name);
  }
  return formula.value([&](const std::string& name) -> std::optional<Formula::Value> {
    const auto* number = std::get_if<int64_t>(&named(parameters, name)->values[0]);
    return number == nullptr ? std::nullopt : std::optional<Formula::Value>(*number);
  });
}

}  // namespace tuner::t1
