// recurrence_cpu: the steps of random LSTM, GRU and RNN. Every config computes what the math says, in the
// interpreter and as machine code; and the loops that come out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/graph/fragment.h"
#include "compiler_core/graph/passes.h"
#include "templates/cpu/cpu_templates.h"
#include "tests/compiler_core/recurrent_loops.h"
#include "tests/templates/compiled_template_check.h"

namespace tuner {
namespace {

using graph::testing::RecurrentCase;

// The steps of the case, as they are compiled in a model.
Workload steps_of(const RecurrentCase& c, const std::vector<size_t>& wanted) {
  auto made = graph::testing::graph_of(c, wanted);
  CHECK(made.is_ok()) << made.message();
  const Status optimized = graph::optimize(made->graph, interpret);
  CHECK(optimized.is_ok()) << optimized.message();
  const auto node = std::ranges::find(made->graph.nodes, "tuner.Recurrence", &graph::Node::op);
  CHECK(node != made->graph.nodes.end()) << to_text(made->graph);
  const std::vector<size_t> nodes{static_cast<size_t>(node - made->graph.nodes.begin())};
  const graph::ValueId result = node->outputs[0];
  auto fragment = graph::fragment_of(made->graph, nodes, result);
  CHECK(fragment.is_ok()) << fragment.message();
  const auto w = program_workload(std::move(fragment->graph));
  CHECK(w.is_ok()) << w.message();
  return *w;
}

TEST(RecurrenceCpu, RandomFormsAreRight) {
  for (const uint32_t seed : Seeds(8100, 60)) {
    const RecurrentCase c = graph::testing::random_recurrent(seed, /*most_hidden=*/21);
    const Workload w = steps_of(c, graph::testing::random_results(c, seed));
    SCOPED_TRACE(w.key());
    const Target target = seed % 2 == 0 ? cpu(512, 32) : cpu(256, 16, 2);
    ASSERT_NO_FATAL_FAILURE(expect_configs_right(recurrence_cpu(), w, target, 3, seed));
    ASSERT_NO_FATAL_FAILURE(expect_configs_right(program_cpu(), w, target, 2, seed));
    ASSERT_NO_FATAL_FAILURE(expect_code_right(recurrence_cpu(), w, host_target(1), 3, seed));
  }
}

// Sizes of real networks, where panels are whole.
TEST(RecurrenceCpu, WholePanelsAreRight) {
  for (const std::string op : {"LSTM", "GRU", "RNN"})
    for (const bool linear : {false, true}) {
      RecurrentCase c{.op = op, .steps = 3, .batch = 2, .inputs = 4, .hidden = 64};
      c.linear_before_reset = linear;
      c.x.assign(24, 0.5), c.w.assign(static_cast<size_t>(c.gates() * 64 * 4), 0.1);
      c.r.assign(static_cast<size_t>(c.gates() * 64 * 64), 0.1);
      const Workload w = steps_of(c, {0, 1});
      for (const Target& target : hosts(/*threads=*/1))
        ASSERT_NO_FATAL_FAILURE(expect_code_right(recurrence_cpu(), w, target, 4, 8200));
    }
}

// Nothing reads the h of the only step then.
TEST(RecurrenceCpu, ACellAloneIsRight) {
  for (const int64_t steps : {1, 2}) {
    RecurrentCase c{.steps = steps, .batch = 1, .inputs = 2, .hidden = 8};
    c.x.assign(static_cast<size_t>(2 * steps), 0.5), c.w.assign(64, 0.1), c.r.assign(256, 0.1);
    const Workload w = steps_of(c, {2});
    ASSERT_NO_FATAL_FAILURE(expect_code_right(recurrence_cpu(), w, host_target(1), 3, 8300));
  }
}

TEST(RecurrenceCpu, KeysReadBackWithTheirConstants) {
  RecurrentCase c{.steps = 2, .batch = 1, .inputs = 1, .hidden = 8};
  c.x.assign(2, 1), c.w.assign(32, 1), c.r.assign(256, 1);
  const Workload w = steps_of(c, {0});
  EXPECT_TRUE(w.has_constants());
  EXPECT_TRUE(w.is_constant("in1"));
  const auto again = workload_from_key(w.key());
  ASSERT_TRUE(again) << again.message();
  EXPECT_EQ(again->key(), w.key());
  EXPECT_TRUE(again->is_constant("in1"));
  c.constant_weights = false;
  EXPECT_FALSE(steps_of(c, {0}).has_constants());
}

TEST(RecurrenceCpu, DeclinesOtherPrograms) {
  const auto w = program_from_text("in=float32[4] Relu(0)");
  ASSERT_TRUE(w) << w.message();
  const Support support = recurrence_cpu().supports(Workload(*w), cpu(256, 16));
  EXPECT_FALSE(support.yes);
  EXPECT_THAT(support.reason, ::testing::HasSubstr("needs the steps of an LSTM, GRU or RNN"));
}

}  // namespace
}  // namespace tuner
