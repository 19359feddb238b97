// Which nodes of a graph of ONNX Runtime become parts, what becomes of a part, and where its library is kept:
// without ONNX Runtime. tests/bench/onnxruntime_provider_test.cpp runs sessions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "compiler_core/oracle/oracle.h"
#include "deploy/onnxruntime/part_model.h"
#include "deploy/onnxruntime/part_store.h"
#include "deploy/onnxruntime/parts.h"
#include "deploy/onnxruntime/provider_options.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tuner/model/read_model.h"

namespace tuner::ort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kFloat = 1;

// A graph that is written node by node; values are known by their names.
class Writer {
 public:
  size_t value(const std::string& name) {
    const auto [place, is_new] = known_.emplace(name, graph_.values.size());
    if (is_new) graph_.values.push_back({.name = name, .type = kFloat, .shape = {4, 4}});
    return place->second;
  }
  Writer& node(const std::string& op, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs) {
    GraphNode node{.name = "make_" + outputs[0], .op = op};
    for (const std::string& name : inputs) node.inputs.push_back(name.empty() ? kNoValue : value(name));
    for (const std::string& name : outputs) node.outputs.push_back(value(name));
    graph_.nodes.push_back(std::move(node));
    return *this;
  }
  Writer& constant(const std::string& name, const std::vector<int64_t>& shape,
                   std::span<const float> elements) {
    GraphValue& made = graph_.values[value(name)];
    made.constant = true;
    made.shape = shape;
    made.elements = std::as_bytes(elements);
    return *this;
  }
  Writer& outputs(const std::vector<std::string>& names) {
    for (const std::string& name : names) graph_.outputs.push_back(value(name));
    return *this;
  }
  NodeGraph& graph() {
    graph_.operator_set = 17;
    return graph_;
  }

 private:
  NodeGraph graph_;
  std::map<std::string, size_t> known_;
};

std::vector<std::string> names(const NodeGraph& graph, const std::vector<size_t>& values) {
  std::vector<std::string> out;
  for (const size_t v : values) out.push_back(graph.values[v].name);
  return out;
}

std::vector<bool> all_but(const NodeGraph& graph, const std::string& op) {
  std::vector<bool> served;
  for (const GraphNode& node : graph.nodes) served.push_back(node.op != op);
  return served;
}

TEST(Parts, AGraphThatIsServedIsOnePart) {
  Writer w;
  w.node("MatMul", {"x", "y"}, {"a"})
      .node("Relu", {"a"}, {"b"})
      .node("Add", {"b", "a"}, {"c"})
      .outputs({"c"});
  const auto parts = parts_of(w.graph(), {true, true, true});
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_THAT(parts[0].nodes, ElementsAre(0, 1, 2));
  EXPECT_THAT(names(w.graph(), parts[0].inputs), ElementsAre("x", "y"));
  EXPECT_THAT(names(w.graph(), parts[0].outputs), ElementsAre("c"));
}

// a -> foreign -> c, and a -> c: a and c as one node would wait for what waits for it.
TEST(Parts, APathOutAndBackParts) {
  Writer w;
  w.node("Relu", {"x"}, {"a"}).node("Foreign", {"a"}, {"b"}).node("Add", {"a", "b"}, {"c"}).outputs({"c"});
  const auto parts = parts_of(w.graph(), all_but(w.graph(), "Foreign"));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(parts[0].nodes, ElementsAre(0));
  EXPECT_THAT(names(w.graph(), parts[0].outputs), ElementsAre("a"));
  EXPECT_THAT(parts[1].nodes, ElementsAre(2));
  EXPECT_THAT(names(w.graph(), parts[1].inputs), ElementsAre("a", "b"));
}

TEST(Parts, NodesThatDoNotMeetArePartsOfTheirOwn) {
  Writer w;
  w.node("Relu", {"x"}, {"a"}).node("Relu", {"x"}, {"b"}).outputs({"a", "b"});
  EXPECT_EQ(parts_of(w.graph(), {true, true}).size(), 2u);
}

