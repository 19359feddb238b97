// Reads a number out of what a program printed. No regular expressions: both texts are strangers', and a
// regular expression may take any time for a line.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "compiler_core/artifact/command_bundle.h"
#include "compiler_core/base/printable.h"

namespace tuner {
namespace {

constexpr std::string_view kNumber = "{number}", kBlanks = " \t\r";
constexpr double kMostNs = 1e15;       // eleven days
constexpr size_t kLongestLine = 4096;  // of a longer one the rest is not looked at

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

// As many characters of `line` as `piece` matches at its beginning; npos: it does not.
size_t matched(std::string_view line, std::string_view piece) {
  size_t at = 0;
  for (size_t i = 0; i < piece.size(); ++i) {
    if (is_blank(piece[i])) {
      while (i + 1 < piece.size() && is_blank(piece[i + 1])) ++i;
      while (at < line.size() && is_blank(line[at])) ++at;
    } else if (at >= line.size() || line[at++] != piece[i]) {
      return std::string_view::npos;
    }
  }
  return at;
}

// Where pieces that * stands between begin and end in the line, each as far to the left as it can be.
struct Found {
  size_t begin = std::string_view::npos, end = 0;
};
Found find_pieces(std::string_view line, std::string_view pieces, bool at_begin) {
  Found found{.begin = 0};
  for (bool first = true;; first = false) {
    const size_t star = std::min(pieces.find('*'), pieces.size());
    const std::string_view piece = pieces.substr(0, star);
    size_t at = found.end, length = std::string_view::npos;
    for (; at <= line.size() && (length = matched(line.substr(at), piece)) == std::string_view::npos; ++at)
      if (first && at_begin) return {};
    if (length == std::string_view::npos) return {};
    if (first) found.begin = at;
    found.end = at + length;
    if (star == pieces.size()) return found;
    pieces.remove_prefix(star + 1);
  }
}

// The number at the beginning of a text, and nothing else of it.
std::string_view number_at(std::string_view text) {
  const char* const begin = text.data();
  const size_t sign = text.starts_with('+') ? 1 : 0;
  double ignored = 0;
  const auto read = std::from_chars(begin + sign, begin + text.size(), ignored);
  if (read.ec == std::errc::invalid_argument) return {};
  return text.substr(0, static_cast<size_t>(read.ptr - begin));
}

std::string shortened(std::string_view text) {
  constexpr size_t kMost = 120;
  return printable(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "");
}

}  // namespace

std::string_view number_in_line(std::string_view line, std::string_view pattern) {
  line = line.substr(0, kLongestLine);
  const size_t hole = pattern.find(kNumber);
  if (hole == std::string_view::npos) return {};
  const std::string_view before = pattern.substr(0, hole), after = pattern.substr(hole + kNumber.size());
  // Several places of the line may have what stands before.
  for (size_t from = 0; from <= line.size();) {
    const Found place = find_pieces(line.substr(from), before, /*at_begin=*/false);
    if (place.begin == std::string_view::npos) return {};
    // Without a text before it a number begins where no word and no other number does.
    const bool inside = before.empty() && from > 0 &&
                        (std::isalnum(static_cast<unsigned char>(line[from - 1])) != 0 ||
                         line[from - 1] == '.' || line[from - 1] == '-' || line[from - 1] == '_');
    const std::string_view rest = line.substr(from + place.end);
    const std::string_view number = inside ? std::string_view() : number_at(rest);
    if (!number.empty() &&
        find_pieces(rest.substr(number.size()), after, /*at_begin=*/true).begin != std::string_view::npos)
      return number;
    from += place.begin + 1;
  }
  return {};
}

Result<double> printed_ns(std::string_view output, const PrintedResult& result) {
  std::string_view found;
  for (size_t at = 0; at < output.size();) {
    const size_t end = std::min(output.find('\n', at), output.size());
    const std::string_view number = number_in_line(output.substr(at, end - at), result.pattern);
    if (!number.empty()) found = number;
    at = end + 1;
  }
  if (found.empty()) return invalid_argument("it printed no line with \"", shortened(result.pattern), "\"");
  const std::string_view digits = found.starts_with('+') ? found.substr(1) : found;
  double number = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc())
    number = NAN;  // beyond what a double holds
  const double ns = result.is_rate ? result.scale_ns / number : result.scale_ns * number;
  if (std::isfinite(ns) && number > 0 && ns > 0 && ns <= kMostNs) return ns;
  return invalid_argument("it printed ", shortened(found), " ", result.unit, ", expected a number above 0",
                          number > 0 && std::isfinite(number) ? ", of at most eleven days" : "");
}

}  // namespace tuner
