// Names in CUDA text: C identifiers, unique where they can be seen.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/ir/expr.h"

namespace tuner::cuda {

// "m.outer" -> "m_outer": letters, digits and underscores, not starting with a digit.
std::string identifier(std::string_view name);

// What variables and buffers are called in one kernel. Names declared after open() are free again after the
// matching close(); two things that can be seen at one place never share a name.
class Names {
 public:
  Names();
  // `text` is taken by something that is not declared here: a kernel, a word of an intrinsic.
  void reserve(std::string_view text) { taken_.insert(std::string(text)); }
  void open() { scopes_.emplace_back(); }
  void close();
  // A name like `wanted`, free here: itself, or with _1, _2...
  std::string declare(std::string_view wanted);
  const std::string& declare(const Var& var, std::string_view wanted);
  const std::string& declare(const Buffer& buffer) { return declare(buffer, buffer->name); }
  const std::string& declare(const Buffer& buffer, std::string_view wanted);

  // `buffer` is called by the name of something declared.
  void alias(const Buffer& buffer, const std::string& name) { buffers_[buffer.get()] = name; }
  // `var` is called by this text from now on, say an element of an array that is declared.
  void alias(const Var& var, const std::string& text) { vars_[var.get()] = text; }

  // The name of something declared. Undeclared is our bug.
  const std::string& of(const Var& var) const;
  const std::string& of(const Buffer& buffer) const;

 private:
  std::set<std::string, std::less<>> taken_;
  std::vector<std::vector<std::string>> scopes_;
  std::map<const VarNode*, std::string> vars_;
  std::map<const BufferNode*, std::string> buffers_;
};

}  // namespace tuner::cuda
