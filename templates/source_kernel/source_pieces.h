// C and C++ text in the pieces that its grammar has before preprocessing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tuner {

enum class PieceKind : uint8_t { kBlanks, kNewline, kComment, kLiteral, kWord, kSign };
struct Piece {
  PieceKind kind = PieceKind::kBlanks;
  std::string text;  // without spliced lines, but for raw literals
  int line = 1;      // where it begins
};

// Cuts a text into pieces, with lines spliced as the language says (a backslash before the line's end), raw
// literals excepted. All of the text is in some piece; whatever it holds, there is an end.
class Pieces {
 public:
  explicit Pieces(std::string_view text) : text_(text) {}  // which outlives this

  bool next(Piece& piece);  // false: there is none

 private:
  void splice();
  bool at_end() const { return place_ == text_.size(); }
  bool starts(std::string_view two);
  void take(Piece& piece);
  void sign(Piece& piece);
  void literal(Piece& piece, char quote);
  void word(Piece& piece);
  bool goes_on_number(const std::string& before) const;
  void raw(Piece& piece);

  const std::string_view text_;
  size_t place_ = 0;
  int line_ = 1;
};

}  // namespace tuner
