#include "tuner/command_line/wrong_use.h"

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "compiler_core/base/did_you_mean.h"
#include "compiler_core/base/status.h"
#include "tuner/text/hint.h"

namespace tuner {
namespace {

// The command that a command line names, and where its own words begin.
struct Named {
  const CLI::App* command = nullptr;
  std::string name;  // "records export"
  int next = 1;
};
Named named_command(const CLI::App& app, int argc, const char* const* argv) {
  Named named{&app, "", 1};
  while (named.next < argc) {
    const CLI::App* sub = subcommand_named(*named.command, argv[named.next]);
    if (sub == nullptr) break;
    named = {sub, str(named.name, named.name.empty() ? "" : " ", sub->get_name()), named.next + 1};
  }
  return named;
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : subcommands_of(app)) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The first word that looks like a long option of this command and is none; empty: there is none.
std::string unknown_option(const Named& named, int argc, const char* const* argv) {
  for (int i = named.next; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") break;
    const std::string name = word.substr(0, word.find('='));
    if (word.starts_with("--") && named.command->get_option_no_throw(name) == nullptr) return name;
  }
  return "";
}

// What people type who know other programs; empty: nothing is known of the word.
std::string right_command(std::string_view word) {
  struct Word {
    std::string_view word, says;
  };
  static constexpr Word kWords[] = {
      {"list", "tuner jobs lists the jobs, tuner query --all every tuned task"},
      {"ls", "tuner jobs lists the jobs, tuner query --all every tuned task"},
      {"status", "tuner jobs says how far the jobs are, tuner watch JOB follows one, tuner top a daemon"},
      {"tune", "tuner submit FILE tunes"},
      {"search", "tuner submit FILE tunes"},
      {"start", "tuner submit FILE tunes, tuner serve runs a daemon"},
      {"daemon", "tuner serve runs a daemon"},
      {"stop", "tuner cancel JOB ends a job"},
      {"kill", "tuner cancel JOB ends a job"},
      {"delete", "tuner cancel JOB ends a job; what was measured is never deleted"},
      {"best", "tuner query FILE prints the best config of each task"},
      {"get", "tuner query FILE prints the best config of each task"},
      {"export", "tuner records export writes records to a file"},
      {"import", "tuner records import FILE reads records"},
      {"merge", "tuner records merge joins databases"},
      {"diff", "tuner records diff A B compares databases"},
      {"worker", "measure_server is the worker, tuner workers lists those of a daemon"},
      {"version", "tuner --version"},
  };
  for (const Word& known : kWords)
    if (known.word == word) return std::string(known.says);
  return "";
}

std::string where_help_is(const Named& named) {
  return str(". For help: ", program_name(), named.name.empty() ? "" : " ", named.name, " --help");
}

}  // namespace

std::vector<const char*> help_as_option(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (words.size() < 2 || std::string_view(words[1]) != "help") return words;
  words.erase(words.begin() + 1);
  if (words.size() == 2 && std::string_view(words[1]) == "help") words.pop_back();
  words.push_back("--help");
  return words;
}

std::string unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  const Named named = named_command(app, argc, argv);
  if (named.next >= argc || subcommands_of(*named.command).empty()) return "";
  const std::string_view word = argv[named.next];
  if (word.starts_with("-")) return "";
  const std::string right = named.name.empty() ? right_command(word) : "";
  const std::string meant = right.empty() ? did_you_mean(word, command_names(*named.command)) : "; " + right;
  return str(named.name, named.name.empty() ? "" : ": ", "no command is called \"", word, "\"",
             meant.empty() ? where_help_is(named) : meant);
}

std::string empty_value(const CLI::App& app, int argc, const char* const* argv) {
  const Named named = named_command(app, argc, argv);
  for (int i = named.next; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    return str(named.name, named.name.empty() ? "" : ": ", word,
               ": expected a value, found an empty word; is a shell variable not set?");
  }
  return "";
}

std::string wrong_use(const CLI::App& app, int argc, const char* const* argv, const std::string& found) {
  const Named named = named_command(app, argc, argv);
  const std::string start = named.name.empty() ? "" : named.name + ": ";
  if (const std::string option = unknown_option(named, argc, argv); !option.empty()) {
    const std::string meant = did_you_mean(option, option_names(*named.command));
    return str(start, "unknown option ", option, meant.empty() ? where_help_is(named) : meant);
  }
  const bool no_command = found == "A subcommand is required";
  const std::string help = where_help_is(named);
  return str(start, no_command ? "expected a command" : found, found.ends_with("?") ? help.substr(1) : help);
}

}  // namespace tuner
