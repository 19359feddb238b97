#include "tuner/command_line/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "compiler_core/base/printable.h"
#include "compiler_core/base/status.h"
#include "tuner/command_line/manual.h"
#include "tuner/command_line/offers.h"
#include "tuner/command_line/overview.h"
#include "tuner/command_line/program_app.h"
#include "tuner/text/terminal.h"

namespace tuner {
namespace {

constexpr size_t kMostSaid = 72;  // characters about a word

// The first clause of a description, in one line.
std::string said_of(std::string_view description) {
  std::string text(description.substr(0, description.find('\n')));
  text = text.substr(0, std::min({text.find(". "), text.find("; "), text.find(": ")}));
  std::ranges::replace(text, '\t', ' ');
  if (text.size() > kMostSaid) text = text.substr(0, text.rfind(' ', kMostSaid - 3)) + "...";
  return text;
}

// What a placeholder means wherever it stands.
const Offers& offers_of_placeholder(std::string_view placeholder) {
  static const std::map<std::string, Offers, std::less<>> kKnown = {
      {"FILE", {.files = true}},
      {"PATH", {.files = true}},
      {"PACK", {.files = true}},
      {"SCHEDULE", {.files = true}},
      {"DIR", {.folders = true}},
      {"FOLDER", {.folders = true}},
      {"MODEL", {.files = true, .endings = {".onnx"}}},
      {"SPACE", {.files = true, .endings = {".csv", ".gz"}}},
      {"DATABASE", {.files = true, .endings = {".db"}}},
      {"ADDRESS", {.files = true, .endings = {".credentials"}}},
      {"JOB", {.names = "job"}},
      {"TRIAL", {.names = "trial"}},
      {"TARGET", {.names = "target"}},
      {"OP", {.names = "op"}},
      {"STRATEGY", {.names = "strategy"}},
      {"STRATEGY[,STRATEGY...]", {.list = true, .names = "strategy"}},
      {"ALGORITHMS", {.list = true, .names = "algorithm"}},
      {"LAYOUT", {.names = "layout"}},
      {"FORMAT", {.names = "format"}},
      {"NAME=FILE", {.files = true, .after_name = true}},
  };
  static const Offers kNothing;
  const auto at = kKnown.find(placeholder);
  return at == kKnown.end() ? kNothing : at->second;
}

// What was declared, the words of a list that is checked, or what the placeholder means.
Offers offers_of(const CLI::App& program, const CLI::Option& option) {
  if (const auto* described = dynamic_cast<const ProgramApp*>(&program))
    if (const auto at = described->offers.find(&option); at != described->offers.end()) return at->second;
  if (std::vector<std::string> words = listed_values(option); !words.empty())
    return offer_words(std::move(words));
  const std::string type = option.get_type_name();
  const Offers& by_type = offers_of_placeholder(type.substr(0, type.find(':')));
  if (!option.get_positional()) return by_type;
  const Offers& by_name = offers_of_placeholder(option.get_name());
  return by_name.nothing() ? by_type : by_name;
}

// Of UTF-8, as shells count.
size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool takes_value(const CLI::Option& option) { return option.get_type_size() != 0; }
bool takes_many(const CLI::Option& option) { return option.get_items_expected_max() > 1; }
// The words behind the first value are values, too, up to the next option.
bool takes_many_at_once(const CLI::Option& option) {
  return takes_many(option) && option.get_allow_extra_args();
}

// A command line, read as far as it goes.
struct Place {
  const CLI::App* command = nullptr;
  const CLI::Option* value_of = nullptr;  // the option whose value comes next
  bool may_end = false;                   // ...which may also have all it takes already
  size_t positionals = 0;                 // given so far
  bool only_positionals = false;          // "--" was given
  bool words_begun = false;               // no command's name can come any more
  std::set<const CLI::Option*> given;
  std::string db;
};

const CLI::App* command_called(const CLI::App& app, const std::string& name) {
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
    if (child->get_name() == name) return child;
  return nullptr;
}

void read_option(Place& p, const std::string& word) {
  const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
  const CLI::Option* option = p.command->get_option_no_throw(word.substr(0, equals));
  p.value_of = nullptr;
  if (option == nullptr) return;
  p.given.insert(option);
  if (!takes_value(*option)) return;
  if (equals == std::string::npos) {
    p.value_of = option;
    p.may_end = false;
  } else if (option->check_lname("db")) {
    p.db = word.substr(equals + 1);
  }
}

void read_word(Place& p, const std::string& word) {
  if (const char* above = moved_below(word);
      above != nullptr && p.command->get_parent() == nullptr && !p.words_begun)
    read_word(p, above);
  if (!p.only_positionals && word == "--") {
    p.only_positionals = true;
    p.value_of = nullptr;
  } else if (!p.only_positionals && word.size() > 1 && word[0] == '-') {
    read_option(p, word);
  } else if (p.value_of != nullptr) {
    if (p.value_of->check_lname("db")) p.db = word;
    p.may_end = true;
    if (!takes_many_at_once(*p.value_of)) p.value_of = nullptr;
  } else if (const CLI::App* child = p.words_begun ? nullptr : command_called(*p.command, word)) {
    p.command = child;
    p.given.clear();
  } else {
    p.words_begun = true;
    ++p.positionals;
  }
}

class Completer {
 public:
  Completer(const CLI::App& program, const Place& place, const std::string& current, const KnownNames& known)
      : program_(program), place_(place), current_(current), known_(known) {}

