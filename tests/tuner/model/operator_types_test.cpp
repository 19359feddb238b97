// Every operator of the table, in every type that it takes, as `tuner compile` cuts it into steps and
// compiles them with default configs: machine code for AVX2, AVX-512 and AArch64 (under qemu) gives what the
// reference computes operator by operator in double precision. Each gets a random shape, another one for each
// instruction set; 40 in the long suite (TUNER_TEST_ROUNDS). As that takes long, the table is cut into parts
// that --gtest_filter chooses: *Avx2_3.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "compiler_core/backend.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/reference.h"
#include "templates/schedule_template.h"
#include "tests/compiler_core/kernel_testing.h"
#include "tests/random_seed.h"
#include "tests/templates/aarch64_run.h"
#include "tests/tuner/model/random_node.h"
#include "tuner/model/partition.h"

namespace tuner {
namespace {

using Numbers = std::vector<double>;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8,
                            DType::kUInt8,   DType::kInt16,   DType::kUInt16,   DType::kInt32,
                            DType::kUInt32,  DType::kInt64,   DType::kUInt64,   DType::kBool};

double unit_of(DType t) { return t == DType::kFloat16 ? 0x1p-11 : t == DType::kBFloat16 ? 0x1p-8 : 0x1p-24; }

// What a right answer may be off: elements near the largest one by some roundings, of sums and functions.
bool is_close(double found, double expected, double largest, DType dtype, bool exact) {
  if (found == expected || (std::isnan(found) && std::isnan(expected))) return true;
  if (exact) return false;
  if (std::isinf(found) && dtype == DType::kFloat16 && std::fabs(expected) > 65504) return true;
  const double relative = 1e-4 + (unit_of(dtype) > 0x1p-20 ? 8 * unit_of(dtype) : 0);
  return std::fabs(found - expected) <= relative * std::max(std::fabs(expected), largest) + 1e-7;
}

// The default config of the first template that serves the step.
Result<Program> default_program(const Workload& workload, const Target& target) {
  for (const AnyTemplate* t : all_templates()) {
    if (!t->supports(workload, target).yes) continue;
    ASSIGN_OR_RETURN(const auto instance, t->apply(workload, target));
    return instance->instantiate(instance->space().at(instance->space().default_index()));
  }
  return failed("no template serves ", workload.key());
}

// A node in steps, with the numbers of its values.
class NodeSteps {
 public:
  NodeSteps(const graph::Graph& graph, uint32_t seed) : whole_(graph) {
    std::mt19937 random(seed);
    for (const graph::ValueId v : graph.inputs) {
      Numbers numbers;
      for (int64_t k = graph[v].type.elements(); k > 0; --k)
        numbers.push_back(number(random, graph[v].type.dtype));
      inputs_.push_back(graph::Constant::of(numbers, graph[v].type.dtype).numbers(graph[v].type.dtype));
    }
  }
  Status prepare() {
    ASSIGN_OR_RETURN(expected_, run_reference(whole_, inputs_, interpret));
    graph::Graph graph = whole_;
    RETURN_IF_ERROR(optimize(graph, interpret));
    ASSIGN_OR_RETURN(steps_, partition(std::move(graph)));
    for (size_t k = 0; k < inputs_.size(); ++k) values_[steps_.graph.inputs[k]] = inputs_[k];
    return Status::ok();
  }
  const ModelSteps& steps() const { return steps_; }

  // Values that the step reads, in its order, and an empty one for its result.
  std::vector<Numbers> args(const ModelStep& step) const {
    std::vector<Numbers> args;
    for (const graph::ValueId v : step.reads) args.push_back(numbers(v));
    args.resize(step.workload.compute().args.size());
    return args;
  }
  void set(graph::ValueId v, Numbers numbers) { values_[v] = std::move(numbers); }

  // What is wrong with the outputs; empty: nothing.
  std::string difference() const {
    for (size_t o = 0; o < expected_.size(); ++o) {
      const graph::TensorType& type = whole_[whole_.outputs[o]].type;
      const Numbers found = numbers(steps_.graph.outputs[o]);
      if (found.size() != expected_[o].size()) return str("output ", o, " has ", found.size(), " elements");
      double largest = 0;
      for (const double x : expected_[o])
        largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : largest;
      // Bytes that floats were rounded to may be one off; other integers are exact.
      const bool exact = !is_float(type.dtype);
      for (size_t e = 0; e < found.size(); ++e)
        if (!is_close(found[e], expected_[o][e], largest, widest(type.dtype), exact) &&
            !is_tie(found[e], expected_[o][e], type.dtype))
          return str("output ", o, ", element ", e, " is ", found[e], ", expected ", expected_[o][e]);
    }
    return "";
  }

