// Fits output to a terminal: its width, and texts and tables that fit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

// Returns the columns of the terminal at the descriptor; 80 if it does not say; 0 if it is no terminal: no
// limit.
int terminal_width(int fd);

// The columns of what is printed on standard output: of its terminal, 80 where it is none.
int text_width();

// Cuts the text to this many columns, with "..." at its end; `width` 0: no limit. Counts characters of UTF-8.
std::string shortened(std::string_view text, int width);

// The text as it is printed on a line of standard output: cut to the terminal, or whole in a pipe.
std::string on_a_line(std::string_view text);

// Breaks the text between words into lines of at most `width` columns; all but the first begin with `indent`
// blanks. A word that is longer by itself stays whole. `width` 0: no limit. Without a newline at its end.
std::string wrapped(std::string_view text, int width, int indent);

// Joins the parts of a line in their order, with two blanks. If they do not all fit, parts are chosen by
// rank, the largest number first; one that does not fit is skipped. A first part that is too long by itself
// is shortened.
struct LinePart {
  std::string text;
  int rank = 0;
};
std::string fitted(const std::vector<LinePart>& parts, int width);

// A table with columns two blanks apart. If it is too wide, the least important columns are first shortened
// with "...", down to their least width, and then left out.
class TextTable {
 public:
  struct Column {
    std::string name;
    int importance = 0;  // a larger number is more important
    int least = 0;       // never cut narrower than this; 0: never cut, shown whole or left out
    bool right = false;  // aligned to the right
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // A row has a cell for each column.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Returns the table with its heading; each line ends with a newline. `width` 0: no limit.
  std::string text(int width) const;

 private:
  std::vector<int> natural_widths() const;  // 0 for an empty column
  std::vector<int> fitting_widths(int width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tuner
