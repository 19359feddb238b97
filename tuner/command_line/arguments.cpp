#include "tuner/command_line/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "compiler_core/base/did_you_mean.h"
#include "compiler_core/base/status.h"
#include "tuner/command_line/program_app.h"

namespace tuner {
namespace {

constexpr char kNotEmpty[] = "not empty";  // the validator's name

// Every value of every option is held against it first, whatever its type: nobody means a variable that is
// not set.
CLI::Option* not_empty(CLI::Option* option) {
  const auto complaint = [](const std::string& text) {
    return text.empty() ? std::string("expected a value, found an empty word; is a shell variable not set?")
                        : "";
  };
  return option->transform(CLI::Validator(complaint, "", kNotEmpty));
}

}  // namespace

const Option& Option::required() const { return option_->required(), *this; }
const Option& Option::needs(const Option& other) const { return option_->needs(other.option_), *this; }
const Option& Option::type_name(const std::string& name) const { return option_->type_name(name), *this; }
const Option& Option::show_default() const { return option_->capture_default_str(), *this; }
const Option& Option::expected(int values) const { return option_->expected(values), *this; }
const Option& Option::expected(int least, int most) const { return option_->expected(least, most), *this; }
const Option& Option::one_each() const {
  option_->allow_extra_args(false);
  return *this;
}
const Option& Option::delimiter(char separator) const { return option_->delimiter(separator), *this; }

namespace {

// CLI11's own validators in their words: what was expected, what was found. CLI::Range would let NaN pass.
template <typename Number>
CLI::Validator range(Number least, Number most) {
  const auto complaint = [=](std::string& text) {
    Number value{};
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
    return str("expected ", std::is_integral_v<Number> ? "a whole number" : "a number", " from ", least,
               " to ", most, ", found ", text);
  };
  return {complaint, CLI::Range(least, most).get_description()};
}

CLI::Validator member(const std::vector<std::string>& words) {
  const auto complaint = [words](std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    std::string all;
    for (const std::string& word : words) all += str(all.empty() ? "" : ", ", word);
    return str("expected ", words.size() > 1 ? "one of " : "", all, ", found \"", text, "\"",
               did_you_mean(text, words));
  };
  return {complaint, CLI::IsMember(words).get_description()};
}

}  // namespace

const Option& Option::one_of(const std::vector<std::string>& words) const {
  return option_->check(member(words)), *this;
}
const Option& Option::in_range(int least, int most) const {
  return option_->check(range(least, most)), *this;
}
const Option& Option::in_range(int64_t least, int64_t most) const {
  return option_->check(range(least, most)), *this;
}
const Option& Option::in_range(uint64_t least, uint64_t most) const {
  return option_->check(range(least, most)), *this;
}
const Option& Option::in_range(double least, double most) const {
  return option_->check(range(least, most)), *this;
}

namespace {

// CLI11's own would let NaN pass.
CLI::Validator number(bool (*right)(double), const std::string& expected, const CLI::Validator& described) {
  const auto complaint = [=](std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && right(value)) return std::string();
    return str("expected ", expected, ", found ", text);
  };
  return {complaint, described.get_description()};
}

}  // namespace

const Option& Option::positive() const {
  const auto right = [](double value) { return value > 0; };
  return option_->check(number(right, "a number above 0", CLI::PositiveNumber)), *this;
}
const Option& Option::not_negative() const {
  const auto right = [](double value) { return value >= 0; };
  return option_->check(number(right, "a number of at least 0", CLI::NonNegativeNumber)), *this;
}

// CLI::Range would let NaN pass.
const Option& Option::between_zero_and(double most) const {
  const auto check = [most](std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= 0 && value <= most) return std::string();
    return str("expected a number from 0 to ", most, ", found ", text);
  };
  return option_->check(CLI::Validator(check, str("at most ", most))), *this;
}
const Option& Option::checked(std::function<std::string(const std::string&)> complaint) const {
  return option_->check(std::move(complaint)), *this;
}
const Option& Option::offers(const Offers& what) const {
  CLI::App* root = of_;
  while (root->get_parent() != nullptr) root = root->get_parent();
  // A plain CLI::App, as in tests, has no place for it.
  if (auto* program = dynamic_cast<ProgramApp*>(root)) program->offers[option_] = what;
  return *this;
}
const Option& Option::may_be_empty() const {
  option_->get_validator(kNotEmpty)->active(false);
  return *this;
}
const Option& Option::when_given(std::function<void()> tell) const {
  return option_->each([tell = std::move(tell)](const std::string&) { tell(); }), *this;
}
const Option& Option::as_duration() const {
  const std::map<std::string, double> units{{"s", 1}, {"m", 60}, {"h", 3600}};
  return not_empty(option_->transform(CLI::AsNumberWithUnit(units))), *this;
}
const Option& Option::read_as(std::function<std::string(const std::string&)> text_of,
                              const std::string& name) const {
  return not_empty(option_->transform(std::move(text_of), "", name)), *this;
}

namespace {

// CLI11 reads numbers as strtoull does: -1 is 18446744073709551615 there, and so is any number that is too
// large.
std::string why_no_unsigned(const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!text.starts_with('-') && !(digits && error != std::errc())) return "";
  return str("expected a whole number from 0 to ", std::numeric_limits<uint64_t>::max(), ", found ", text);
}

}  // namespace

Option Command::add_option(const std::string& names, std::string& value, const std::string& help) const {
  return {not_empty(app_->add_option(names, value, help)), app_};
}
Option Command::add_option(const std::string& names, std::vector<std::string>& values,
                           const std::string& help) const {
  return {not_empty(app_->add_option(names, values, help)), app_};
}
Option Command::add_option(const std::string& names, std::vector<double>& values,
                           const std::string& help) const {
  return {not_empty(app_->add_option(names, values, help)), app_};
}
Option Command::add_option(const std::string& names, int& value, const std::string& help) const {
  return {not_empty(app_->add_option(names, value, help)), app_};
}
Option Command::add_option(const std::string& names, int64_t& value, const std::string& help) const {
  return {not_empty(app_->add_option(names, value, help)), app_};
}
Option Command::add_option(const std::string& names, uint64_t& value, const std::string& help) const {
  return {not_empty(app_->add_option(names, value, help))->check(std::function(why_no_unsigned)), app_};
}
Option Command::add_option(const std::string& names, double& value, const std::string& help) const {
  return {not_empty(app_->add_option(names, value, help)), app_};
}
Option Command::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return {app_->add_flag(names, value, help), app_};
}
Option Command::add_flag(const std::string& names, int& times, const std::string& help) const {
  return {app_->add_flag(names, times, help), app_};
}
Option Command::add_flag(const std::string& names, std::function<void()> when_given,
                         const std::string& help) const {
  return {app_->add_flag_callback(names, std::move(when_given), help), app_};
}

Command Command::add_subcommand(const std::string& name, const std::string& description) const {
  return Command(*app_->add_subcommand(name, description));
}
void Command::need_subcommand() const { app_->require_subcommand(1); }
void Command::hide() const { app_->group(""); }
void Command::run(std::function<void()> body) const { app_->callback(std::move(body)); }

}  // namespace tuner