  Completion found() {
    const bool option = !place_.only_positionals && current_.starts_with('-') && current_ != "-";
    if (place_.value_of != nullptr && !option) {
      add_values(*place_.value_of, "");
      if (place_.may_end) add_positional();
    } else if (const size_t equals = current_.find('='); option && equals != std::string::npos) {
      const CLI::Option* named = place_.command->get_option_no_throw(current_.substr(0, equals));
      if (named != nullptr && takes_value(*named)) add_values(*named, current_.substr(0, equals + 1));
    } else if (option || (current_ == "-" && !place_.only_positionals)) {
      add_options();
    } else {
      add_argument();
    }
    return std::move(out_);
  }

 private:
  // A word that a terminal or a shell could take for something else is left out.
  void add(const std::string& word, const std::string& says) {
    const bool plain = std::ranges::none_of(word, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (plain && word.starts_with(current_)) out_.words.emplace_back(word, printable(says));
  }

  void add_options() {
    for (const CLI::Option* option : named_options(*place_.command)) {
      if (place_.given.contains(option) && !takes_many(*option)) continue;
      for (const std::string& n : option->get_snames()) add("-" + n, said_of(option->get_description()));
      for (const std::string& n : option->get_lnames()) add("--" + n, said_of(option->get_description()));
    }
  }

  // A command's name, or the next positional; options, if nothing else can come.
  void add_argument() {
    const std::vector<const CLI::App*> children =
        place_.command->get_subcommands([](const CLI::App* app) { return !app->get_group().empty(); });
    if (!children.empty()) {
      if (!place_.words_begun)
        for (const CLI::App* child : children) add(child->get_name(), said_of(child->get_description()));
      return;
    }
    if (!add_positional() && !place_.only_positionals) add_options();
  }

  // False: the command takes no more of them.
  bool add_positional() {
    const std::vector<const CLI::Option*> all = positionals(*place_.command);
    if (all.empty() || (place_.positionals >= all.size() && !takes_many(*all.back()))) return false;
    add_values(*all[std::min(place_.positionals, all.size() - 1)], "");
    return true;
  }

  // `before`: what of the current word is no part of the value.
  void add_values(const CLI::Option& option, std::string before) {
    const Offers offers = offers_of(program_, option);
    if (offers.after_name) {
      const size_t equals = current_.find('=', before.size());
      if (equals == std::string::npos) return;
      before = current_.substr(0, equals + 1);
    }
    std::set<std::string> taken;
    if (offers.list)
      while (true) {
        const size_t comma = current_.find(',', before.size());
        if (comma == std::string::npos) break;
        taken.insert(current_.substr(before.size(), comma - before.size()));
        before = current_.substr(0, comma + 1);
      }
    for (const std::string& word : offers.words)
      if (!taken.contains(word)) add(before + word, "");
    if (!offers.names.empty())
      for (const auto& [word, says] : known_(offers.names, place_.db))
        if (!taken.contains(word)) add(before + word, says);
    out_.files |= offers.files;
    out_.folders |= offers.folders;
    out_.endings.insert(out_.endings.end(), offers.endings.begin(), offers.endings.end());
    out_.kept = characters(before);
  }

  const CLI::App& program_;
  const Place& place_;
  const std::string& current_;
  const KnownNames& known_;
  Completion out_;
};

}  // namespace

Offers offer_words_in(std::string_view prose) {
  Offers offers;
  std::istringstream in{std::string(prose)};
  for (std::string word; in >> word;) {
    if (word.ends_with(',')) word.pop_back();
    if (word != "or" && word != "and") offers.words.push_back(word);
  }
  return offers;
}

Completion complete(const CLI::App& program, const std::vector<std::string>& words, const KnownNames& known) {
  Place place{.command = &program};
  for (size_t i = 0; i + 1 < words.size(); ++i) read_word(place, words[i]);
  const std::string current = words.empty() ? "" : words.back();
  return Completer(program, place, current, known).found();
}

std::string completion_text(const Completion& c) {
  std::string text = str(c.kept, "\t", c.files ? "files" : c.folders ? "folders" : "-");
  if (c.files)
    for (const std::string& ending : c.endings) text += "\t" + ending;
  text += "\n";
  for (const auto& [word, says] : c.words) text += str(word, "\t", says, "\n");
  return text;
}

}  // namespace tuner
