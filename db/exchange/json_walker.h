// JsonWalker walks over JSON text knowing strings, escapes and depth, and nothing else: it finds where the
// elements of a long document begin and end without building it. Takes time linear in the text and no memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace tuner::exchange {

class JsonWalker {
 public:
  explicit JsonWalker(std::string_view text) : text_(text) {}
  bool at_end() const { return at_ >= text_.size(); }
  char here() const { return text_[at_]; }
  size_t at() const { return at_; }
  int64_t line() const { return line_; }
  void step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  void skip_blank() {
    while (!at_end() && (here() == ' ' || here() == '\t' || here() == '\n' || here() == '\r')) step();
  }
  // Past the string that begins here; false: it does not end.
  bool string() {
    step();
    while (!at_end() && here() != '"') {
      if (here() == '\\') step();
      if (!at_end()) step();
    }
    if (at_end()) return false;
    step();
    return true;
  }
  // Past the value that begins here: to the bracket that closes it, or to a comma or bracket after it.
  bool value() {
    int depth = 0;
    while (!at_end()) {
      const char c = here();
      if (c == '"') {
        if (!string()) return false;
        if (depth == 0) return true;
        continue;
      }
      if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) return true;
        step();
        if (--depth == 0) return true;
        continue;
      } else if (c == ',' && depth == 0) {
        return true;
      }
      step();
    }
    return depth == 0;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

// How many brackets are open inside each other at most; counting stops above `most`.
inline int depth_of(std::string_view text, int most) {
  JsonWalker w(text);
  int depth = 0, deepest = 0;
  while (!w.at_end() && deepest <= most) {
    const char c = w.here();
    if (c == '"') {
      if (!w.string()) break;
      continue;
    }
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == ']') --depth;
    w.step();
  }
  return deepest;
}

}  // namespace tuner::exchange
