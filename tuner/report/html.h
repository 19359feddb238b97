// Markup in which every text is escaped: a string literal is markup, everything else is text.
//
//   Html row;
//   row << "<td class=n>" << trial_message << "</td>";    // the message cannot become markup
//
// Bytes that are not UTF-8, control characters ("\x1b"), and those that turn the direction of writing are
// written out, because names in imported files are somebody else's.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace tuner {

class Html {
 public:
  Html() = default;
  template <size_t N>
  explicit Html(const char (&markup)[N]) : code_(markup, N - 1) {}

  template <size_t N>
  Html& operator<<(const char (&markup)[N]) {
    code_.append(markup, N - 1);
    return *this;
  }
  template <size_t N>
  Html& operator<<(char (&)[N]) = delete;  // a buffer is no literal
  Html& operator<<(const Html& markup) {
    code_ += markup.code_;
    return *this;
  }
  Html& operator<<(const std::string& text) { return *this << std::string_view(text); }
  template <std::same_as<const char*> Pointer>  // a pointer alone: an array is a literal
  Html& operator<<(const Pointer& text) {
    return *this << std::string_view(text);
  }
  Html& operator<<(std::string_view text);
  template <std::integral Number>
  requires(!std::same_as<Number, bool> && !std::same_as<Number, char>) Html& operator<<(Number number) {
    code_ += std::to_string(number);
    return *this;
  }

  // Markup from elsewhere that is trusted: code that was built from sources of ours.
  static Html of_code(std::string code) {
    Html out;
    out.code_ = std::move(code);
    return out;
  }

  bool empty() const { return code_.empty(); }
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

// Joins literals (markup), Html, and texts.
template <class... Parts>
Html html(Parts&&... parts) {
  Html out;
  (out << ... << std::forward<Parts>(parts));
  return out;
}

// A name that may break behind each `_` where a line is too short. Copied, it is the plain name.
Html breakable(std::string_view name);

// At most `most` characters, with "..." behind them if there are more.
std::string bounded(std::string_view text, size_t most);
inline constexpr size_t kMostOfConfig = 400;  // characters of a config, for bounded()

}  // namespace tuner
