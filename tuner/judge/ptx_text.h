// PTX as statements of words, without comments. It knows no instruction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

// One instruction, declaration, or head of a function. Words are names with their dots ("ld.global.f32",
// "%rd1", "shared::cta"), numbers, texts in quotes, and single characters.
struct PtxStatement {
  std::vector<std::string_view> words;
  bool is_head = false;  // a function's body begins behind it

  std::string_view first() const { return words.empty() ? std::string_view() : words.front(); }
  bool has(std::string_view word) const;
};

struct PtxStatements {
  std::vector<PtxStatement> list;
  std::string problem;  // why the text cannot be read, in a phrase; empty: it was
};

// Labels and the braces of scopes are left out. `text` outlives what is returned. What this reads otherwise
// than the assembler would is a problem: an open comment or quote, a line for a preprocessor.
PtxStatements read_ptx(std::string_view text);

}  // namespace tuner
