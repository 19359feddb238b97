#include "tuner/text/hint.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr std::string_view kName = "tuner";

// One command a process.
struct Call {
  std::string program{kName};
  const CLI::App* app = nullptr;
  const CLI::App* command = nullptr;  // the running one
  std::string db, daemon;             // as given; empty: the default
} call;

std::string given(const CLI::App& command, const char* name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option == nullptr || option->count() == 0 ? "" : option->as<std::string>();
}

bool is_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

std::string_view word_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_part(text[end])) ++end;
  return text.substr(at, end - at);
}

// The command that the words at the start of `text` name ("records export FILE": export), and how long they
// are.
struct Verb {
  const CLI::App* command = nullptr;
  size_t length = 0;
};
Verb verb_of(std::string_view text) {
  Verb verb{call.app, 0};
  if (call.app == nullptr) return {};
  for (size_t at = 0;;) {
    const std::string_view word = word_at(text, at);
    const CLI::App* next = word.empty() ? nullptr : subcommand_named(*verb.command, word);
    if (next == nullptr) break;
    verb = {next, at + word.size()};
    at = verb.length + 1;
    if (at >= text.size() || text[at - 1] != ' ') break;
  }
  return verb.length == 0 ? Verb{} : verb;
}

// " --daemon X" or " --db X", of those that were given and that the command takes.
std::string options_for(const CLI::App* command) {
  if (command == nullptr) return "";
  const auto takes = [&](const char* name) { return command->get_option_no_throw(name) != nullptr; };
  if (!call.daemon.empty() && takes("--daemon")) return " --daemon " + shell_quoted(call.daemon);
  if (!call.db.empty() && takes("--db")) return " --db " + shell_quoted(call.db);
  return "";
}

// Whether the command that begins here names a database already; it ends with its sentence.
bool has_options(std::string_view text) {
  for (const std::string_view end : {"\n", "; ", ". ", ") "}) text = text.substr(0, text.find(end));
  return text.find(" --db ") != std::string_view::npos || text.find(" --daemon ") != std::string_view::npos;
}

}  // namespace

void remember_program(const char* argv0, const CLI::App& app) {
  const std::string_view called = argv0 == nullptr ? kName : argv0;
  call = {.program = shell_quoted(called.empty() ? kName : called),
          .app = &app,
          .command = nullptr,
          .db = "",
          .daemon = ""};
}

void remember_command(const CLI::App& command) {
  call.command = &command;
  call.db = given(command, "--db");
  call.daemon = given(command, "--daemon");
}

const CLI::App* subcommand_named(const CLI::App& app, std::string_view name) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (sub->get_name() == name) return sub;
  return nullptr;
}

const std::string& program_name() { return call.program; }

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  const bool plain = !text.empty() && std::ranges::all_of(text, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos;
  });
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string command_line(std::string_view verb_and_arguments) {
  return str(call.program, " ", verb_and_arguments, options_for(verb_of(verb_and_arguments).command));
}

std::string this_command() {
  std::string verb, arguments, options;
  for (const CLI::App* at = call.command; at != nullptr && at != call.app; at = at->get_parent())
    verb = str(" ", at->get_name(), verb);
  if (call.command == nullptr) return call.program;
  for (const CLI::Option* option : call.command->get_options()) {
    if (option->count() == 0) continue;
    const bool is_flag = option->get_items_expected_max() == 0, is_argument = option->get_positional();
    if (is_flag) options += " " + option->get_name();
    if (is_flag) continue;
    for (const std::string& given : option->results())
      (is_argument ? arguments : options) +=
          str(is_argument ? "" : " " + option->get_name(), " ", shell_quoted(given));
  }
  return str(call.program, verb, arguments, options);
}

std::string with_commands(std::string_view message) {
  const std::string start = str(kName, " ");
  std::string out;
  size_t done = 0;
  for (size_t at = message.find(start); at != std::string_view::npos; at = message.find(start, at + 1)) {
    const std::string_view rest = message.substr(at + start.size());
    const Verb verb = verb_of(rest);
    const bool whole_word = at == 0 || (!is_part(message[at - 1]) && message[at - 1] != '/');
    if (!whole_word || verb.command == nullptr) continue;
    out += str(message.substr(done, at - done), call.program, " ", rest.substr(0, verb.length));
    if (!has_options(rest)) out += options_for(verb.command);
    done = at + start.size() + verb.length;
  }
  return out + std::string(message.substr(done));
}

}  // namespace tuner
