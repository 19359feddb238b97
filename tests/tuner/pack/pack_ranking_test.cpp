// What the machine code of a candidate says takes the place of an estimate below it, and so changes the
// order: with a back end of its own, whose estimates and floors are known.
#include <gtest/gtest.h>

#include <map>

#include "compiler_core/backend.h"
#include "compiler_core/ir/visitor.h"
#include "templates/registry/registry.h"
#include "tuner/pack/pack_builder.h"
#include "tuner/pack/pack_draws.h"

namespace tuner {
namespace {

class ToyFamily final : public TargetFamily {
 public:
  std::string_view word() const override { return "toy"; }
  std::string_view usage() const override { return "\"toy\""; }
  std::span<const std::string_view> options() const override { return {}; }
  Status set_option(std::string_view /*key*/, std::string_view /*value*/, Target& /*t*/) const override {
    return invalid_argument("target: a toy has no options");
  }
  Status complete(Target& /*t*/) const override { return Status::ok(); }
  std::string name(const Target& /*t*/) const override { return "toy"; }
  std::string_view toolchain_word() const override { return "toymaker"; }
  bool near(const Target& /*a*/, const Target& /*b*/) const override { return true; }
  bool same_processor(const Target& /*a*/, const Target& /*b*/) const override { return true; }
  std::string difference(const Target& /*asked*/, const Target& /*there*/) const override { return {}; }
};
const ToyFamily toy;
const RegisterTargetFamily toy_is_known(toy);

// Steps of a row of the kernel: what the template's knob says.
int64_t steps_of(const Program& program) {
  int64_t steps = 0;
  visit(program.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor) steps = s->extent;
  });
  return steps;
}

// Estimates say that fewer steps are faster. The machine code says that one step takes longer than they
// think, and of eight steps nothing new.
class ToyBackend final : public Backend {
 public:
  const TargetFamily& family() const override { return toy; }
  Status available() const override { return Status::ok(); }
  std::string toolchain() const override { return "toymaker 1"; }
  std::vector<std::string> targets_of_host(std::string_view /*device*/) const override { return {}; }
  std::string hardware_here(const Target& /*target*/) const override { return {}; }
  Status runs_here(const Target& /*target*/) const override { return invalid_argument("there is no toy"); }
  Result<Artifact> compile(const Program& program, const Target& /*target*/,
                           const std::string& /*cache*/) const override {
    Artifact artifact;
    artifact.binary = std::to_string(steps_of(program));
    return artifact;
  }
  std::span<const CodeForm> forms() const override { return {}; }
  Result<std::string> text(std::string_view /*form*/, const Program& /*program*/,
                           const Target& /*target*/) const override {
    return failed("no texts");
  }
  Result<ShippedKernel> ship(const Program& /*program*/, const Target& /*target*/,
                             const ShipRequest& /*request*/) const override {
    return failed("ships nothing");
  }
  std::span<const std::string_view> identifier_endings() const override { return {}; }
  bool estimates() const override { return true; }
  Result<double> estimate_ns(const Program& program, const Target& /*target*/) const override {
    return 100.0 * static_cast<double>(steps_of(program));
  }
  double least_ns(const Program& /*program*/, const Target& /*target*/,
                  const Artifact& artifact) const override {
    return artifact.binary == "1" ? 500 : artifact.binary == "8" ? 10 : 0;
  }
};
const ToyBackend toy_backend;
const RegisterBackend toy_compiles(toy_backend);

struct Knobs {
  ChoiceKnob steps;
};

class TransposeToy final : public ScheduleTemplate<TransposeWorkload, Knobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "transpose_toy"; }
  int version() const override { return 1; }
  Support supports(const TransposeWorkload& /*w*/, const Target& t) const override {
    return t.family == &toy ? supported() : declined("needs a toy");
  }
  Knobs declare(ConfigSpace& space, const TransposeWorkload& /*w*/, const Target& /*t*/) const override {
    return {.steps = space.choice("steps", {1, 2, 4, 8}).try_first(8)};
  }
  Program compute(const TransposeWorkload& w) const override { return Workload(w).compute(); }
  void schedule(Schedule& s, const TransposeWorkload& /*w*/, const Target& /*t*/, const Knobs& k,
                const Config& c) const override {
    const auto [row, column] = s.axes<2>(s.tensor("out"));
    s.split(column, c[k.steps]);
  }
};
const TransposeToy transpose_toy;
const RegisterTemplate toy_is_served(transpose_toy);

TEST(PackRanking, AFloorAboveTheEstimateTakesItsPlaceAndChangesTheOrder) {
  const Result<CliTask> task =
      task_from_keys(Workload(TransposeWorkload{.rows = 8, .columns = 16}).key(), "toy");
  ASSERT_TRUE(task.is_ok()) << task.message();
  PackCounts counts;
  const Result<PackTask> packed = pack_task(*task, {.candidates = 4, .threads = 1}, nullptr, counts);
  ASSERT_TRUE(packed.is_ok()) << packed.message();
  std::map<std::string, std::pair<double, int>> expected = {{"steps=1", {500, 2}},
                                                            {"steps=2", {200, 0}},
                                                            {"steps=4", {400, 1}},
                                                            {"steps=8", {800, 3}}},
                                                found;
  for (const PackCandidate& c : packed->candidates) found[c.config] = {c.estimated_ns, c.predicted_rank};
  EXPECT_EQ(found, expected);
}

// Ten draws, the estimate of each its place from behind; two of them known, one a default.
TEST(CompileOrder, DefaultsKnownOnesThenByEstimateWithAShareOfTheDraws) {
  const auto order = [](int random_percent) {
    std::vector<Draw> draws(10);
    for (size_t i = 0; i < draws.size(); ++i) draws[i].index = i, draws[i].estimated_ns = 100 - double(i);
    draws[3].picked = draws[8].picked = PackPick::kKnown;
    draws[5].picked = PackPick::kDefault;
    std::string text;
    for (const Draw& d : compile_order(draws, random_percent))
      text += str(d.index, d.picked == PackPick::kDefault    ? "D"
                           : d.picked == PackPick::kKnown    ? "K"
                           : d.picked == PackPick::kEstimate ? "E"
                                                             : "R");
    return text;
  };
  EXPECT_EQ(order(0), "5D3K8K9E7E6E4E2E1E0E");
  EXPECT_EQ(order(100), "5D3K8K0R1R2R4R6R7R9R");
  EXPECT_EQ(order(50), "5D3K8K9E0R7E1R6E2R4E");
}

TEST(AlgorithmOfPack, IsTheOneThatIsNamedElseTheDirectSums) {
  CliTask task;
  EXPECT_EQ(algorithm_of_pack(task), "direct");
  task.algorithms = "tf32x3";
  EXPECT_EQ(algorithm_of_pack(task), "tf32x3");
  task.algorithms = "tf32,tf32x3";
  EXPECT_EQ(algorithm_of_pack(task), "direct");
}

}  // namespace
}  // namespace tuner
