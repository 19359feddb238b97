#include "templates/source_kernel/source_text.h"

#include "templates/source_kernel/source_pieces.h"

namespace tuner {

std::string normalized_source(std::string_view text) {
  std::string out;
  Piece last{.kind = PieceKind::kNewline, .text = {}};
  bool apart = false;  // white space, or a comment, came before
  std::string line;    // what the line has so far: words of a directive matter
  Pieces pieces(text);
  for (Piece piece; pieces.next(piece);) {
    if (piece.kind == PieceKind::kNewline) {
      if (line.starts_with("#")) out += '\n', last = std::move(piece);
      line.clear();
      apart = true;
      continue;
    }
    const bool counts = piece.kind != PieceKind::kComment || piece.text.find("%RANGE%") != std::string::npos;
    if (piece.kind == PieceKind::kBlanks || !counts) {
      apart = true;
      continue;
    }
    const bool begins_directive = line.empty() && piece.text == "#";
    if (last.kind != PieceKind::kNewline) {
      // A prefix or suffix of a literal touches it, and so does the ( of a macro with arguments its name.
      const bool may_touch = (last.kind == PieceKind::kWord && piece.kind == PieceKind::kLiteral) ||
                             (last.kind == PieceKind::kLiteral && piece.kind == PieceKind::kWord) ||
                             (line == "#define " + last.text && piece.text == "(");
      if (begins_directive || last.kind == PieceKind::kComment)
        out += '\n';
      else if (apart || !may_touch)
        out += ' ';
    }
    out += piece.text;
    if (line.size() < 256) line += (line == "#define" ? " " : "") + piece.text;
    apart = false;
    last = std::move(piece);
  }
  if (last.kind != PieceKind::kNewline) out += '\n';
  return out;
}

std::vector<SourceInclude> quoted_includes(std::string_view text) {
  std::vector<SourceInclude> found;
  std::string before;  // what the line has so far, without white space and comments
  Pieces pieces(text);
  for (Piece piece; pieces.next(piece);) {
    if (piece.kind == PieceKind::kNewline) {
      before.clear();
    } else if (piece.kind == PieceKind::kLiteral &&
               (before == "#include" || before == "#include_next" || before == "#embed") &&
               piece.text.size() >= 2 && piece.text.front() == '"') {
      found.push_back({piece.text.substr(1, piece.text.size() - 2), piece.line});
      before.clear();
    } else if (piece.kind != PieceKind::kBlanks && piece.kind != PieceKind::kComment && before.size() < 32) {
      before += piece.text;
    }
  }
  return found;
}

}  // namespace tuner
