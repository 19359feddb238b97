// Graphs that grow: the work of passes, partition, schedules and the memory plan grows with the number of
// nodes, also where values have several readers. Counted are the nodes of expressions and of groups, and the
// CPU time of the thread, the least of five, over a 16-fold growth.
#include <gtest/gtest.h>

#include <time.h>

#include <functional>
#include <set>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/target.h"
#include "templates/cpu/cpu_templates.h"
#include "tests/compiler_core/graph_writer.h"
#include "tests/support/keep_memory.h"
#include "tuner/model/memory_plan.h"
#include "tuner/model/model_file.h"
#include "tuner/model/partition.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::GraphWriter;

Target target() { return *parse_target("llvm -mcpu=haswell -threads=1"); }

// Adds one link of a chain.
using Link = std::function<ValueId(GraphWriter&, ValueId)>;

Graph chain(int links, const Link& link) {
  GraphWriter g;
  ValueId v = g.input({1, 16});
  for (int i = 0; i < links; ++i) v = link(g, v);
  return g.finish({g.add("Neg", {v})});
}

Link one(const std::string& op) {
  return [op](GraphWriter& g, ValueId v) { return g.add(op, {v}); };
}
ValueId doubled(GraphWriter& g, ValueId v) { return g.add("Add", {v, v}); }
ValueId squared(GraphWriter& g, ValueId v) { return g.add("Mul", {v, v}); }
ValueId diamond(GraphWriter& g, ValueId v) { return g.add("Mul", {g.add("Relu", {v}), g.add("Neg", {v})}); }
ValueId shared_later(GraphWriter& g, ValueId v) {
  const ValueId a = g.add("Abs", {v}), b = g.add("Sub", {a, v});
  return g.add("Max", {g.add("Add", {a, b}), b});
}
ValueId normalised(GraphWriter& g, ValueId v) {
  return g.add("Add", {g.add("Softmax", {v}, {{"axis", int64_t{1}}}), v});
}

const std::vector<std::pair<std::string, Link>> kChains = {
    {"Relu", one("Relu")},       {"Elu", one("Elu")},          {"Mish", one("Mish")},
    {"Softmax", one("Softmax")}, {"Gelu", one("Gelu")},        {"doubled", doubled},
    {"squared", squared},        {"diamond", diamond},         {"shared later", shared_later},
    {"normalised", normalised},  {"Identity", one("Identity")}};

// Passes, partition and memory plan, as tuner compile does them.
ModelSteps planned(Graph graph) {
  EXPECT_TRUE(optimize(graph, model_evaluator()).is_ok());
  auto steps = partition(std::move(graph));
  EXPECT_TRUE(steps.is_ok()) << steps.message();
  plan_memory(*steps, target(), "");
  return *std::move(steps);
}

// Nodes of all expressions that the default schedules of the model's distinct fused groups hold.
int64_t scheduled_nodes(const ModelSteps& steps) {
  int64_t nodes = 0;
  std::set<std::string> seen;
  for (const ModelStep& step : steps.steps) {
    if (step.workload.get_if<ProgramWorkload>() == nullptr || !seen.insert(step.workload.key()).second)
      continue;
    const auto instance = program_cpu().apply(step.workload, target());
    EXPECT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    const auto program = (*instance)->instantiate(space.at(space.default_index()));
    EXPECT_TRUE(program.is_ok()) << program.message();
    visit(program->body, [&](const Stmt& s) { visit_exprs(s, [&](const Expr&) { ++nodes; }); });
  }
  return nodes;
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
double least_seconds(int links, const Link& link) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    Graph graph = chain(links, link);
    const double begin = thread_seconds();
    planned(std::move(graph));
    least = std::min(least, thread_seconds() - begin);
  }
  return least;
}

TEST(ModelGrowth, GroupsAndTheirExpressionsStaySmall) {
  for (const auto& [name, link] : kChains) {
    const ModelSteps steps = planned(chain(200, link));
    for (const ModelStep& step : steps.steps) EXPECT_LE(step.nodes.size(), 64U) << name;
    // Some thousand nodes for each of the few distinct groups, where doubling would make 2^64.
    EXPECT_LE(scheduled_nodes(steps), 1'000'000) << name;
  }
}

TEST(ModelGrowth, PassesPartitionAndPlanAreLinear) {
  keep_memory();
  for (const auto& [name, link] : kChains) {
    const double small = least_seconds(250, link), large = least_seconds(4000, link);
    EXPECT_LE(large, 24 * small) << name << ": " << small << " s for 250 links, " << large << " s for 4000";
  }
}

// 200 values that live side by side, each read at the end: offsets are those of before, one beside the other.
TEST(ModelGrowth, ValuesThatLiveTogetherLieSideBySide) {
  GraphWriter g;
  const ValueId x = g.input({1, 16});
  std::vector<ValueId> parts;
  for (int i = 0; i < 200; ++i) parts.push_back(g.add("Softmax", {g.add("Add", {x, g.number(i)})}));
  ValueId all = parts[0];
  for (const ValueId part : parts) all = g.add("Softmax", {g.add("Add", {all, part})});
  Graph graph = g.finish({all});
  ASSERT_TRUE(optimize(graph, model_evaluator()).is_ok());
  auto steps = partition(std::move(graph));
  ASSERT_TRUE(steps.is_ok()) << steps.message();
  const MemoryPlan plan = plan_memory(*steps, target(), "");
  EXPECT_GE(plan.arena_bytes, plan.largest_live_bytes);
  EXPECT_LE(plan.arena_bytes, plan.largest_live_bytes + plan.largest_live_bytes / 10);
}

}  // namespace
}  // namespace tuner