// Graphs within nodes read values, too.
TEST(Parts, WhatAGraphWithinANodeReadsIsAnOutput) {
  Writer w;
  w.node("MatMul", {"x", "y"}, {"a"}).node("Relu", {"a"}, {"b"}).node("If", {"b"}, {"c"}).outputs({"c"});
  w.graph().nodes[2].read_inside = {w.value("a")};
  const auto parts = parts_of(w.graph(), {true, true, false});
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_THAT(names(w.graph(), parts[0].outputs), ElementsAre("a", "b"));
}

// The graph within the If reads a: so c waits for a by way of the If.
TEST(Parts, APathThroughAGraphWithinANodeParts) {
  Writer w;
  w.node("Foreign", {"x"}, {"f"}).node("Relu", {"f"}, {"a"}).node("If", {"is"}, {"b"});
  w.node("Add", {"a", "b"}, {"c"}).outputs({"c"});
  w.graph().nodes[2].read_inside = {w.value("a")};
  const auto parts = parts_of(w.graph(), {false, true, false, true});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(names(w.graph(), parts[0].outputs), ElementsAre("a"));
}

TEST(Parts, OnlyThoseWithAProductAreWorthALibrary) {
  Writer w;
  w.node("Relu", {"x"}, {"a"}).node("Foreign", {"a"}, {"b"}).node("MatMul", {"b", "x"}, {"c"}).outputs({"c"});
  const auto parts = parts_of(w.graph(), all_but(w.graph(), "Foreign"));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_FALSE(is_worth_it(w.graph(), parts[0]));
  EXPECT_TRUE(is_worth_it(w.graph(), parts[1]));
}

// Whether one can go round: with each part as one node.
bool has_cycle(const NodeGraph& graph, const std::vector<size_t>& block_of) {
  std::map<size_t, size_t> makers;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (const size_t v : graph.nodes[n].outputs) makers[v] = n;
  std::map<size_t, std::set<size_t>> reads;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (const size_t v : graph.nodes[n].inputs)
      if (makers.contains(v) && block_of[makers[v]] != block_of[n])
        reads[block_of[n]].insert(block_of[makers[v]]);
  std::set<size_t> done;
  for (bool went = true; went;) {  // what reads nothing that is left goes
    went = false;
    for (const size_t block : block_of) {
      if (done.contains(block)) continue;
      if (std::ranges::any_of(reads[block], [&](size_t source) { return !done.contains(source); })) continue;
      done.insert(block);
      went = true;
    }
  }
  return done.size() != std::set<size_t>(block_of.begin(), block_of.end()).size();
}

struct RandomGraph {
  Writer writer;
  std::vector<bool> served;

  explicit RandomGraph(uint32_t seed) {
    std::mt19937 random(seed);
    const size_t nodes = 2 + random() % 30;
    const uint32_t foreign = 2 + random() % 6;
    std::vector<std::string> made = {"x", "y"};
    for (size_t n = 0; n < nodes; ++n) {
      std::vector<std::string> inputs;
      for (size_t k = 0; k < 1 + random() % 3; ++k) inputs.push_back(made[random() % made.size()]);
      const std::string out = str("v", random(), "_", n);
      writer.node("MatMul", inputs, {out});
      made.push_back(out);
      served.push_back(random() % foreign != 0);
    }
    writer.outputs({made.back()});
  }
};

