// Every operator of the table, in every type that it takes, as `tuner compile` cuts it into steps and
// compiles them with default configs: machine code for AVX2, AVX-512 and AArch64 (under qemu) gives what the
// reference computes operator by operator in double precision. 2 random shapes each, 40 in the long suite
// (TUNER_TEST_ROUNDS).
#include <gtest/gtest.h>

#include <cmath>
#include <map>
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
                            DType::kUInt8,   DType::kInt32,   DType::kInt64,    DType::kBool};

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
  // Products of integers stay within the type: what else becomes of them is no promise.
  double number(std::mt19937& random, DType dtype) const {
    const double x = testing::random_number(random, dtype);
    const std::string op = whole_.nodes.empty() ? "" : whole_.nodes[0].op;
    return is_float(dtype) || (op != "Pow" && op != "ReduceProd") ? x : std::fmod(std::fabs(x), 4);
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
           (op.starts_with("QLinear") || op.find("Quantize") != std::string::npos) &&
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

class OperatorTypes : public ::testing::TestWithParam<std::string> {};

TEST_P(OperatorTypes, AreRightOnEveryShape) {
  const std::string target_name = GetParam();
  const Target target = *parse_target(target_name);
  const bool is_here = target.is_x86();
  if (const Status tools = is_here ? runs_here(target) : aarch64_tools(); !tools)
    GTEST_SKIP() << tools.message();
  const uint32_t seed = first_seed(97), rounds = wanted_rounds(2);
  size_t pairs = 0;
  for (const graph::Operator* row : graph::all_operators()) {
    size_t types = 0;
    for (const DType dtype : kTypes) {
      Aarch64Batch batch(target);
      std::vector<NodeSteps> nodes;
      for (uint32_t round = 0; round < rounds; ++round) {
        SCOPED_TRACE(str(row->name, " of ", dtype, ", seed ", seed, ", round ", round));
        std::mt19937 random(seed + round * 1009 + static_cast<uint32_t>(dtype));
        const testing::RandomNode drawn = testing::random_node(std::string(row->name), dtype, random);
        if (!drawn.graph) {
          EXPECT_TRUE(drawn.refusal.find("expected") != std::string::npos ||
                      drawn.refusal.find("not served") != std::string::npos)
              << drawn.refusal;
          break;
        }
        types += round == 0 ? 1 : 0;
        if (drawn.graph->nodes.empty()) continue;  // its value follows from types alone
        NodeSteps node(*drawn.graph, seed + round);
        const Status prepared = node.prepare();
        ASSERT_TRUE(prepared.is_ok()) << prepared.message();
        if (is_here) {
          EXPECT_EQ(run_here(node, target), "") << to_text(*drawn.graph);
        } else if (node.steps().steps.size() == 1 && !calls_library(row->name)) {
          const ModelStep& step = node.steps().steps[0];
          const auto program = default_program(step.workload, target);
          ASSERT_TRUE(program.is_ok()) << program.message();
          const Status added =
              batch.add(*program, step.workload.compute(), node.args(step), {}, std::string(row->name));
          ASSERT_TRUE(added.is_ok()) << added.message();
          nodes.push_back(std::move(node));
        }
      }
      if (nodes.empty()) continue;
      const auto outputs = batch.run();
      ASSERT_TRUE(outputs.is_ok()) << row->name << " of " << dtype << ": " << outputs.message();
      for (size_t k = 0; k < nodes.size(); ++k) {
        nodes[k].set(nodes[k].steps().steps[0].writes, (*outputs)[k]);
        EXPECT_EQ(nodes[k].difference(), "") << row->name << " of " << dtype << ", node " << k;
      }
    }
    EXPECT_GT(types, 0U) << row->name << " was run in no type";
    pairs += types;
  }
  std::cout << pairs << " pairs of operator and type, " << rounds << " shapes each, on " << target_name
            << "\n";
  EXPECT_GT(pairs, 500U);
}

INSTANTIATE_TEST_SUITE_P(Targets, OperatorTypes,
                         ::testing::Values("llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512",
                                           "llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu"),
                         [](const auto& info) {
                           return info.param.find("haswell") != std::string::npos  ? "Avx2"
                                  : info.param.find("avx512") != std::string::npos ? "Avx512"
                                                                                   : "Aarch64";
                         });

}  // namespace
}  // namespace tuner