 private:
  // Products of integers stay within the type: what else becomes of them is no promise. Casts to integers
  // get numbers of all sizes, and some that are none.
  double number(std::mt19937& random, DType dtype) const {
    const double x = testing::random_number(random, dtype);
    const std::string op = whole_.nodes.empty() ? "" : whole_.nodes[0].op;
    if (op == "ReduceProd" && !is_float(dtype)) return std::fmod(std::fabs(x), 4);
    if (op != "Cast" || !is_float(dtype) || is_float(whole_[whole_.outputs[0]].type.dtype)) return x;
    const auto size = std::uniform_int_distribution<int>(0, 80)(random);
    return size == 80 ? std::nan("") : std::ldexp(x, size);
  }
  // Of the types in the node, the one with the fewest digits: results are as good as what they are made of.
  DType widest(DType result) const {
    DType type = result;
    for (const graph::ValueId v : whole_.inputs)
      if (is_float(whole_[v].type.dtype) && unit_of(whole_[v].type.dtype) > unit_of(type))
        type = whole_[v].type.dtype;
    return type;
  }
  bool is_tie(double found, double expected, DType dtype) const {
    const std::string& op = whole_.nodes[0].op;
    return (dtype == DType::kInt8 || dtype == DType::kUInt8) &&
           (op.find("QLinear") != std::string::npos || op.find("Quantize") != std::string::npos ||
            op == "com.microsoft.QGemm") &&
           std::fabs(found - expected) <= 1;
  }
  Numbers numbers(graph::ValueId v) const {
    const graph::Value& value = steps_.graph[v];
    if (value.constant) return value.constant->numbers(value.type.dtype);
    if (const auto known = values_.find(v); known != values_.end()) return known->second;
    const ValueAlias& alias = steps_.aliases[v];
    const Numbers source = numbers(alias.source);
    const auto first = source.begin() + alias.offset / dtype_bytes(value.type.dtype);
    return {first, first + value.type.elements()};
  }

  graph::Graph whole_;
  std::vector<Numbers> inputs_, expected_;
  ModelSteps steps_;
  std::map<graph::ValueId, Numbers> values_;
};

// Runs all steps as machine code of this host.
std::string run_here(NodeSteps& node, const Target& target) {
  for (const ModelStep& step : node.steps().steps) {
    const auto program = default_program(step.workload, target);
    if (!program) return program.message();
    std::vector<Numbers> args = node.args(step);
    if (const Status ran = testing::run_compiled(*program, args, target, 1); !ran) return ran.message();
    node.set(step.writes, args.back());
  }
  return node.difference();
}

// The program under qemu has no libm.
bool calls_library(std::string_view op) {
  static const std::set<std::string_view> kOps = {"Sin",  "Cos",   "Tan",   "Asin",  "Acos", "Atan", "Sinh",
                                                  "Cosh", "Asinh", "Acosh", "Atanh", "Pow",  "LRN"};
  return kOps.contains(op);
}

struct Cpu {
  const char *name, *target;
  uint32_t seed;  // of the first shape
};
constexpr Cpu kCpus[] = {{"Avx2", "llvm -mcpu=haswell", 97},
                         {"Avx512", "llvm -mcpu=skylake-avx512", 397},
                         {"Aarch64", "llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu", 697}};
void PrintTo(const Cpu& cpu, std::ostream* out) { *out << cpu.target; }

// The drawn node of the type, or why it takes none.
testing::RandomNode drawn_node(const graph::Operator& row, DType dtype, uint32_t seed) {
  std::mt19937 random(seed + static_cast<uint32_t>(dtype));
  return testing::random_node(std::string(row.name), dtype, random);
}

constexpr size_t kParts = 4;
class OperatorTypes : public ::testing::TestWithParam<std::tuple<Cpu, size_t>> {
 protected:
  struct Waiting {
    NodeSteps node;
    std::string what;
  };

