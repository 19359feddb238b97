// Declares the words and options of a subcommand and the variables they fill. Command bodies see nothing else
// of CLI11, the library that parses them, because that is most of what a verb costs to compile.
//
//   Command command = add_command(app, context, "jobs", "Lists jobs", [options] { return run(*options); });
//   command.add_option("FILE", options->file, "Job file").required();
//   command.add_option("--trials", options->trials, "Trials per task").in_range(1, 1000).show_default();
//
// Both classes are handles: copy them freely; they are valid as long as the CLI::App of make_app(). A
// variable is filled before the command's body runs and must live until then. An empty word is refused for
// every option and positional, as what a shell makes of a variable that is not set.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tuner/command_line/offers.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tuner {

class Option {
 public:
  Option(CLI::Option* option, CLI::App* of) : option_(option), of_(of) {}

  const Option& required() const;
  const Option& needs(const Option& other) const;          // using this one without `other` is wrong use
  const Option& type_name(const std::string& name) const;  // in help: FILE, NAME=VALUE
  const Option& show_default() const;                      // shows the variable's current value in help and
                                                           // manual
  const Option& expected(int values) const;
  const Option& expected(int least, int most) const;  // how many values it takes
  const Option& one_each() const;                     // may be given several times, each with one value
  const Option& delimiter(char separator) const;      // separates the values inside one word

  // Limits on a value. Anything else is wrong use, reported in one line.
  const Option& one_of(const std::vector<std::string>& words) const;
  const Option& in_range(int least, int most) const;
  const Option& in_range(int64_t least, int64_t most) const;
  const Option& in_range(uint64_t least, uint64_t most) const;
  const Option& in_range(double least, double most) const;
  const Option& positive() const;
  const Option& not_negative() const;
  const Option& between_zero_and(double most) const;  // also refuses text that is not a number
  // Takes seconds, or a number with s, m or h behind it.
  const Option& as_duration() const;
  // Replaces the text by text_of(text); `name` is shown in help.
  const Option& read_as(std::function<std::string(const std::string&)> text_of,
                        const std::string& name) const;

  // What completion offers for the value. Without it: the words of one_of(), else what a placeholder such as
  // FILE, DIR or JOB means anywhere (completion.cpp).
  const Option& offers(const Offers& what) const;

  // `complaint` returns what is wrong with a text; empty if it is fine.
  const Option& checked(std::function<std::string(const std::string&)> complaint) const;
  const Option& may_be_empty() const;  // takes an empty word as a value
  const Option& when_given(std::function<void()> tell) const;

 private:
  CLI::Option* option_;
  CLI::App* of_;
};

class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  Option add_option(const std::string& names, std::string& value, const std::string& help) const;
  Option add_option(const std::string& names, std::vector<std::string>& values,
                    const std::string& help) const;
  Option add_option(const std::string& names, std::vector<double>& values, const std::string& help) const;
  Option add_option(const std::string& names, int& value, const std::string& help) const;
  Option add_option(const std::string& names, int64_t& value, const std::string& help) const;
  Option add_option(const std::string& names, uint64_t& value, const std::string& help) const;
  Option add_option(const std::string& names, double& value, const std::string& help) const;
  Option add_flag(const std::string& names, bool& value, const std::string& help) const;
  Option add_flag(const std::string& names, int& times, const std::string& help) const;
  Option add_flag(const std::string& names, std::function<void()> when_given, const std::string& help) const;

  Command add_subcommand(const std::string& name, const std::string& description) const;
  void need_subcommand() const;
  void hide() const;                           // hides it from help and manual
  void run(std::function<void()> body) const;  // called after parsing

  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

}  // namespace tuner
