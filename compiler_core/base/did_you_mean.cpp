#include "compiler_core/base/did_you_mean.h"

#include <algorithm>
#include <cctype>

namespace tuner {
namespace {

constexpr size_t kLongest = 64;  // no word of ours is longer; of longer ones the table would be large

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Edits from a to b: the optimal string alignment distance. Capitals count as small letters.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) table[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) table[0][j] = j;
  const auto same = [&](size_t i, size_t j) { return lower(a[i]) == lower(b[j]); };
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t best = table[i - 1][j - 1] + (same(i - 1, j - 1) ? 0 : 1);
      best = std::min({best, table[i - 1][j] + 1, table[i][j - 1] + 1});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1))
        best = std::min(best, table[i - 2][j - 2] + 1);
      table[i][j] = best;
    }
  return table[a.size()][b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  if (word.empty() || word.size() > kLongest) return "";
  const std::string* nearest = nullptr;
  size_t fewest = 0;
  for (const std::string& k : known) {
    if (k.size() > kLongest) continue;
    const size_t n = edits(word, k);
    if (nearest != nullptr && n >= fewest) continue;
    nearest = &k;
    fewest = n;
  }
  if (nearest == nullptr) return "";
  return 3 * fewest <= std::min(word.size(), nearest->size()) ? *nearest : "";
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace tuner
