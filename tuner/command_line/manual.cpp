#include "tuner/command_line/manual.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "compiler_core/base/status.h"

namespace tuner {

namespace {

void add_commands(const CLI::App& app, const std::vector<std::string>& words, std::vector<CommandPath>& out) {
  out.push_back({words, &app});
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;
    std::vector<std::string> longer = words;
    longer.push_back(command->get_name());
    add_commands(*command, longer, out);
  }
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) text += str(text.empty() ? "" : between, part);
  return text;
}

// Text that troff prints as it is: a minus stays one that can be copied, a line that starts with . or ' is no
// request.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

// Sentences; what is indented in the description is an example and keeps its lines.
std::string paragraphs(std::string_view text) {
  std::string out;
  bool example = false;
  for (const std::string& line : lines_of(text)) {
    if (const bool indented = line.starts_with(' '); indented != example) {
      out += indented ? ".PP\n.nf\n" : ".fi\n.PP\n";
      example = indented;
    }
    out += escaped(line) + "\n";
  }
  return out + (example ? ".fi\n" : "");
}

// A name for each call: tuner-records-export.
std::string page_name(const std::string& program, const std::vector<std::string>& words) {
  return words.empty() ? program : str(program, "-", joined(words, "-"));
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string header(const std::string& name, std::string_view version, std::string_view summary) {
  return str(".TH ", upper(name), " 1 \"\" \"tuner ", version, "\" \"tuner\"\n.SH NAME\n", escaped(name),
             " \\- ", escaped(summary), "\n");
}

// The first sentence of a description: what `man -k` lists.
std::string summary_of(const std::string& description) {
  const std::string first = description.substr(0, description.find('\n'));
  return first.substr(0, std::min({first.find(". "), first.find(": "), first.find("; ")}));
}

// TEXT of "TEXT:{a,b}": what stands for the value.
std::string placeholder(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

// From 0 to 100, of "FLOAT:FLOAT in [0 - 100]".
std::string range_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find(" in ["), end = type.find(']', begin);
  if (begin == std::string::npos || end == std::string::npos) return "";
  const std::string bounds = type.substr(begin + 5, end - begin - 5);
  const size_t between = bounds.find(" - ");
  if (between == std::string::npos) return "";
  return str("From ", bounds.substr(0, between), " to ", bounds.substr(between + 3), ".");
}

// Paths below $HOME begin with ~.
std::string without_home(std::string text) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return text;
  const std::string prefix = str(home, "/");
  for (size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;)
    text.replace(at, prefix.size(), "~/");
  return text;
}

std::string option_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames())
    names.push_back(str("\\fB", escaped("-" + name), "\\fR"));
  for (const std::string& name : option.get_lnames())
    names.push_back(str("\\fB", escaped("--" + name), "\\fR"));
  return joined(names, ", ");
}

std::string positional_text(const CLI::Option& option) {
  const std::string name = str("\\fI", escaped(option.get_name()), "\\fR");
  const std::string many = option.get_expected_max() > 1 ? "..." : "";
  return option.get_required() ? name + many : str("[", name, many, "]");
}

// One entry of the list of options: its head, what it does, what it may be.
std::string entry(const std::string& head, const CLI::Option& option) {
  std::string text = str(".TP\n", head, "\n", paragraphs(option.get_description()));
  if (const auto values = listed_values(option); !values.empty())
    text += str(".br\nOne of: ", escaped(joined(values, ", ")), ".\n");
  if (const std::string range = range_of(option); !range.empty()) text += str(".br\n", escaped(range), "\n");
  if (const std::string value = without_home(option.get_default_str()); !value.empty())
    text += str(".br\nDefault: ", escaped(value), "\n");
  return text;
}

std::string synopsis(const std::string& call, const CommandPath& command) {
  std::string text = str(".SH SYNOPSIS\n\\fB", escaped(call), "\\fR [\\fIoptions\\fR]");
  for (const CLI::Option* option : positionals(*command.app)) text += " " + positional_text(*option);
  if (!command.app->get_subcommands([](const CLI::App*) { return true; }).empty())
    text += " \\fIcommand\\fR ...";
  return text + "\n";
}

