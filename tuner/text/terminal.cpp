#include "tuner/text/terminal.h"

#include "compiler_core/base/printable.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>

namespace tuner {
namespace {

constexpr int kUnknownWidth = 80, kGap = 2;
constexpr std::string_view kEllipsis = "...";

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

int columns_of(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, begins_character));
}

// The first `columns` characters.
std::string_view start_of(std::string_view text, int columns) {
  size_t end = 0;
  for (int seen = 0; end < text.size(); ++end)
    if (begins_character(text[end]) && ++seen > columns) break;
  return text.substr(0, end);
}

int total(const std::vector<int>& widths) {
  int sum = 0;
  for (const int w : widths)
    if (w > 0) sum += w + (sum > 0 ? kGap : 0);
  return sum;
}

}  // namespace

int terminal_width(int fd) {
  if (isatty(fd) != 1) return 0;
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUnknownWidth;
}

int text_width() {
  const int width = terminal_width(1);
  return width > 0 ? width : 80;
}

std::string shortened(std::string_view text, int width) {
  if (width <= 0 || columns_of(text) <= width) return std::string(text);
  const int dots = std::min<int>(width, kEllipsis.size());
  std::string out(start_of(text, width - dots));
  return out.append(kEllipsis.substr(0, static_cast<size_t>(dots)));
}

std::string on_a_line(std::string_view text) { return shortened(text, terminal_width(STDOUT_FILENO)); }

std::string wrapped(std::string_view text, int width, int indent) {
  if (width <= 0) return std::string(text);
  const auto margin = static_cast<size_t>(std::max(indent, 0));
  std::string out;
  int used = 0;  // columns of the line so far
  while (!text.empty()) {
    const size_t end =
        std::min(text.find(' ', std::min(text.find_first_not_of(' '), text.size())), text.size());
    std::string_view word = text.substr(0, end);  // with the blanks before it
    text.remove_prefix(end);
    if (used > 0 && used + columns_of(word) > width) {
      word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
      out.append("\n").append(margin, ' ');
      used = indent;
    }
    out += word;
    used += columns_of(word);
  }
  return out;
}

std::string fitted(const std::vector<LinePart>& parts, int width) {
  std::vector<size_t> order;
  for (size_t i = 0; i < parts.size(); ++i)
    if (!parts[i].text.empty()) order.push_back(i);
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return parts[i].rank; });
  std::vector<bool> shown(parts.size());
  int used = 0;
  for (const size_t i : order) {
    const int more = columns_of(parts[i].text) + (used > 0 ? kGap : 0);
    if (used > 0 && width > 0 && used + more > width) continue;
    shown[i] = true;
    used += more;
  }
  std::string line;
  for (size_t i = 0; i < parts.size(); ++i)
    if (shown[i]) line.append(line.empty() ? 0 : kGap, ' ').append(printable(parts[i].text));
  return shortened(line, width);
}

std::vector<int> TextTable::natural_widths() const {
  std::vector<int> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int widest = 0;
    for (const auto& row : rows_) widest = std::max(widest, columns_of(row[c]));
    widths.push_back(widest == 0 ? 0 : std::max(widest, columns_of(columns_[c].name)));
  }
  return widths;
}

std::vector<int> TextTable::fitting_widths(int width) const {
  const std::vector<int> natural = natural_widths();
  std::vector<int> widths = natural;
  if (width <= 0) return widths;
  const auto too_wide = [&] { return std::max(0, total(widths) - width); };
  std::vector<size_t> order(columns_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t c) { return columns_[c].importance; });
  for (const size_t c : order)
    if (const int least = columns_[c].least; least > 0 && widths[c] > least)
      widths[c] = std::max(least, widths[c] - too_wide());
  for (const size_t c : order)
    if (too_wide() > 0 && c != order.back()) widths[c] = 0;
  // What the columns that went leave over is for those that were shortened, the most important first.
  for (auto c = order.rbegin(); c != order.rend(); ++c)
    if (widths[*c] > 0) widths[*c] += std::clamp(width - total(widths), 0, natural[*c] - widths[*c]);
  return widths;
}

std::string TextTable::text(int width) const {
  const std::vector<int> widths = fitting_widths(width);
  std::string out;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      const std::string cell = shortened(printable(cell_of(c)), widths[c]);
      const std::string pad(static_cast<size_t>(std::max(0, widths[c] - columns_of(cell))), ' ');
      if (!line.empty()) line.append(kGap, ' ');
      line += columns_[c].right ? pad + cell : cell + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  add_line([&](size_t c) -> const std::string& { return columns_[c].name; });
  for (const auto& row : rows_) add_line([&](size_t c) -> const std::string& { return row[c]; });
  return out;
}

}  // namespace tuner
