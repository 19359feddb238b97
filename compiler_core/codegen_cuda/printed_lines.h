// PrintedLines: the text of one kernel, line by line: indented, wrapped at 110 columns, with comments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/codegen_cuda/names.h"

namespace tuner::cuda {

class PrintedLines {
 public:
  // Braces are scopes of `names`, which must outlive this.
  explicit PrintedLines(Names& names) : names_(names) {}

  // A line that is too long is broken; what stands behind "  // " in it becomes a comment above.
  void line(std::string_view text);
  void comment(std::string_view words);  // on lines of its own, wrapped
  // "text {  // remark", indented from here, a scope for names.
  void open(std::string_view text, std::string_view remark = {});
  void open_else();  // in place of close()
  void close();
  // A line that defines `name`.
  void definition(const std::string& name, std::string_view text);
  // Takes back definitions of names that nothing mentions in the end: what they were for found a longer name
  // that holds them.
  void drop_unused_definitions();

  const std::string& text() const { return out_; }

 private:
  void long_line(std::string_view text);

  Names& names_;
  std::string out_;
  int depth_ = 0;
  struct Definition {
    std::string name;
    size_t begin, length;  // of its line in out_
  };
  std::vector<Definition> definitions_;
};

}  // namespace tuner::cuda
