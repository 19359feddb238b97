#include "templates/source_kernel/prototype.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "templates/source_kernel/source_pieces.h"

namespace tuner {
namespace {

using Words = std::span<const Piece>;

// No function's head has so many words; without a bound, a text of initialisers is read in squared time.
constexpr size_t kMostHead = 1024;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::ranges::find(list, text) != list.end();
}

// What stands in a prototype and says nothing of its types.
bool is_qualifier(std::string_view word) {
  return is_one_of(
      word, {"const",         "volatile",  "restrict",   "__restrict", "__restrict__", "__const",
             "static",        "inline",    "extern",     "constexpr",  "register",     "noexcept",
             "struct",        "class",     "enum",       "typename",   "__inline",     "__inline__",
             "__forceinline", "_Noreturn", "__global__", "__device__", "__host__",     "__forceinline__",
             "__noinline__",  "__cdecl"});
}
// Words whose parentheses belong to them.
bool takes_parentheses(std::string_view word) {
  return is_one_of(word, {"__attribute__", "__attribute", "alignas", "_Alignas", "decltype", "__declspec",
                          "noexcept", "__launch_bounds__", "requires", "asm", "__asm__", "explicit", "sizeof",
                          "static_assert", "_Static_assert"});
}

bool opens(const Piece& piece) { return is_one_of(piece.text, {"(", "[", "{"}); }
bool closes(const Piece& piece) { return is_one_of(piece.text, {")", "]", "}"}); }

// How many angle brackets are open after it more than before.
int angles(const Piece& piece) {
  return piece.text == "<" ? 1 : piece.text == ">" ? -1 : piece.text == ">>" ? -2 : 0;
}

// Behind the bracket that ends the one at `at`; the end where there is none.
size_t behind_bracket(Words words, size_t at) {
  int depth = 0;
  for (; at < words.size(); ++at) {
    if (opens(words[at])) ++depth;
    if (closes(words[at]) && --depth == 0) return at + 1;
  }
  return words.size();
}

// The same without attributes: [[...]], __attribute__((...)) and their like.
std::vector<Piece> without_attributes(Words words) {
  std::vector<Piece> left;
  for (size_t at = 0; at < words.size();) {
    const bool called = at + 1 < words.size() && words[at + 1].text == "(";
    const bool bracketed = words[at].text == "[" && at + 1 < words.size() && words[at + 1].text == "[";
    if (takes_parentheses(words[at].text) && called)
      at = behind_bracket(words, at + 1);
    else if (bracketed)
      at = behind_bracket(words, at);
    else
      left.push_back(words[at++]);
  }
  return left;
}

void append_word(std::string& text, const Piece& piece) {
  const bool touches = piece.kind == PieceKind::kSign || text.ends_with(':') || text.ends_with('<');
  if (!text.empty() && !touches) text += ' ';
  text += piece.text;
}

Parameter parameter_of(Words words) {
  Parameter p;
  std::vector<Piece> type;
  for (size_t at = 0; at < words.size() && words[at].text != "=";) {
    const Piece& piece = words[at];
    if (piece.text == "[") {
      ++p.pointers;
      at = behind_bracket(words, at);
      continue;
    }
    if (piece.text == "*") ++p.pointers;
    if (is_one_of(piece.text, {"&", "&&"})) p.reference = true;
    // Behind a * it is the pointer that is const, which changes nothing for a caller.
    if (is_one_of(piece.text, {"const", "constexpr", "__const"}) && p.pointers == 0) p.constant = true;
    if (!is_one_of(piece.text, {"*", "&", "&&"}) && !is_qualifier(piece.text)) type.push_back(piece);
    ++at;
  }
  // The last word is the name, unless the type would be left without one.
  const auto is_base = [](const Piece& piece) {
    return is_one_of(piece.text, {"int", "long", "short", "char", "unsigned", "signed", "float", "double",
                                  "void", "bool", "_Bool", "_Float16", "__fp16"});
  };
  const bool named = type.size() > 1 && type.back().kind == PieceKind::kWord && !is_base(type.back()) &&
                     type[type.size() - 2].text != "::";
  if (named) {
    p.name = type.back().text;
    type.pop_back();
  }
  for (const Piece& piece : type) append_word(p.type, piece);
  return p;
}

std::vector<Parameter> parameters_of(Words inside) {
  std::vector<Parameter> list;
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= inside.size(); ++at) {
    if (at < inside.size()) {
      depth += angles(inside[at]) + (opens(inside[at]) ? 1 : 0) - (closes(inside[at]) ? 1 : 0);
      if (inside[at].text != "," || depth > 0) continue;
    }
    if (at > begin) list.push_back(parameter_of(inside.subspan(begin, at - begin)));
    begin = at + 1;
  }
  if (list.size() == 1 && list[0].type == "void" && list[0].pointers == 0) list.clear();
  return list;
}