TEST(Parts, OfRandomGraphsNeverWaitForEachOther) {
  size_t several = 0, large = 0;
  Seeds seeds(6200, 2000);
  for (const uint32_t seed : seeds) {
    RandomGraph made(seed);
    const NodeGraph& graph = made.writer.graph();
    const auto parts = parts_of(graph, made.served);
    std::vector<size_t> block_of(graph.nodes.size());
    for (size_t n = 0; n < block_of.size(); ++n) block_of[n] = n;
    std::set<size_t> seen;
    for (size_t p = 0; p < parts.size(); ++p) {
      large += parts[p].nodes.size() > 3 ? 1 : 0;
      for (const size_t n : parts[p].nodes) {
        EXPECT_TRUE(made.served[n]);
        EXPECT_TRUE(seen.insert(n).second) << "node " << n << " is in two parts";
        block_of[n] = graph.nodes.size() + p;
      }
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(std::ranges::count(made.served, true)));
    ASSERT_FALSE(has_cycle(graph, block_of)) << "seed " << seed;
    several += parts.size() > 1 ? 1 : 0;
  }
  if (seeds.all()) {
    EXPECT_GT(several, 500u);
    EXPECT_GT(large, 500u);
  }
}

// A session may list nodes in another order: the same part has the same digest.
TEST(PartModel, DigestsDoNotDependOnTheOrderOfNodes) {
  Seeds seeds(6300, 200);
  for (const uint32_t seed : seeds) {
    RandomGraph made(seed);
    NodeGraph graph = made.writer.graph();
    std::vector<size_t> nodes(graph.nodes.size());
    for (size_t n = 0; n < nodes.size(); ++n) nodes[n] = n;
    const std::string before = digest_of(model_of(graph, part_of(graph, nodes)));
    std::mt19937 random(seed);
    for (int swaps = 0; swaps < 50; ++swaps) {  // neighbours that do not read each other
      const size_t n = random() % graph.nodes.size();
      if (n == 0 || std::ranges::find(graph.nodes[n].inputs, graph.nodes[n - 1].outputs[0]) !=
                        graph.nodes[n].inputs.end())
        continue;
      std::swap(graph.nodes[n], graph.nodes[n - 1]);
    }
    EXPECT_EQ(digest_of(model_of(graph, part_of(graph, nodes))), before) << "seed " << seed;
  }
}

class PartOfAnImage : public ::testing::Test {
 protected:
  // Weights and factors are in the file of weights; those of the first end in the middle of a line there.
  PartOfAnImage() : weights_(8 * 5 * 3 * 3, 0.5f), bias_(8, 1.0f), factors_(8 * 6 * 6, 3.0f) {
    w_.node("Conv", {"x", "w", "b"}, {"y"}).node("Mul", {"y", "f"}, {"z"}).outputs({"z"});
    w_.constant("f", {1, 8, 6, 6}, factors_);
    w_.constant("w", {8, 5, 3, 3}, weights_).constant("b", {8}, bias_);
    set_shape("x", {1, 5, 8, 8});
    set_shape("y", {1, 8, 6, 6});
    set_shape("z", {1, 8, 6, 6});
  }
  void set_shape(const std::string& name, const std::vector<int64_t>& shape) {
    w_.graph().values[w_.value(name)].shape = shape;
  }
  Part whole() { return part_of(w_.graph(), {0, 1}); }

  std::vector<float> weights_, bias_, factors_;
  Writer w_;
};

TEST_F(PartOfAnImage, IsAModelThatWeReadBack) {
  const TemporaryFolder folder;
  w_.graph().nodes[0].attributes = {{"strides", std::vector<int64_t>{1, 1}}};
  weights_[0] = 7;
  const PartModel model = model_of(w_.graph(), whole());
  ASSERT_TRUE(write_model(model, folder.path().string(), "part.onnx"));
  ModelOptions options;
  options.folder = folder.path().string();
  const auto graph = read_model(model.bytes, nullptr, options, interpret);
  ASSERT_TRUE(graph.is_ok()) << graph.message();
  EXPECT_EQ(graph->nodes.size(), 2u);
  EXPECT_EQ((*graph)[graph->inputs[0]].type.shape, (std::vector<int64_t>{1, 5, 8, 8}));
  EXPECT_THAT(graph->output_names, ElementsAre("z"));
  const auto w = std::ranges::find(graph->values, "w", &graph::Value::name);
  ASSERT_NE(w, graph->values.end());
  const auto numbers = w->constant->numbers(DType::kFloat32);
  EXPECT_EQ(numbers[0], 7);
  EXPECT_EQ(numbers[1], 0.5);
  const auto f = std::ranges::find(graph->values, "f", &graph::Value::name);
  ASSERT_NE(f, graph->values.end());
  EXPECT_THAT(f->constant->numbers(DType::kFloat32), ::testing::Each(3.0));
}

