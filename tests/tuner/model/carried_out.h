// Carries out a plan step by step, in one piece of memory as large as it says: what a library of it would
// compute, without a compiler.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/tuner/plan_check.h"
#include "tuner/model/memory_plan.h"
#include "tuner/model/model_file.h"

namespace tuner::testing {

using Numbers = std::vector<double>;

// Elements as they lie in memory.
inline void store(std::byte* to, DType dtype, const Numbers& numbers) {
  const graph::Constant elements = graph::Constant::of(numbers, dtype);
  std::memcpy(to, elements.bytes().data(), elements.bytes().size());
}
inline Numbers fetch(const std::byte* from, const graph::TensorType& type) {
  return graph::Constant({from, static_cast<size_t>(type.bytes())}, nullptr).numbers(type.dtype);
}

// Memory as a context of the model has it; what nobody wrote is NaN.
class PlannedMemory {
 public:
  using ValueId = graph::ValueId;

  PlannedMemory(const ModelSteps& model, const MemoryPlan& plan, const std::vector<Numbers>& inputs)
      : model_(model), plan_(plan), arena_(static_cast<size_t>(plan.arena_bytes), std::byte{0xff}) {
    for (const ValueId v : model.graph.inputs) {
      inputs_.emplace_back(static_cast<size_t>(model.graph[v].type.bytes()));
      store(inputs_.back().data(), model.graph[v].type.dtype, inputs[inputs_.size() - 1]);
    }
    for (const ValueId v : model.graph.outputs)
      outputs_.emplace_back(static_cast<size_t>(model.graph[v].type.bytes()));
  }
  const std::byte* at(ValueId v) const { return const_cast<PlannedMemory*>(this)->at(v); }
  std::byte* at(ValueId v) {
    const ValuePlace& place = plan_.values[v];
    switch (place.where) {
      case ValuePlace::Where::kArena:
        CHECK(place.offset + model_.graph[v].type.bytes() <= plan_.arena_bytes);
        return arena_.data() + place.offset;
      case ValuePlace::Where::kInput:
        return inputs_[place.index].data() + place.offset;
      case ValuePlace::Where::kOutput:
        CHECK(place.offset + model_.graph[v].type.bytes() <= std::ssize(outputs_[place.index]));
        return outputs_[place.index].data() + place.offset;
      case ValuePlace::Where::kConstant:
        // Nobody writes there.
        return const_cast<std::byte*>(model_.graph[place.index].constant->bytes().data()) + place.offset;
      case ValuePlace::Where::kNowhere:
        break;
    }
    CHECK(false) << "value " << v << " has no place";
    return nullptr;
  }
  Numbers numbers(ValueId v) const { return fetch(at(v), model_.graph[v].type); }
  Numbers output(size_t i) const {
    return fetch(outputs_[i].data(), model_.graph[model_.graph.outputs[i]].type);
  }
  bool hold(const std::vector<StepGuard>& guards) const {
    return std::ranges::all_of(
        guards, [&](const StepGuard& g) { return (*at(g.condition) != std::byte{0}) == g.wanted; });
  }

 private:
  const ModelSteps& model_;
  const MemoryPlan& plan_;
  std::vector<std::byte> arena_;
  std::vector<std::vector<std::byte>> inputs_, outputs_;
};

// The outputs. A step's result is NaN before its operands are fetched: kernels write while they read. Steps
// whose guards do not hold are left out; `ran` gets the numbers of the others.
inline std::vector<Numbers> carry_out(const ModelSteps& model, const MemoryPlan& plan,
                                      const std::vector<Numbers>& inputs,
                                      std::vector<size_t>* ran = nullptr) {
  if (const std::string fault = plan_fault(model, plan); !fault.empty()) {
    ADD_FAILURE() << fault;
    return {};
  }
  PlannedMemory memory(model, plan, inputs);
  const graph::Evaluator evaluate = model_evaluator();
  for (const ModelStep& step : model.steps) {
    if (!memory.hold(step.guards)) continue;
    if (ran != nullptr) ran->push_back(static_cast<size_t>(&step - model.steps.data()));
    const Program program = step.workload.compute();
    const bool adds = program.args.back()->role == BufferRole::kInOut;
    if (!adds)
      std::memset(memory.at(step.writes), 0xff, static_cast<size_t>(model.graph[step.writes].type.bytes()));
    std::vector<Numbers> args;
    for (const graph::ValueId v : step.reads) args.push_back(memory.numbers(v));
    if (!adds) args.emplace_back();
    EXPECT_EQ(args.size(), program.args.size()) << step.workload.key();
    const Status done = evaluate(program, args);
    EXPECT_TRUE(done) << done.message();
    store(memory.at(step.writes), model.graph[step.writes].type.dtype, args.back());
  }
  std::vector<Numbers> outputs;
  for (size_t i = 0; i < model.graph.outputs.size(); ++i) outputs.push_back(memory.output(i));
  return outputs;
}

}  // namespace tuner::testing