// What stands before a body, read as the head of a function.
std::optional<Prototype> prototype_of(Words head, const std::vector<std::string>& namespaces) {
  const auto has = [&](std::string_view sign) {
    return std::ranges::any_of(head, [&](const Piece& piece) { return piece.text == sign; });
  };
  if (head.empty() || head.size() > kMostHead || head.back().text == "=" || !has("(")) return std::nullopt;
  const std::vector<Piece> words = without_attributes(head);
  Prototype p{.on_device = has("__global__")};
  size_t begin = 0;
  if (!words.empty() && words[0].text == "template") {
    p.is_template = true;
    int depth = 0;
    for (begin = 1; begin < words.size();) {
      depth += angles(words[begin]);
      begin = opens(words[begin]) ? behind_bracket(words, begin) : begin + 1;
      if (depth <= 0) break;
    }
  }
  size_t open = begin;
  while (open < words.size() && words[open].text != "(") {
    if (words[open].text == "=") return std::nullopt;
    ++open;
  }
  if (open >= words.size() || open == begin || words[open - 1].kind != PieceKind::kWord) return std::nullopt;
  size_t name = open - 1;
  while (name >= begin + 2 && words[name - 1].text == "::" && words[name - 2].kind == PieceKind::kWord)
    name -= 2;
  if (name == begin) return std::nullopt;  // a macro's call, a constructor
  for (const std::string& space : namespaces)
    if (!space.empty()) p.name += space + "::";
  for (size_t at = name; at < open; ++at) p.name += words[at].text;
  p.line = words[open - 1].line;
  for (size_t at = begin; at < name; ++at)
    if (!is_qualifier(words[at].text)) append_word(p.returns, words[at]);
  const size_t end = behind_bracket(words, open);
  if (words[end - 1].text != ")" || end < open + 2) return std::nullopt;
  p.parameters = parameters_of(Words(words).subspan(open + 1, end - open - 2));
  return p;
}

// Whether what follows its braces belongs to it.
bool goes_on(Words head) {
  return head.size() < kMostHead && std::ranges::any_of(head, [](const Piece& piece) {
           return is_one_of(piece.text, {"=", "struct", "class", "union", "enum"});
         });
}

// Words and signs outside comments and preprocessor directives.
std::vector<Piece> words_of(std::string_view text) {
  std::vector<Piece> words;
  Pieces pieces(text);
  bool begins = true, directive = false;
  for (Piece piece; pieces.next(piece);) {
    if (piece.kind == PieceKind::kNewline) {
      begins = true;
      directive = false;
    } else if (piece.kind != PieceKind::kBlanks && piece.kind != PieceKind::kComment) {
      directive |= begins && piece.text == "#";
      begins = false;
      if (!directive) words.push_back(piece);
    }
  }
  return words;
}

// `namespace a::b`, `extern "C"`: their braces hold functions, too. Nothing: those of something else.
std::optional<std::string> space_of(Words head) {
  const std::vector<Piece> words = without_attributes(head);
  if (words.size() == 2 && words[0].text == "extern" && words[1].kind == PieceKind::kLiteral)
    return std::string();
  const size_t at = !words.empty() && words[0].text == "inline" ? 1 : 0;
  if (words.size() <= at || words[at].text != "namespace") return std::nullopt;
  std::string name;
  for (size_t i = at + 1; i < words.size(); ++i)
    if (words[i].text != "inline") name += words[i].text;
  return name;
}

}  // namespace

std::vector<Prototype> functions_in(std::string_view text) {
  const std::vector<Piece> pieces = words_of(text);
  const Words words(pieces);
  std::vector<Prototype> found;
  std::vector<std::string> namespaces;
  size_t begin = 0;
  for (size_t at = 0; at < words.size();) {
    const std::string& word = words[at].text;
    if (word == "(" || word == "[") {
      at = behind_bracket(words, at);
    } else if (word == ";") {
      begin = ++at;
    } else if (word == "}") {
      if (!namespaces.empty()) namespaces.pop_back();
      begin = ++at;
    } else if (word == "{") {
      Words head = words.subspan(begin, at - begin);
      if (std::optional<std::string> space = space_of(head)) {
        namespaces.push_back(*std::move(space));
        begin = ++at;
        continue;
      }
      // extern "C" before a function of its own.
      if (head.size() > 2 && head[0].text == "extern" && head[1].kind == PieceKind::kLiteral)
        head = head.subspan(2);
      std::optional<Prototype> p = prototype_of(head, namespaces);
      at = behind_bracket(words, at);
      // `struct { ... } x;` and `int a[] = { ... };` go on to their semicolon.
      if (p || !goes_on(head)) begin = at;
      if (p) found.push_back(*std::move(p));
    } else {
      ++at;
    }
  }
  return found;
}

}  // namespace tuner
