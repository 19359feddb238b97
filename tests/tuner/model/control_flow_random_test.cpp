// Random models of If, Loop and Scan: read, rewritten by all passes, and run, they compute what an oracle
// finds that runs branches and bodies as the standard tells it.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/random_seed.h"
#include "tests/tuner/model/control_flow_oracle.h"
#include "tests/tuner/model/random_control_flow.h"
#include "tuner/model/read_model.h"

namespace tuner {
namespace {

using testing::OracleTensor;
using testing::RandomControlFlow;

std::vector<double> random_numbers(std::mt19937& random, int64_t elements) {
  std::uniform_real_distribution<double> numbers(-1, 1);
  std::vector<double> made(static_cast<size_t>(elements));
  for (double& x : made) x = numbers(random);
  return made;
}

// Empty: nothing is wrong.
std::string difference(const std::vector<OracleTensor>& expected, const graph::Graph& graph,
                       const std::vector<std::vector<double>>& found) {
  constexpr double kAllowed = 1e-6;  // the passes round constants to float32
  for (size_t o = 0; o < expected.size(); ++o) {
    if (graph[graph.outputs[o]].type.shape != expected[o].shape)
      return str("output ", o, " is ", to_text(graph[graph.outputs[o]].type));
    for (size_t e = 0; e < expected[o].numbers.size(); ++e)
      if (!(std::fabs(found[o][e] - expected[o].numbers[e]) <= kAllowed * (1 + std::fabs(found[o][e]))))
        return str("output ", o, ", element ", e, " is ", found[o][e], ", expected ", expected[o].numbers[e]);
  }
  return "";
}

TEST(ControlFlowRandom, ModelsComputeWhatTheirControlFlowSays) {
  std::map<std::string, int> all;
  Seeds seeds(5601, 200);
  for (const uint32_t seed : seeds) {
    const RandomControlFlow made(seed);
    for (const auto& [what, count] : made.counts()) all[what] += count;
    const auto graph = read_model(made.model().SerializeAsString(), nullptr, {}, interpret);
    ASSERT_TRUE(graph.is_ok()) << graph.message();
    ASSERT_TRUE(check(*graph)) << check(*graph).message();
    for (const graph::Node& node : graph->nodes) EXPECT_NE(node.op, "Nonsense");
    graph::Graph after = *graph;
    ASSERT_TRUE(optimize(after, interpret));
    std::mt19937 random(seed);
    for (int inputs = 0; inputs < 3; ++inputs) {  // conditions on data take both ways
      const auto x = random_numbers(random, made.rows() * made.columns());
      const auto z = random_numbers(random, made.rows() * made.columns());
      const std::vector<int64_t> shape{made.rows(), made.columns()};
      const auto expected =
          testing::run_control_flow(made.model().graph(), {{"x", {shape, x}}, {"z", {shape, z}}});
      for (const graph::Graph& each : {*graph, after}) {
        const auto found = run_reference(each, {x, z}, interpret);
        ASSERT_TRUE(found.is_ok()) << found.message();
        EXPECT_EQ(difference(expected, each, *found), "") << each.nodes.size() << " nodes";
      }
    }
  }
  for (const auto& [what, count] : all) std::printf("%5d %s\n", count, what.c_str());
  if (seeds.all()) {
    for (const char* what : {"If on a constant", "If on data", "Loop", "Scan"})
      EXPECT_GT(all[what], 100) << what;
  }
}

// Bytes changed at random, in graphs within graphs: nothing crashes, and refusals are one line.
TEST(ControlFlowRandom, DamagedModelsAreRefusedOrRead) {
  int refused = 0, read = 0;
  Seeds seeds(5602, 2000);
  for (const uint32_t seed : seeds) {
    std::mt19937 random(seed);
    std::string damaged = RandomControlFlow(seed % 64).model().SerializeAsString();
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % damaged.size();
      if (random() % 4 == 0)
        damaged.erase(at, 1 + random() % 3);
      else
        damaged[at] = static_cast<char>(random() % 2 == 0 ? random() : random() % 16);
    }
    const auto graph = read_model(damaged, nullptr, {}, interpret);
    if (graph) {
      EXPECT_TRUE(check(*graph)) << check(*graph).message();
    }
    EXPECT_EQ(graph.message().find('\n'), std::string::npos) << graph.message();
    ++(graph ? read : refused);
  }
  if (seeds.all()) {
    EXPECT_GT(refused, 700);
    EXPECT_GT(read, 100);
  }
}

}  // namespace
}  // namespace tuner