TEST_F(PartOfAnImage, DigestsTellEveryByteOfTheWeights) {
  const std::string before = digest_of(model_of(w_.graph(), whole()));
  EXPECT_EQ(digest_of(model_of(w_.graph(), whole())), before);
  weights_.back() = 0.25f;
  const std::string other_weights = digest_of(model_of(w_.graph(), whole()));
  EXPECT_NE(other_weights, before);
  factors_.back() = 4;
  const std::string other_factors = digest_of(model_of(w_.graph(), whole()));
  EXPECT_NE(other_factors, other_weights);
  bias_[3] = 2;
  EXPECT_NE(digest_of(model_of(w_.graph(), whole())), other_factors);
}

TEST_F(PartOfAnImage, NodesAreServedOrItIsSaidWhyNot) {
  const NodeGraph& graph = w_.graph();
  EXPECT_TRUE(check_served(graph, 0)) << check_served(graph, 0).message();
  EXPECT_TRUE(check_served(graph, 1)) << check_served(graph, 1).message();

  GraphNode conv = graph.nodes[0];
  w_.graph().nodes[0].op = "Convolute";
  EXPECT_THAT(check_served(graph, 0).message(), HasSubstr("Convolute"));
  w_.graph().nodes[0] = conv;
  w_.graph().nodes[0].attributes = {{"stride", int64_t{1}}};
  EXPECT_THAT(check_served(graph, 0).message(), HasSubstr("stride"));
  w_.graph().nodes[0] = conv;
  w_.graph().nodes[0].foreign = "it holds graphs";
  EXPECT_EQ(check_served(graph, 0).message(), "it holds graphs");
  w_.graph().nodes[0] = conv;
  set_shape("y", {1, 8, 7, 7});
  EXPECT_FALSE(check_served(graph, 0)) << "the graph says another shape than the operator has";
  set_shape("y", {1, 8, 6, 6});
  w_.graph().values[w_.value("x")].open = "extent 0 is not fixed";
  EXPECT_EQ(check_served(graph, 0).message(), "\"x\" extent 0 is not fixed");
}

TEST(ProviderOptions, AreReadFromASession) {
  const auto options = provider_options({{"session.intra_op.allow_spinning", "0"},
                                         {"ep.tunerexecutionprovider.cache", "/c"},
                                         {"ep.TunerExecutionProvider.Threads", "3"},
                                         {"ep.tunerexecutionprovider.tune_seconds", "2.5"},
                                         {"ep.tunerexecutionprovider.compile", "0"},
                                         {"ep.other.threads", "x"}});
  ASSERT_TRUE(options.is_ok()) << options.message();
  EXPECT_EQ(options->cache, "/c");
  EXPECT_EQ(options->threads, 3);
  EXPECT_EQ(options->tune_seconds, 2.5);
  EXPECT_FALSE(options->compile);
  EXPECT_FALSE(options->strict);
  EXPECT_EQ(options->target, "cpu");
}

TEST(ProviderOptions, WhatIsWrongIsToldInALine) {
  const auto message = [](const std::string& option, const std::string& value) {
    const auto options = provider_options({{"ep.tunerexecutionprovider." + option, value}});
    EXPECT_FALSE(options.is_ok());
    EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
    return options.message();
  };
  EXPECT_EQ(message("thread", "2"), "option thread is unknown; did you mean threads?");
  EXPECT_THAT(message("quality", "2"), HasSubstr("expected one of cache, compile, db"));
  EXPECT_EQ(message("threads", "0"), "option threads: found \"0\", expected 1 to 4096");
  EXPECT_THAT(message("threads", "2x"), HasSubstr("found \"2x\""));
  EXPECT_THAT(message("tune_seconds", "nan"), HasSubstr("expected 0 to"));
  EXPECT_EQ(message("strict", "yes"), "option strict: found \"yes\", expected 0 or 1");
  EXPECT_EQ(message("db", ""), "option db: found nothing, expected a value");
}

