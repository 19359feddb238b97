// What a terminal shows: how wide it is, texts and tables that fit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

// Columns of the terminal behind the descriptor; 80 when it does not say. 0 of what is no terminal: no limit.
int terminal_width(int fd);

// The text in so many columns, shortened with "..." at its end; `width` 0: no limit. Counts characters of
// UTF-8.
std::string shortened(std::string_view text, int width);

// Parts of a line in the order they stand, joined by two blanks. Where not all fit, those of the highest
// ranks are taken, and of the others what still fits. A first one that is too long by itself is shortened.
struct LinePart {
  std::string text;
  int rank = 0;
};
std::string fitted(const std::vector<LinePart>& parts, int width);

// A table with columns two blanks apart. Where it is too wide, the least important columns are shortened with
// "..." first, to their least width each, and then left out.
class TextTable {
 public:
  struct Column {
    std::string name;
    int importance = 0;
    int least = 0;  // columns that still say something; 0: as wide as it is, or not at all
    bool right = false;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // With its heading; each line ends with a newline. `width` 0: no limit.
  std::string text(int width) const;

 private:
  std::vector<int> natural_widths() const;  // 0 of a column that holds nothing
  std::vector<int> fitting_widths(int width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tuner
