#include "tuner/command_line/bash_completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "compiler_core/base/status.h"
#include "tuner/command_line/manual.h"

namespace tuner {

namespace {

// $1: words of the command so far, e.g. "records export". $2: what is being completed. Bash hands over
// "--as=loops" as three words, since = breaks words.
constexpr std::string_view kFunction = R"bash(
_NAME() {
  local current=${COMP_WORDS[COMP_CWORD]} previous='' command='' word i
  ((COMP_CWORD == 0)) || previous=${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' ]] && ((COMP_CWORD > 1)); then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    [[ -n $(_NAME_options "${command:+$command }$word") ]] || break
    command=${command:+$command }$word
  done
  local kind=''
  if [[ $previous == -* ]]; then kind=$(_NAME_value "$command $previous"); fi
  if [[ -z $kind && $current == -* ]]; then
    kind="words $(_NAME_options "$command")"
  elif [[ -z $kind ]]; then
    kind=$(_NAME_argument "$command")
  fi
  COMPREPLY=()
  case $kind in
    'words '*) mapfile -t COMPREPLY < <(compgen -W "${kind#words }" -- "$current") ;;
    jobs) mapfile -t COMPREPLY < <(compgen -f -X '!*.json' -- "$current"; compgen -d -- "$current") ;;
    files) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
  esac
  # Bash then puts / behind a folder.
  if [[ $kind == jobs || $kind == files ]]; then compopt -o filenames 2>/dev/null || true; fi
}
complete -F _NAME NAME
)bash";

std::string words_of(const CommandPath& command) {
  std::string text;
  for (const std::string& word : command.words) text += str(text.empty() ? "" : " ", word);
  return text;
}

// "words a b c", "jobs", "files", or "none": what may stand for an option or a positional.
std::string kind_of(const CLI::Option& option) {
  if (const auto values = listed_values(option); !values.empty()) {
    std::string text = "words";
    for (const std::string& value : values) text += " " + value;
    return text;
  }
  std::string description = option.get_description();
  std::ranges::transform(description, description.begin(), [](unsigned char c) { return std::tolower(c); });
  if (option.get_positional()) return description.find("job file") != std::string::npos ? "jobs" : "files";
  const std::string type = option.get_type_name();
  const std::string first = type.substr(0, type.find(':'));
  for (const char* path : {"PATH", "FILE", "DIR", "FOLDER", "SCHEDULE"})
    if (first == path) return "files";
  return option.check_sname("o") ? "files" : "none";
}

std::string case_line(const std::string& pattern, const std::string& answer) {
  return str("    ", pattern, ") echo '", answer, "' ;;\n");
}

std::string function_of_cases(const std::string& name, const std::string& cases) {
  return str(name, "() {\n  case $1 in\n", cases, "  esac\n}\n");
}

}  // namespace

std::string bash_completion(const CLI::App& program) {
  const std::string& name = program.get_name();
  std::string options, values, arguments;
  for (const CommandPath& command : commands_of(program)) {
    const std::string words = words_of(command);
    std::string all;
    for (const CLI::Option* option : named_options(*command.app)) {
      std::vector<std::string> names;
      for (const std::string& n : option->get_snames()) names.push_back("-" + n);
      for (const std::string& n : option->get_lnames()) names.push_back("--" + n);
      for (const std::string& n : names) {
        all += str(all.empty() ? "" : " ", n);
        if (option->get_type_size() != 0) values += case_line(str("'", words, " ", n, "'"), kind_of(*option));
      }
    }
    options += case_line(str("'", words, "'"), all);
    std::string commands;
    for (const CLI::App* child : command.app->get_subcommands([](const CLI::App*) { return true; }))
      if (!child->get_group().empty()) commands += " " + child->get_name();
    const auto takes = positionals(*command.app);
    arguments += case_line(str("'", words, "'"), !commands.empty() ? "words" + commands
                                                 : takes.empty()   ? "none"
                                                                   : kind_of(*takes.front()));
  }
  std::string main(kFunction);
  for (size_t at = 0; (at = main.find("NAME", at)) != std::string::npos; at += name.size())
    main.replace(at, 4, name);
  return str("# Completion of ", name, " for bash, written by `", name, " completion bash`.\n",
             function_of_cases("_" + name + "_options", options),
             function_of_cases("_" + name + "_value", values),
             function_of_cases("_" + name + "_argument", arguments), main);
}

}  // namespace tuner