// A program that takes the place of `tuner`.
class PartStoreTest : public PartOfAnImage {
 protected:
  PartStoreTest() {
    options_.cache = folder_.file("cache");
    options_.program = folder_.file("program");
  }
  void write_program(const std::string& script) const {
    std::ofstream(options_.program) << "#!/bin/bash\n" << script << "\n";
    ::chmod(options_.program.c_str(), 0755);
  }
  Status find() {
    const PartStore store(options_, [this](const std::string& line) { said_.push_back(line); });
    return store.find_or_compile(w_.graph(), whole()).status();
  }

  TemporaryFolder folder_;
  ProviderOptions options_;
  std::vector<std::string> said_;
};

TEST_F(PartStoreTest, TheCompilersComplaintIsTheReason) {
  write_program("echo 'noise' >&2; echo 'tuner: part.onnx: node y (Conv): no' >&2; exit 2");
  const Status found = find();
  EXPECT_EQ(found.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(found.message(), "tuner compile: part.onnx: node y (Conv): no");
  EXPECT_THAT(said_, ElementsAre(HasSubstr("compiling 2 nodes into")));
  EXPECT_TRUE(std::filesystem::is_empty(options_.cache)) << "nothing is left behind";
}

TEST_F(PartStoreTest, ACompilerThatCrashesIsAReason) {
  write_program("kill -SEGV $$");
  EXPECT_THAT(find().message(), HasSubstr("signal 11"));
  EXPECT_TRUE(std::filesystem::is_empty(options_.cache));
}

TEST_F(PartStoreTest, TheCompilerIsToldWhatOptionsSay) {
  options_.db = "/some.db";
  options_.threads = 4;
  options_.target = "llvm -mcpu=x86-64-v3";
  write_program("printf '%s|' \"$@\" >" + folder_.file("words") + "; exit 3");
  EXPECT_FALSE(find());
  const auto words = [&] {
    std::ifstream in(folder_.file("words"));
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_THAT(words(), HasSubstr("|--threads|4|--target|llvm -mcpu=x86-64-v3|--no-tune|--db|/some.db|"));
  options_.tune_seconds = 30;
  EXPECT_FALSE(find());
  EXPECT_THAT(words(), HasSubstr("|--time-limit|30|"));
  EXPECT_THAT(words(), Not(HasSubstr("--no-tune")));
}

TEST_F(PartStoreTest, NothingIsCompiledWhereThatIsNotWanted) {
  write_program("touch " + folder_.file("ran"));
  options_.compile = false;
  EXPECT_EQ(find().code(), StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("ran")));
  EXPECT_FALSE(std::filesystem::exists(options_.cache)) << "and no folder is made";
}

TEST_F(PartStoreTest, AFolderThatOthersCanWriteToIsRefused) {
  write_program("touch " + folder_.file("ran"));
  std::filesystem::create_directory(options_.cache);
  for (const unsigned mode : {0777u, 0775u, 0757u}) {
    ::chmod(options_.cache.c_str(), mode);
    EXPECT_THAT(find().message(), HasSubstr("others can write to it")) << mode;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.file("ran")));
}

TEST_F(PartStoreTest, AProgramThatIsNotThereIsNamed) {
  EXPECT_THAT(find().message(), HasSubstr("option program: found no program"));
}

// What a compiler says is in the folder, and is not.
TEST_F(PartStoreTest, ALibraryThatIsNotOneIsRefused) {
  write_program("mkdir \"$4\"; echo '{}' >\"$4/plan.json\"");
  EXPECT_THAT(find().message(), HasSubstr("plan.json"));
}

}  // namespace
}  // namespace tuner::ort
