// Holds a memory plan against the graph, without the planner's lifetimes: memory remembers which step wrote
// each block last.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tuner/model/memory_plan.h"

namespace tuner::testing {

// Blocks of the arena and of the outputs while the steps run. A block is kArenaAlignment bytes, or what is
// left of a value.
class PlanCheck {
 public:
  PlanCheck(const ModelSteps& model, const MemoryPlan& plan) : model_(model), plan_(plan) {
    for (const ModelStep& step : model.steps) written_.push_back(step.writes);
  }

  // The first fault: bytes behind the end, a step that writes over what it reads or where nobody may write, a
  // value that is read, or returned, and is not there any more. Empty: none.
  std::string fault() {
    for (size_t s = 0; s < model_.steps.size(); ++s) {
      const ModelStep& step = model_.steps[s];
      for (const ValueId v : step.reads)
        if (!is_there(v)) return step.name + " reads " + name(v) + ", which lies elsewhere or is overwritten";
      for (const StepGuard& guard : step.guards)
        if (!is_there(guard.condition))
          return step.name + " is guarded by " + name(guard.condition) + ", which is not there";
      const auto made = step.workload.compute();
      const bool adds = made.args.back()->role == BufferRole::kInOut;
      for (size_t r = 0; r < step.reads.size(); ++r)
        if (!(adds && r + 1 == step.reads.size()) && overlap(step.reads[r], step.writes))
          return step.name + " writes over " + name(step.reads[r]) + ", which it reads";
      const std::string wrong = write(step.writes);
      if (!wrong.empty()) return step.name + ": " + wrong;
    }
    for (size_t o = 0; o < model_.graph.outputs.size(); ++o) {
      const ValueId v = model_.graph.outputs[o];
      const ValuePlace& place = plan_.values[v];
      if (place.where != ValuePlace::Where::kOutput || place.index != o || place.offset != 0)
        return "output " + name(v) + " lies elsewhere";
      if (!is_there(v)) return "output " + name(v) + " is overwritten";
    }
    return "";
  }

 private:
  using ValueId = graph::ValueId;
  using Where = ValuePlace::Where;
  using Block = std::pair<ValueId, int64_t>;         // which value's bytes, from which on
  using Place = std::tuple<Where, size_t, int64_t>;  // in which memory, from which byte on

  std::string name(ValueId v) const { return model_.graph[v].name; }
  int64_t bytes(ValueId v) const { return model_.graph[v].type.bytes(); }

  // What stands in a value, as the graph says: its own bytes where a step writes it; those of its source, or
  // of the parts that a Concat joins.
  std::vector<Block> content(ValueId v) const {
    std::vector<Block> out;
    if (std::ranges::count(written_, v) > 0) {
      for (int64_t at = 0; at < bytes(v); at += kArenaAlignment) out.emplace_back(v, at);
      return out;
    }
    if (const ValueAlias& alias = model_.aliases[v]; alias.source != v) {
      const std::vector<Block> whole = content(alias.source);
      for (int64_t at = 0; at < bytes(v); at += kArenaAlignment)
        out.push_back(whole.at(static_cast<size_t>((alias.offset + at) / kArenaAlignment)));
      return out;
    }
    for (const graph::Node& node : model_.graph.nodes)
      if (node.op == "Concat" && node.outputs[0] == v)
        for (const ValueId in : node.inputs) {
          const std::vector<Block> part = content(in);
          out.insert(out.end(), part.begin(), part.end());
        }
    return out;
  }

  Place place(ValueId v, int64_t at) const {
    const ValuePlace& p = plan_.values[v];
    return {p.where, p.where == Where::kArena ? 0 : p.index, p.offset + at};
  }
  bool is_given(ValueId v) const {
    return plan_.values[v].where == Where::kInput || plan_.values[v].where == Where::kConstant;
  }

  bool is_there(ValueId v) const {
    if (is_given(v)) return true;
    const std::vector<Block> blocks = content(v);
    if (blocks.empty()) return false;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const auto there = memory_.find(place(v, static_cast<int64_t>(b) * kArenaAlignment));
      if (there == memory_.end() || there->second != blocks[b]) return false;
    }
    return true;
  }

  bool overlap(ValueId a, ValueId b) const {
    const auto [where, index, offset] = place(a, 0);
    const auto [other_where, other_index, other_offset] = place(b, 0);
    return where == other_where && index == other_index && offset < other_offset + bytes(b) &&
           other_offset < offset + bytes(a);
  }

  std::string write(ValueId v) {
    const ValuePlace& p = plan_.values[v];
    int64_t end = 0;
    if (p.where == Where::kArena) end = plan_.arena_bytes;
    if (p.where == Where::kOutput) end = bytes(model_.graph.outputs.at(p.index));
    if (end == 0) return "nobody may write " + name(v);
    if (p.offset % kArenaAlignment != 0) return name(v) + " is not aligned";
    if (p.offset + bytes(v) > end) return name(v) + " reaches behind the end";
    for (int64_t at = 0; at < bytes(v); at += kArenaAlignment) memory_[place(v, at)] = {v, at};
    return "";
  }

  const ModelSteps& model_;
  const MemoryPlan& plan_;
  std::vector<ValueId> written_;
  std::map<Place, Block> memory_;
};

inline std::string plan_fault(const ModelSteps& model, const MemoryPlan& plan) {
  return PlanCheck(model, plan).fault();
}

}  // namespace tuner::testing
