// Scope: which value each name of a graph stands for. A subgraph's own names come before equal ones of the
// graphs around it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "compiler_core/graph/graph.h"

namespace tuner {

class Scope {
 public:
  // `outer`, if there is one, must outlive this one.
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}

  // False: this graph has a value of that name already.
  bool define(const std::string& name, graph::ValueId id) { return values_.emplace(name, id).second; }
  bool has_own(const std::string& name) const { return values_.contains(name); }
  // kNoValue for what a loop without iterations stacks, whose type nothing tells. Nothing: nobody makes a
  // value of that name.
  std::optional<graph::ValueId> find(const std::string& name) const {
    if (const auto own = values_.find(name); own != values_.end()) return own->second;
    return outer_ == nullptr ? std::nullopt : outer_->find(name);
  }

 private:
  const Scope* outer_;
  std::map<std::string, graph::ValueId> values_;
};

}  // namespace tuner
