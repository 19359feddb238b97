#include "compiler_core/host_cuda/static_shared.h"

#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

struct Variable {
  std::string name, bytes;
};

// What stands behind a directive: of "\t.comm\tname,4,16" and ".comm" it is "name,4,16".
std::optional<std::string_view> operand_of(std::string_view line, std::string_view directive) {
  if (!line.starts_with(str("\t", directive, "\t"))) return std::nullopt;
  return line.substr(directive.size() + 2);
}
// A variable of a function, as C++ mangles its name.
bool is_of_function(std::string_view name) { return name.starts_with("_ZZ"); }
std::string rim() { return str("\t.zero\t", kSharedRimBytes, "\n"); }

// A variable of .comm, laid out by hand, as .comm leaves no room for a rim.
std::string laid_out(const Variable& v, std::string_view alignment) {
  return str("\t.pushsection\t.bss\n\t.balign\t", alignment, "\n\t.type\t", v.name, ", @object\n\t.size\t",
             v.name, ", ", v.bytes, "\n", v.name, ":\n\t.zero\t", v.bytes, "\n", rim(), "\t.popsection\n");
}

std::string table_of(const std::vector<Variable>& variables) {
  std::string text = "\t.section\thost_cuda_table,\"aw\"\n\t.balign\t8\n\t.quad\t0, 0, 0\n", names;
  for (size_t i = 0; i < variables.size(); ++i) {
    text += str("\t.quad\t", variables[i].name, ", ", variables[i].bytes, ", .Lhost_cuda_name_", i, "\n");
    names += str(".Lhost_cuda_name_", i, ":\n\t.string\t\"", variables[i].name, "\"\n");
  }
  return str(text, "\t.section\t.rodata\n", names);
}

// One pass over the lines.
class Editor {
 public:
  void add(const std::string& line) {
    if (line.starts_with("\t.section\t") || line == "\t.bss" || line == "\t.data" || line == "\t.text")
      is_bss_ = line.find(".bss") != std::string::npos;
    if (const auto common = operand_of(line, ".comm"); common && is_of_function(*common)) {
      const size_t size = common->find(',') + 1, alignment = common->find(',', size) + 1;
      known_.push_back({std::string(common->substr(0, size - 1)),
                        std::string(common->substr(size, alignment - size - 1))});
      text_ += laid_out(known_.back(), common->substr(alignment));
      return;
    }
    if (const auto sized = operand_of(line, ".size"); sized && sized->find(", ") != std::string_view::npos)
      sizes_[std::string(sized->substr(0, sized->find(',')))] = sized->substr(sized->find(", ") + 2);
    text_ += line + "\n";
    if (line.ends_with(':')) label_ = line.substr(0, line.size() - 1);
    if (is_bss_ && operand_of(line, ".zero") && is_of_function(label_)) {
      known_.push_back({label_, sizes_[label_]});
      text_ += rim();
      label_.clear();
    }
  }
  std::string finish() { return text_ + table_of(known_); }

 private:
  bool is_bss_ = false;
  std::string text_, label_;
  std::map<std::string, std::string> sizes_;
  std::vector<Variable> known_;
};

}  // namespace

std::string with_shared_table(const std::string& assembly) {
  std::istringstream lines(assembly);
  Editor editor;
  for (std::string line; std::getline(lines, line);) editor.add(line);
  return editor.finish();
}

}  // namespace tuner
