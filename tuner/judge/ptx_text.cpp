#include "tuner/judge/ptx_text.h"

#include <algorithm>

namespace tuner {
namespace {

bool of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // The next word; empty: the text ends, or there is a problem.
  std::string_view next() {
    skip();
    if (!problem.empty() || at_ >= text_.size()) return {};
    const size_t begin = at_;
    if (text_[at_] == '"') return quoted();
    if (!of_name(text_[at_])) return text_.substr(at_++, 1);
    while (at_ < text_.size() && (of_name(text_[at_]) || is_scope())) at_ += is_scope() ? 2 : 1;
    return text_.substr(begin, at_ - begin);
  }
  std::string problem;

 private:
  bool is_scope() const { return text_.substr(at_, 2) == "::"; }

  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0') {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) problem = "its PTX has a comment that does not end";
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        break;
      }
    }
  }
  std::string_view quoted() {
    const size_t end = text_.find_first_of("\"\n\\", at_ + 1);
    if (end == std::string_view::npos || text_[end] != '"') {
      problem = "its PTX has a text in quotes that does not end on its line";
      return {};
    }
    const std::string_view word = text_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    return word;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// These take one word and have no semicolon.
bool is_of_module(std::string_view word) {
  return word == ".version" || word == ".target" || word == ".address_size";
}

class Statements {
 public:
  // False: it cannot go on.
  bool take(std::string_view word) {
    if (word == "#" || word == "\\") return fail("its PTX has a line for a preprocessor");
    if (word == "{") return open();
    if (word == "}") return close();
    if (word == ";" && inner_ == 0) return end(false), true;
    if (word == ":" && now_.words.size() == 1) {  // a label
      now_.words.clear();
      return true;
    }
    now_.words.push_back(word);
    if (now_.words.size() == 2 && is_of_module(now_.first())) end(false);
    return true;
  }
  PtxStatements finished() {
    if (out_.problem.empty() && (!now_.words.empty() || depth_ != 0))
      fail("its PTX ends within a statement or a function");
    return std::move(out_);
  }
  bool fail(const char* why) {
    if (out_.problem.empty()) out_.problem = why;
    return false;
  }

 private:
  // A scope at the beginning of a statement, a body behind a head; within a statement values.
  bool open() {
    const bool is_head = now_.has(".entry") || now_.has(".func");
    if (!now_.words.empty() && !is_head) {
      ++inner_;
      now_.words.emplace_back("{");
      return true;
    }
    if (is_head) end(true);
    ++depth_;
    return true;
  }
  bool close() {
    if (inner_ > 0) {
      --inner_;
      now_.words.emplace_back("}");
      return true;
    }
    if (!now_.words.empty() || depth_-- == 0) return fail("its PTX has a brace where no scope ends");
    return true;
  }
  void end(bool is_head) {
    if (now_.words.empty()) return;
    now_.is_head = is_head;
    out_.list.push_back(std::move(now_));
    now_ = {};
  }

  PtxStatements out_;
  PtxStatement now_;
  int inner_ = 0, depth_ = 0;
};

}  // namespace

bool PtxStatement::has(std::string_view word) const { return std::ranges::find(words, word) != words.end(); }

PtxStatements read_ptx(std::string_view text) {
  Scanner scanner(text);
  Statements statements;
  for (std::string_view word = scanner.next(); !word.empty() && statements.take(word);
       word = scanner.next()) {
  }
  if (!scanner.problem.empty()) statements.fail(scanner.problem.c_str());
  return statements.finished();
}

}  // namespace tuner
