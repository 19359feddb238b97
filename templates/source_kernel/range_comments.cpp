#include "templates/source_kernel/range_comments.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "compiler_core/base/c_names.h"
#include "compiler_core/base/printable.h"
#include "templates/source_kernel/source_pieces.h"

namespace tuner {
namespace {

constexpr std::string_view kMark = "%RANGE%";
constexpr int64_t kMostValue = 1'000'000'000;
constexpr size_t kMostShown = 120;

std::vector<std::string_view> blank_separated(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\f\v";
  std::vector<std::string_view> words;
  for (size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

// "7:24:1"
bool read_range(std::string_view text, RangeComment& range) {
  for (int64_t* number : {&range.from, &range.to, &range.step}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (error != std::errc() || std::abs(*number) > kMostValue) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (number == &range.step) return text.empty();
    if (!text.starts_with(":")) return false;
    text.remove_prefix(1);
  }
  return false;
}

Result<RangeComment> range_of(std::string_view said, int line) {
  const auto wrong = [&](const auto&... why) {
    return invalid_argument("line ", line, ": ", why..., ", found \"", printable(said.substr(0, kMostShown)),
                            "\"");
  };
  const std::vector<std::string_view> words = blank_separated(said);
  RangeComment range{.line = line};
  if (words.size() != 3) return wrong("%RANGE%: expected MACRO LABEL START:END:STEP");
  range.macro = words[0];
  range.label = words[1];
  if (!check_c_name(range.macro)) return wrong("%RANGE%: expected the name of a macro first");
  if (!read_range(words[2], range))
    return wrong("%RANGE% ", range.macro, ": expected START:END:STEP, integers of at most ", kMostValue);
  if (range.step <= 0) return wrong("%RANGE% ", range.macro, ": expected a step above 0");
  if (range.to < range.from)
    return wrong("%RANGE% ", range.macro, ": expected an end that is not below the start");
  range.to -= (range.to - range.from) % range.step;
  return range;
}

}  // namespace

Result<std::vector<RangeComment>> range_comments(std::string_view text) {
  std::vector<RangeComment> found;
  std::map<std::string, int> lines;  // of each macro
  Pieces pieces(text);
  for (Piece piece; pieces.next(piece);) {
    if (piece.kind != PieceKind::kComment) continue;
    std::string_view rest = piece.text;
    int line = piece.line;
    for (size_t at; (at = rest.find(kMark)) != std::string_view::npos;) {
      line += static_cast<int>(std::ranges::count(rest.substr(0, at), '\n'));
      rest.remove_prefix(at + kMark.size());
      std::string_view said = rest.substr(0, std::min(rest.find('\n'), rest.find("*/")));
      ASSIGN_OR_RETURN(RangeComment range, range_of(said, line));
      const auto [earlier, fresh] = lines.try_emplace(range.macro, line);
      if (!fresh)
        return invalid_argument("line ", line, ": %RANGE% ", range.macro, ": it stands in line ",
                                earlier->second, " already");
      found.push_back(std::move(range));
    }
  }
  return found;
}

}  // namespace tuner
