#include "templates/source_kernel/macro_defaults.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "templates/source_kernel/source_pieces.h"

namespace tuner {
namespace {

struct Directive {
  std::vector<std::string> words;  // without the #
  int line = 1;
};

std::vector<Directive> directives_in(std::string_view text) {
  std::vector<Directive> all;
  Pieces pieces(text);
  bool begins = true, inside = false;
  for (Piece piece; pieces.next(piece);) {
    if (piece.kind == PieceKind::kNewline) {
      begins = true;
      inside = false;
    } else if (piece.kind != PieceKind::kBlanks && piece.kind != PieceKind::kComment) {
      if (begins && piece.text == "#") {
        all.push_back({{}, piece.line});
        inside = true;
      } else if (inside && all.back().words.size() < 8) {
        all.back().words.push_back(piece.text);
      }
      begins = false;
    }
  }
  return all;
}

std::optional<int64_t> integer(const std::vector<std::string>& words, size_t at) {
  std::string text;
  for (; at < words.size(); ++at)
    if (words[at] != "(" && words[at] != ")") text += words[at];
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && !text.empty() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<MacroDefault> macro_defaults(std::string_view text) {
  std::vector<MacroDefault> found;
  // Of each #if that is open: the macro of an #ifndef, and whether it has been given an integer.
  struct Open {
    std::string macro;
    bool has_value = false;
  };
  std::vector<Open> open;
  for (const Directive& d : directives_in(text)) {
    if (d.words.empty()) continue;
    const std::string& what = d.words[0];
    if (what == "ifndef" && d.words.size() > 1) {
      open.push_back({d.words[1]});
    } else if (what.starts_with("if")) {
      open.emplace_back();
    } else if (what == "endif") {
      if (!open.empty()) open.pop_back();
    } else if (what.starts_with("el")) {
      if (!open.empty()) open.back() = {};
    } else if (what == "define" && d.words.size() > 2 && !open.empty() && !open.back().macro.empty()) {
      const std::optional<int64_t> value = integer(d.words, 2);
      if (d.words[1] == open.back().macro) open.back().has_value = value.has_value();
      if (value && open.back().has_value &&
          std::ranges::find(found, d.words[1], &MacroDefault::name) == found.end())
        found.push_back({d.words[1], *value, d.line});
    }
  }
  return found;
}

}  // namespace tuner
