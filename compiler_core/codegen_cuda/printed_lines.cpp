#include "compiler_core/codegen_cuda/printed_lines.h"

#include <algorithm>
#include <cctype>

#include "compiler_core/base/status.h"
#include "compiler_core/codegen_cuda/describe.h"

namespace tuner::cuda {
namespace {

constexpr size_t kColumns = 110;

// The blank before `width` to break a statement at: outside the most parentheses, then furthest right; after
// a comma or before an operator. npos: none.
size_t best_break(std::string_view text, size_t width) {
  size_t best = std::string_view::npos;
  int best_depth = 0, depth = 0;
  for (size_t i = 0; i + 2 < text.size() && i <= width; ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    if (text[i] != ' ' || i < width / 3) continue;
    // An operator stands alone: *(const float4*)... is none.
    const bool before_operator =
        std::string_view("+-*/%?:&|^<>").find(text[i + 1]) != std::string_view::npos &&
        (text[i + 2] == ' ' || text[i + 1] == text[i + 2]);
    const bool after_assignment = text[i - 1] == '=' && text[i - 2] == ' ';
    if (text[i - 1] != ',' && !before_operator && !after_assignment) continue;
    if (best == std::string_view::npos || depth <= best_depth) best = i, best_depth = depth;
  }
  return best;
}

}  // namespace

void PrintedLines::line(std::string_view text) {
  const size_t indent = static_cast<size_t>(depth_) * 2;
  if (indent + text.size() > kColumns) return long_line(text);
  out_.append(indent, ' ');
  out_ += text;
  out_ += '\n';
}

// A remark behind the statement goes on lines above it; the statement is broken after a comma or before an
// operator.
void PrintedLines::long_line(std::string_view text) {
  if (const size_t remark = text.rfind("  // "); remark != std::string_view::npos) {
    comment(text.substr(remark + 5));
    return line(text.substr(0, remark));
  }
  size_t indent = static_cast<size_t>(depth_) * 2;
  while (indent + text.size() > kColumns) {
    const size_t width = kColumns - indent;
    const size_t end = best_break(text, width);
    if (end == std::string_view::npos) break;
    out_ += str(std::string(indent, ' '), text.substr(0, end), "\n");
    text.remove_prefix(end + 1);
    indent = static_cast<size_t>(depth_) * 2 + 4;
  }
  out_ += str(std::string(indent, ' '), text, "\n");
}

void PrintedLines::comment(std::string_view words) {
  const std::string names = with_c_names(std::string(words));
  std::string_view text = names;
  const size_t indent = text.find_first_not_of(' ');
  size_t hanging = 0;  // blanks before a line that goes on
  while (!text.empty()) {
    const size_t width = kColumns - static_cast<size_t>(depth_) * 2 - 3 - hanging;
    size_t end = text.size();
    if (end > width) {
      end = text.rfind(' ', width);
      if (end == std::string_view::npos || end <= indent) end = std::min(text.find(' ', width), text.size());
    }
    line(str("// ", std::string(hanging, ' '), text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    hanging = indent + 2;
  }
}

void PrintedLines::open(std::string_view text, std::string_view remark) {
  line(remark.empty() ? str(text, " {") : str(text, " {  // ", remark));
  ++depth_;
  names_.open();
}

void PrintedLines::open_else() {
  close();
  out_.pop_back();  // "}" and its line feed: the else goes on there
  out_ += " else {\n";
  ++depth_;
  names_.open();
}

void PrintedLines::close() {
  names_.close();
  --depth_;
  line("}");
}

void PrintedLines::definition(const std::string& name, std::string_view text) {
  const size_t begin = out_.size();
  line(text);
  definitions_.push_back({name, begin, out_.size() - begin});
}

void PrintedLines::drop_unused_definitions() {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (auto d = definitions_.rbegin(); d != definitions_.rend(); ++d) {
    int mentions = 0;
    for (size_t at = out_.find(d->name); at != std::string::npos; at = out_.find(d->name, at + 1)) {
      const size_t end = at + d->name.size();
      mentions += (at == 0 || !is_word(out_[at - 1])) && (end == out_.size() || !is_word(out_[end]));
    }
    if (mentions == 1) out_.erase(d->begin, d->length);  // from the back: those before keep their places
  }
}

}  // namespace tuner::cuda
