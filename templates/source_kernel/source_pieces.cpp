#include "templates/source_kernel/source_pieces.h"

#include <algorithm>
#include <cctype>

namespace tuner {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}

}  // namespace

bool Pieces::next(Piece& piece) {
  splice();
  if (place_ == text_.size()) return false;
  piece = {PieceKind::kSign, {}, line_};
  const char c = text_[place_];
  if (c == '\n') {
    piece.kind = PieceKind::kNewline;
    take(piece);
  } else if (is_blank(c)) {
    piece.kind = PieceKind::kBlanks;
    while (!at_end() && is_blank(text_[place_])) take(piece);
  } else if (starts("//")) {
    piece.kind = PieceKind::kComment;
    while (!at_end() && text_[place_] != '\n') take(piece);
  } else if (starts("/*")) {
    piece.kind = PieceKind::kComment;
    take(piece), take(piece);
    while (!at_end() && !starts("*/")) take(piece);
    for (int i = 0; i < 2 && !at_end(); ++i) take(piece);
  } else if (c == '"' || c == '\'') {
    literal(piece, c);
  } else if (in_name(c)) {
    word(piece);
  } else {
    sign(piece);
  }
  return true;
}

// A backslash, blanks that compilers forgive, and the end of the line.
void Pieces::splice() {
  while (place_ < text_.size() && text_[place_] == '\\') {
    size_t end = place_ + 1;
    while (end < text_.size() && is_blank(text_[end])) ++end;
    if (end == text_.size() || text_[end] != '\n') return;
    place_ = end + 1;
    ++line_;
  }
}

// As a spliced line may lie between any two characters, the second one is looked for behind it.
bool Pieces::starts(std::string_view two) {
  if (text_[place_] != two[0]) return false;
  const size_t place = place_;
  const int line = line_;
  ++place_;
  splice();
  const bool found = !at_end() && text_[place_] == two[1];
  place_ = place;
  line_ = line;
  return found;
}

void Pieces::take(Piece& piece) {
  if (text_[place_] == '\n') ++line_;
  piece.text += text_[place_++];
  splice();
}

// The longest operator that begins here.
void Pieces::sign(Piece& piece) {
  static constexpr std::string_view kLong[] = {
      "<=>", "<<=", ">>=", "...", "->*", "##", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
      "++",  "--",  "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", "->", ".*", "::"};
  take(piece);
  while (!at_end() && std::ranges::any_of(kLong, [&](std::string_view all) {
    return all.starts_with(piece.text + text_[place_]);
  }))
    take(piece);
}

void Pieces::literal(Piece& piece, char quote) {
  piece.kind = PieceKind::kLiteral;
  take(piece);
  while (!at_end() && text_[place_] != quote && text_[place_] != '\n') {
    if (text_[place_] == '\\') take(piece);
    if (!at_end()) take(piece);
  }
  if (!at_end() && text_[place_] == quote) take(piece);
}

// A name or number; 1'000 is one, and so is 1e-5f. Behind R, LR, uR, UR or u8R a quote begins a raw
// literal.
void Pieces::word(Piece& piece) {
  piece.kind = PieceKind::kWord;
  const bool number = std::isdigit(static_cast<unsigned char>(text_[place_])) != 0;
  while (!at_end() && (in_name(text_[place_]) || (number && goes_on_number(piece.text)))) take(piece);
  static constexpr std::string_view kRaw[] = {"R", "LR", "uR", "UR", "u8R"};
  if (!at_end() && text_[place_] == '"' && std::ranges::find(kRaw, piece.text) != std::end(kRaw)) raw(piece);
}

bool Pieces::goes_on_number(const std::string& before) const {
  const char c = text_[place_];
  if (c == '.') return true;
  if (c == '\'') return place_ + 1 < text_.size() && in_name(text_[place_ + 1]);
  const char last = before.empty() ? ' ' : before.back();
  return (c == '+' || c == '-') && std::string_view("eEpP").find(last) != std::string_view::npos &&
         !before.starts_with("0x");
}

// R"name( ... )name": nothing in it is special, lines are not spliced.
void Pieces::raw(Piece& piece) {
  piece.kind = PieceKind::kLiteral;
  const size_t open = text_.find('(', place_);
  size_t end = text_.size();
  if (open != std::string_view::npos && open - place_ <= 17) {
    const std::string closing = ")" + std::string(text_.substr(place_ + 1, open - place_ - 1)) + "\"";
    const size_t found = text_.find(closing, open);
    if (found != std::string_view::npos) end = found + closing.size();
  }
  const std::string_view whole = text_.substr(place_, end - place_);
  line_ += static_cast<int>(std::ranges::count(whole, '\n'));
  piece.text += whole;
  place_ = end;
  splice();
}

}  // namespace tuner
