#include "tuner/dashboard/request_words.h"

#include <charconv>
#include <utility>

#include "compiler_core/base/printable.h"

namespace tuner::dashboard {
namespace {

constexpr size_t kMostWords = 16;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<std::string> decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        return invalid_argument("path: found \"", printable(text.substr(i, 3)),
                                "\", expected % and two hexadecimal digits");
      c = static_cast<char>(16 * high + low);
      i += 2;
    } else if (c == '+') {
      c = ' ';
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return invalid_argument("path: found a control character, expected text");
    out += c;
  }
  return out;
}

Result<std::vector<std::string>> words_of_path(std::string_view path) {
  std::vector<std::string> words;
  while (!path.empty()) {
    path.remove_prefix(path[0] == '/' ? 1 : 0);
    const size_t end = std::min(path.find('/'), path.size());
    ASSIGN_OR_RETURN(std::string word, decoded(path.substr(0, end)));
    if (words.size() >= kMostWords) return invalid_argument("path: expected at most 16 words, found more");
    words.push_back(std::move(word));
    path.remove_prefix(end);
  }
  return words;
}

Result<Query> Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    const size_t mark = std::min(pair.find('='), pair.size());
    ASSIGN_OR_RETURN(std::string name, decoded(pair.substr(0, mark)));
    ASSIGN_OR_RETURN(std::string value, decoded(pair.substr(std::min(mark + 1, pair.size()))));
    if (query.words_.size() >= kMostWords)
      return invalid_argument("query: expected at most 16 words, found more");
    if (!query.words_.emplace(name, std::move(value)).second)
      return invalid_argument("query: found \"", printable(name), "\" twice, expected it once");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return query;
}

std::string Query::text(const std::string& name) const {
  const auto found = words_.find(name);
  return found == words_.end() ? "" : found->second;
}

Result<int64_t> Query::number(const std::string& name, int64_t usual, int64_t least, int64_t most) const {
  const auto found = words_.find(name);
  if (found == words_.end()) return usual;
  const std::string& text = found->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  return invalid_argument("query: ", name, ": found \"", printable(std::string_view(text).substr(0, 40)),
                          "\", expected a whole number from ", least, " to ", most);
}

}  // namespace tuner::dashboard
