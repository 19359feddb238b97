#include "tuner/study/cover_header.h"

#include <cctype>
#include <cstdio>
#include <map>

#include "templates/schedule_template.h"

namespace tuner {
namespace {

std::string identifier(std::string_view text) {
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "_" + name : name;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char octal[8];
      std::snprintf(octal, sizeof octal, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += octal;
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Never ends a comment or a line early.
std::string comment(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == '\\' ? ' ' : c;
  return out;
}

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * fraction);
  return text;
}

// Why a config's results may differ in their last digits; empty for direct sums and unknown templates.
std::string rounding_note(const std::string& template_name) {
  const AnyTemplate* t = find_template(template_name);
  return t == nullptr || t->algorithm() == "direct" ? ""
                                                    : str(t->algorithm(), ": rounds differently from direct");
}

// Every feature that some place has, by name; the same of all places, so that one struct holds any of them.
struct Fields {
  std::map<std::string, std::string> numbers, words;  // feature -> identifier

  explicit Fields(const CoverProblem& problem) {
    for (const CoverPlace& place : problem.places) {
      for (const auto& [name, value] : place.features.numbers) numbers[name] = identifier(name);
      for (const auto& [name, value] : place.features.words) words[name] = identifier(name);
    }
  }
  std::string initialised(const CoverFeatures& f) const {
    std::string text;
    for (const auto& [name, field] : numbers) text += str(text.empty() ? "" : ", ", f.number(name));
    for (const auto& [name, field] : words) text += str(text.empty() ? "" : ", ", quoted(f.word(name)));
    return "{" + text + "}";
  }
};

void add_question(const CoverTree& tree, int at, const Fields& fields, const std::string& indent,
                  std::string& out) {
  const CoverTree::Node& n = tree.nodes[static_cast<size_t>(at)];
  if (n.use >= 0) {
    out += str(indent, "return ", n.use, ";\n");
    return;
  }
  out += n.is_number ? str(indent, "if (s.", fields.numbers.at(n.feature), " <= ", n.at_most, ") {\n")
                     : str(indent, "if (s.", fields.words.at(n.feature), " == ", quoted(n.is), ") {\n");
  add_question(tree, n.yes, fields, indent + "  ", out);
  out += indent + "}\n";
  add_question(tree, n.no, fields, indent, out);
}

void add_namespace(const CoverProblem& p, const CoverSolution& s, const std::string& name, std::string& out) {
  const Fields fields(p);
  out += str("// ", p.op, ": ", s.set.rows.size(),
             s.set.rows.size() == 1 ? " config serves " : " configs serve ", p.places.size(),
             " places; at worst ", percent(s.worst), " of the fastest known there, ", percent(s.mean),
             " on average.\n");
  if (s.unknown_pairs > 0)
    out += str("// ", s.unknown_pairs, " of the ", s.set.rows.size() * p.places.size(),
               " pairs of a config and a place were never measured; they count as 0.\n");
  if (s.left_out.known > 0)
    out += str("// Places it was not made from: each in turn left out got ", percent(s.left_out.worst),
               " at worst, ", percent(s.left_out.mean), " on average (", s.left_out.known, " of ",
               s.left_out.columns, " were measured).\n");
  out += str("namespace ", name, " {\n\n",
             "struct Config {\n  std::string_view template_name;\n  int template_version;\n"
             "  std::string_view text;  // knob=value knob=value ...\n};\n",
             "inline constexpr Config kConfigs[] = {\n");
  for (const int r : s.set.rows) {
    const CoverConfig& c = p.configs[static_cast<size_t>(r)];
    const std::string mark = rounding_note(c.template_name);
    out += str("    {", quoted(c.template_name), ", ", c.template_version, ", ", quoted(c.config), "},",
               mark.empty() ? "" : "  // " + comment(mark), "\n");
  }
  out += str("};\ninline constexpr int kConfigCount = ", s.set.rows.size(), ";\n\n");
  out += R"(// The integer a config gives a knob; `otherwise` where it has no such knob, or a word.
constexpr std::int64_t knob(const Config& config, std::string_view name, std::int64_t otherwise = 0) {
  std::string_view rest = config.text;
  while (!rest.empty()) {
    const std::size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || word.substr(0, equals) != name) continue;
    const std::string_view digits = word.substr(equals + 1);
    std::size_t at = !digits.empty() && digits[0] == '-' ? 1 : 0;
    if (at == digits.size()) return otherwise;
    std::int64_t value = 0;
    for (; at < digits.size(); ++at) {
      if (digits[at] < '0' || digits[at] > '9') return otherwise;
      value = 10 * value + (digits[at] - '0');
    }
    return digits[0] == '-' ? -value : value;
  }
  return otherwise;
}

// What is to be computed, and where. Names and units are those of the workload's key; 0 and "" where it has
// none.
struct Shape {
)";
  for (const auto& [feature, field] : fields.numbers) out += str("  std::int64_t ", field, " = 0;\n");
  for (const auto& [feature, field] : fields.words) out += str("  std::string_view ", field, " = \"\";\n");
  out +=
      "};\n\n// Position in kConfigs. Of other shapes than those below, check that the config is valid "
      "there.\n";
  bool asks = s.tree.nodes.front().use < 0;
  out += str("constexpr int choose(const Shape&", asks ? " s" : "", ") {\n");
  add_question(s.tree, 0, fields, "  ", out);
  out += "}\n\n";
  out +=
      "// What it was made from: the place, the config chosen there, and its speed as a fraction of the "
      "fastest\n"
      "// known there.\n"
      "struct Place {\n  Shape shape;\n  int config;\n  double score;\n};\ninline constexpr Place kPlaces[] "
      "= {\n";
  for (size_t c = 0; c < p.places.size(); ++c) {
    char score[32];
    std::snprintf(score, sizeof score, "%.6f", s.score[c]);
    out += str("    {", fields.initialised(p.places[c].features), ", ", s.use[c], ", ", score, "},\n");
  }
  out += str("};\n\n}  // namespace ", name, "\n");
}

void add_text(const CoverTree& tree, int at, const std::string& indent, std::string& out) {
  const CoverTree::Node* n = &tree.nodes[static_cast<size_t>(at)];
  if (n->use >= 0) {
    out += str(indent, "config ", n->use + 1, "\n");
    return;
  }
  const std::string question =
      n->is_number ? str(n->feature, " <= ", n->at_most) : str(n->feature, " is \"", n->is, "\"");
  const CoverTree::Node& yes = tree.nodes[static_cast<size_t>(n->yes)];
  if (yes.use >= 0) {
    out += str(indent, "if ", question, ": config ", yes.use + 1, "\n");
  } else {
    out += str(indent, "if ", question, ":\n");
    add_text(tree, n->yes, indent + "  ", out);
  }
  const CoverTree::Node& no = tree.nodes[static_cast<size_t>(n->no)];
  if (no.use >= 0) {
    out += str(indent, "else: config ", no.use + 1, "\n");
  } else {
    out += str(indent, "else:\n");
    add_text(tree, n->no, indent + "  ", out);
  }
}

}  // namespace

std::string tree_text(const CoverTree& tree, const std::string& indent) {
  std::string out;
  add_text(tree, 0, indent, out);
  return out;
}

std::string cover_header(const std::vector<std::pair<CoverProblem, CoverSolution>>& covers,
                         const std::string& name, const std::string& made_by) {
  const std::string base = identifier(name);
  std::string out = str("// Few configs for many shapes and devices. Made by: ", comment(made_by),
                        "\n// Needs C++17 and nothing else; everything can be used in constant expressions.\n"
                        "#pragma once\n\n#include <cstddef>\n#include <cstdint>\n#include <string_view>\n");
  for (const auto& [problem, solution] : covers) {
    out += '\n';
    add_namespace(problem, solution, covers.size() == 1 ? base : base + "_" + identifier(problem.op), out);
  }
  return out;
}

}  // namespace tuner