std::string page_text(const std::string& program, const CommandPath& command,
                      const std::vector<CommandPath>& all, std::string_view footer,
                      std::string_view version) {
  const std::string call = command.words.empty() ? program : str(program, " ", joined(command.words, " "));
  const std::string description = command.app->get_description();
  std::string text = header(page_name(program, command.words), version, summary_of(description)) +
                     synopsis(call, command) + ".SH DESCRIPTION\n" + paragraphs(description);
  std::string options, commands, see;
  for (const CLI::Option* option : positionals(*command.app))
    options += entry(str("\\fI", escaped(option->get_name()), "\\fR"), *option);
  for (const CLI::Option* option : named_options(*command.app)) {
    const bool takes_value = option->get_type_size() != 0;
    options += entry(
        option_names(*option) + (takes_value ? str(" \\fI", escaped(placeholder(*option)), "\\fR") : ""),
        *option);
  }
  for (const CommandPath& other : all) {
    const bool child = other.words.size() == command.words.size() + 1 &&
                       std::equal(command.words.begin(), command.words.end(), other.words.begin());
    const bool parent = other.words.size() + 1 == command.words.size() &&
                        std::equal(other.words.begin(), other.words.end(), command.words.begin());
    const std::string name = page_name(program, other.words);
    if (child)
      commands += str(".TP\n\\fB", escaped(other.words.back()), "\\fR\n",
                      escaped(summary_of(other.app->get_description())), "\n");
    if (child || parent) see += str(see.empty() ? "" : ",\n", "\\fB", escaped(name), "\\fR(1)");
  }
  text += ".SH OPTIONS\n" + options;
  if (!commands.empty()) text += ".SH COMMANDS\n" + commands;
  if (!footer.empty()) {
    text += ".SH NOTES\n";
    for (const std::string& line : lines_of(footer)) text += escaped(line) + "\n.br\n";
  }
  return text + (see.empty() ? "" : ".SH SEE ALSO\n" + see + "\n");
}

}  // namespace

std::vector<CommandPath> commands_of(const CLI::App& program) {
  std::vector<CommandPath> all;
  add_commands(program, {}, all);
  return all;
}

std::vector<const CLI::Option*> named_options(const CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* option) { return option->nonpositional() && !option->get_group().empty(); });
}

std::vector<const CLI::Option*> positionals(const CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* option) { return option->get_positional() && !option->get_group().empty(); });
}

std::vector<std::string> listed_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find(":{"), end = type.find('}', begin);
  std::vector<std::string> values;
  if (begin == std::string::npos || end == std::string::npos) return values;
  std::string value;
  for (const char c : type.substr(begin + 2, end - begin - 2) + ",") {
    if (c != ',')
      value += c;
    else if (!value.empty())
      values.push_back(std::exchange(value, {}));
  }
  return values;
}

std::vector<ManualPage> manual_pages(const CLI::App& program, std::string_view version) {
  const std::vector<CommandPath> all = commands_of(program);
  std::vector<ManualPage> pages;
  for (const CommandPath& command : all)
    pages.push_back({page_name(program.get_name(), command.words) + ".1",
                     page_text(program.get_name(), command, all, program.get_footer(), version)});
  return pages;
}

ManualPage page_of_help(std::string_view program, std::string_view help, std::string_view version) {
  std::string summary, synopsis, options;
  for (const std::string& line : lines_of(without_home(std::string(help)))) {
    std::string lower = line;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (synopsis.empty() && lower.starts_with("usage: "))
      synopsis = line.substr(std::string_view("usage: ").size());
    else if (synopsis.empty() && summary.empty())
      summary = line;
    else
      options += escaped(line) + "\n";
  }
  const std::string name(program);
  return {name + ".1",
          str(header(name, version, summary.empty() ? "a program of tuner" : summary_of(summary)),
              ".SH SYNOPSIS\n", escaped(synopsis), "\n",
              summary.empty() ? "" : str(".SH DESCRIPTION\n", escaped(summary), "\n"), ".SH OPTIONS\n.nf\n",
              options, ".fi\n.SH SEE ALSO\n\\fBtuner\\fR(1)\n")};
}

}  // namespace tuner
