#include "tuner/jobs/t1/t1_space.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "compiler_core/base/printable.h"
#include "templates/space/config_space.h"
#include "templates/space/formula.h"
#include "templates/space/int_expr.h"
#include "templates/space/knob.h"

namespace tuner::t1 {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostSteps = 20'000;  // of the search for a valid config

bool is_whole(const Parameter& parameter) {
  return std::ranges::all_of(parameter.values,
                             [](const Value& v) { return std::holds_alternative<int64_t>(v); });
}
Json json_of(const Value& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

// {"from", "to", "step"} or {"from", "to", "powers_of"} where that says the same as a list of five or more.
Json values_of(const Parameter& parameter) {
  Json list = Json::array();
  for (const Value& value : parameter.values) list.push_back(json_of(value));
  if (!is_whole(parameter) || parameter.values.size() < 5) return list;
  const auto at = [&](size_t i) { return static_cast<__int128>(std::get<int64_t>(parameter.values[i])); };
  const __int128 step = at(1) - at(0);
  bool even = step > 0, doubles = at(0) > 0;
  for (size_t i = 1; i < parameter.values.size(); ++i) {
    even = even && at(i) - at(i - 1) == step;
    doubles = doubles && at(i) == 2 * at(i - 1);
  }
  Json range = {{"from", list.front()}, {"to", list.back()}};
  if (even) {
    if (step != 1) range["step"] = static_cast<int64_t>(step);
    return range;
  }
  const auto first = static_cast<uint64_t>(std::get<int64_t>(parameter.values[0]));
  if (!doubles || (first & (first - 1)) != 0) return list;
  range["powers_of"] = 2;
  return range;
}

// Each condition over the knobs of a space, as a job file's reader takes it.
Status check_conditions(const T1Document& document, const std::vector<Formula>& conditions) {
  ConfigSpace space;
  std::map<std::string, Formula::InSpace> names;
  for (const Parameter& parameter : document.parameters) {
    if (is_whole(parameter)) {
      std::vector<int64_t> numbers;
      for (const Value& value : parameter.values) numbers.push_back(std::get<int64_t>(value));
      std::ranges::sort(numbers);
      const ChoiceKnob knob = space.choice(parameter.name, numbers).try_first(numbers.front());
      names.insert({parameter.name, {knob, numbers, {}}});
    } else {
      std::vector<std::string> words;
      for (const Value& value : parameter.values) words.push_back(text_of(value));
      const CategoryKnob knob = space.category(parameter.name, words).try_first(words.front());
      names.insert({parameter.name, {knob, {0, static_cast<int64_t>(words.size()) - 1}, words}});
    }
  }
  const auto known = [&names](const std::string& name) -> std::optional<Formula::InSpace> {
    const auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  };
  for (size_t i = 0; i < conditions.size(); ++i)
    if (const Result<IntExpr> expr = conditions[i].over(known); !expr)
      return invalid_argument("ConfigurationSpace.Conditions[", i,
                              "].Expression: ", printable(expr.message()), "; found \"",
                              printable(conditions[i].text().substr(0, 200)), "\"");
  return Status::ok();
}

// Looks for a valid config, parameter by parameter, the wanted values first.
class FirstValid {
 public:
  FirstValid(const T1Document& document, const std::vector<Formula>& conditions)
      : document_(document), ready_(document.parameters.size()) {
    for (const Parameter& parameter : document.parameters) {
      size_t first = 0;
      for (size_t v = 0; parameter.first && v < parameter.values.size(); ++v)
        if (text_of(parameter.values[v]) == text_of(*parameter.first)) first = v;
      place_.push_back(first);
    }
    wanted_ = place_;
    for (const Formula& condition : conditions) {
      size_t last = 0;
      for (const std::string& name : condition.names()) last = std::max(last, index_of(name));
      ready_[last].push_back(&condition);
    }
  }

  // The place of each parameter's value; nothing: none was found within the steps.
  std::optional<std::vector<size_t>> find() {
    if (!extend(0)) return std::nullopt;
    return place_;
  }
  const std::vector<size_t>& wanted() const { return wanted_; }

 private:
  size_t index_of(const std::string& name) const {
    return static_cast<size_t>(std::ranges::find(document_.parameters, name, &Parameter::name) -
                               document_.parameters.begin());
  }
  std::optional<Formula::Value> value(const std::string& name) const {
    const size_t i = index_of(name);
    const Value& value = document_.parameters[i].values[place_[i]];
    if (const auto* number = std::get_if<int64_t>(&value);
        number != nullptr && is_whole(document_.parameters[i]))
      return Formula::Value(*number);
    return Formula::Value(text_of(value));
  }
  // Conditions whose last parameter is this one. One that has no value (a division by zero) does not hold.
  bool holds(size_t parameter) const {
    return std::ranges::all_of(ready_[parameter], [this](const Formula* condition) {
      const Result<int64_t> truth = condition->value([this](const std::string& name) { return value(name); });
      return truth && *truth != 0;
    });
  }
  bool extend(size_t parameter) {
    if (parameter == place_.size()) return true;
    const size_t count = document_.parameters[parameter].values.size();
    for (size_t i = 0; i < count && ++steps_ <= kMostSteps; ++i) {
      place_[parameter] = (wanted_[parameter] + i) % count;
      if (holds(parameter) && extend(parameter + 1)) return true;
    }
    return false;
  }

  const T1Document& document_;
  std::vector<std::vector<const Formula*>> ready_;  // per parameter
  std::vector<size_t> place_, wanted_;
  int64_t steps_ = 0;
};

void add_default(const T1Document& document, const std::vector<Formula>& conditions, Json& job,
                 KernelDraft& notes) {
  Json first = Json::object();
  FirstValid search(document, conditions);
  const std::optional<std::vector<size_t>> found = search.find();
  if (!found) {
    notes.guesses.push_back("default: no config was found that meets all conditions; is there one?");
    return;
  }
  bool own = true;
  for (size_t i = 0; i < document.parameters.size(); ++i) {
    const Parameter& parameter = document.parameters[i];
    const Value& value = parameter.values[(*found)[i]];
    own = own && (*found)[i] == search.wanted()[i];
    if (parameter.first && text_of(parameter.values[search.wanted()[i]]) != text_of(*parameter.first))
      notes.guesses.push_back(str("default.", parameter.name, ": the file's own, ",
                                  printable(text_of(*parameter.first)), ", is not among its values"));
    if ((*found)[i] != 0 || parameter.first || parameter.values.size() > 1)
      first[parameter.name] = json_of(value);
  }
  if (!own)
    notes.guesses.push_back(
        "default: the file's own breaks a condition; this one is the first that breaks none");
  if (!first.empty()) job["default"] = std::move(first);
}

}  // namespace

Status add_space(const T1Document& document, Json& job, KernelDraft& notes) {
  std::vector<Formula> conditions;
  for (const std::string& text : document.conditions) {
    ASSIGN_OR_RETURN(Formula condition, Formula::parse(text));
    conditions.push_back(std::move(condition));
  }
  RETURN_IF_ERROR(check_conditions(document, conditions));
  Json& knobs = job["knobs"] = Json::object();
  for (const Parameter& parameter : document.parameters) knobs[parameter.name] = values_of(parameter);
  if (!conditions.empty()) job["constraints"] = document.conditions;
  add_default(document, conditions, job, notes);
  return Status::ok();
}

}  // namespace tuner::t1