  // Runs the node here, or puts it to those that run under qemu together.
  void run(NodeSteps node, const std::string& op, const std::string& what) {
    if (target_.is_x86()) {
      EXPECT_EQ(run_here(node, target_), "") << what;
    } else if (node.steps().steps.size() == 1 && !calls_library(op)) {
      const ModelStep& step = node.steps().steps[0];
      const auto program = default_program(step.workload, target_);
      ASSERT_TRUE(program.is_ok()) << what << ": " << program.message();
      const Status added = batch_->add(*program, step.workload.compute(), node.args(step), {}, what);
      ASSERT_TRUE(added.is_ok()) << what << ": " << added.message();
      waiting_.push_back({std::move(node), what});
      constexpr size_t kTogether = 200;
      if (waiting_.size() == kTogether) run_waiting();
    }
  }
  void run_waiting() {
    if (waiting_.empty()) return;
    const auto outputs = batch_->run();
    ASSERT_TRUE(outputs.is_ok()) << outputs.message();
    for (size_t k = 0; k < waiting_.size(); ++k) {
      NodeSteps& node = waiting_[k].node;
      node.set(node.steps().steps[0].writes, (*outputs)[k]);
      EXPECT_EQ(node.difference(), "") << waiting_[k].what;
    }
    waiting_.clear();
    batch_.emplace(target_);
  }

  const Cpu cpu_ = std::get<0>(GetParam());
  const Target target_ = *parse_target(cpu_.target);
  std::optional<Aarch64Batch> batch_{target_};
  std::vector<Waiting> waiting_;
};

TEST_P(OperatorTypes, AreRightOnEveryShape) {
  if (const Status tools = target_.is_x86() ? runs_here(target_) : aarch64_tools(); !tools)
    GTEST_SKIP() << tools.message();
  const uint32_t seed = first_seed(cpu_.seed), rounds = wanted_rounds(1);
  const std::vector<const graph::Operator*> rows = graph::all_operators();
  size_t pairs = 0;
  for (size_t at = std::get<1>(GetParam()); at < rows.size(); at += kParts) {
    for (const DType dtype : kTypes)
      for (uint32_t round = 0; round < rounds; ++round) {
        const std::string what = str(rows[at]->name, " of ", dtype, ", seed ", seed, ", round ", round);
        SCOPED_TRACE(what);
        const testing::RandomNode drawn = drawn_node(*rows[at], dtype, seed + round * 1009);
        if (!drawn.graph) break;
        pairs += round == 0 ? 1 : 0;
        if (drawn.graph->nodes.empty()) continue;  // its value follows from types alone
        NodeSteps node(*drawn.graph, seed + round);
        const Status prepared = node.prepare();
        ASSERT_TRUE(prepared.is_ok()) << prepared.message();
        ASSERT_NO_FATAL_FAILURE(
            run(std::move(node), std::string(rows[at]->name), what + "\n" + to_text(*drawn.graph)));
      }
  }
  ASSERT_NO_FATAL_FAILURE(run_waiting());
  std::cout << pairs << " pairs of operator and type, " << rounds << " shapes each, on " << cpu_.target
            << "\n";
}

INSTANTIATE_TEST_SUITE_P(Targets, OperatorTypes,
                         ::testing::Combine(::testing::ValuesIn(kCpus), ::testing::Range(size_t{0}, kParts)),
                         [](const auto& info) {
                           return str(std::get<0>(info.param).name, "_", std::get<1>(info.param));
                         });

// Every row takes a type, and what it does not take it refuses in words of ours.
TEST(OperatorTypesDrawn, AreAllThere) {
  const uint32_t rounds = wanted_rounds(1);
  for (const Cpu& cpu : kCpus) {
    const uint32_t seed = first_seed(cpu.seed);
    size_t pairs = 0;
    for (const graph::Operator* row : graph::all_operators()) {
      size_t types = 0;
      for (const DType dtype : kTypes)
        for (uint32_t round = 0; round < rounds; ++round) {
          const testing::RandomNode drawn = drawn_node(*row, dtype, seed + round * 1009);
          types += round == 0 && drawn.graph ? 1 : 0;
          if (drawn.graph) continue;
          EXPECT_TRUE(drawn.refusal.find("expected") != std::string::npos ||
                      drawn.refusal.find("not served") != std::string::npos)
              << row->name << " of " << dtype << ": " << drawn.refusal;
          break;
        }
      EXPECT_GT(types, 0U) << row->name << " was drawn in no type";
      pairs += types;
    }
    EXPECT_GT(pairs, 1120U);
  }
}

}  // namespace
}  // namespace tuner
