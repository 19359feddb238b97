// Random models with If, Loop, Scan and recurrent layers: libraries of them compute what ONNX Runtime does,
// and what the reference in double precision does. Each model is compiled with the configs that no tuning
// gives, and with random ones, any of which tuning might choose. Random models of tensors without elements,
// too. Needs BENCH_LIBONNXRUNTIME.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include "compiler_core/graph/reference.h"
#include "compiler_core/runtime/kernel.h"
#include "templates/schedule_template.h"
#include "tests/bench/model/onnx_session.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/compile/packed_programs.h"
#include "tests/tuner/model/random_control_flow.h"
#include "tests/tuner/model/random_empty.h"
#include "tuner/bundle/bundle_folder.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/model_file.h"

namespace tuner {
namespace {

using Numbers = std::vector<double>;

bool never() { return false; }

// A config that the task's space has, of a template that serves it.
Result<Program> random_program(const CliTask& task, std::mt19937_64& random) {
  std::vector<const AnyTemplate*> serving;
  for (const AnyTemplate* t : all_templates())
    if (t->supports(task.workload, task.target).yes) serving.push_back(t);
  if (serving.empty()) return failed("no template serves ", task.key);
  ASSIGN_OR_RETURN(const auto instance,
                   serving[random() % serving.size()]->apply(task.workload, task.target));
  Status last;
  for (int tries = 0; tries < 20; ++tries) {  // some configs are refused when they are carried out
    const uint64_t at = random() % instance->space().size();
    Result<Program> program = instance->instantiate(instance->space().at(ConfigIndex(at)));
    if (program) return program;
    last = program.status();
  }
  return last;
}

class RandomModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("BENCH_LIBONNXRUNTIME") == nullptr)
      GTEST_SKIP() << "BENCH_LIBONNXRUNTIME does not name the library";
    auto opened = OnnxRuntimeApi::open(1);
    ASSERT_TRUE(opened.is_ok()) << opened.message();
    api_ = *std::move(opened);
  }

  // In `folder`/out: as it comes, or of random configs.
  static Status write_library(const CompileRequest& request, bool random_configs, uint32_t seed) {
    ASSIGN_OR_RETURN(PreparedModel model, prepare_model(request, never));
    ASSIGN_OR_RETURN(const auto out, open_model_folder(request, model));
    if (!random_configs) return build_model(request, model, *out, never).status();
    std::mt19937_64 random(seed);
    std::vector<Program> programs;
    for (const CliTask& task : model.kernels.tasks) {
      ASSIGN_OR_RETURN(Program program, random_program(task, random));
      programs.push_back(std::move(program));
    }
    ASSIGN_OR_RETURN(const ModelToPack pack,
                     testing::packed_programs(request, model, programs, model.memory));
    ASSIGN_OR_RETURN(const auto files, model_files(pack, out->staging().string()));
    return out->write(files);
  }

  // Empty: within 1e-3.
  static std::string difference(const char* of, const Numbers& found, const Numbers& expected) {
    for (size_t e = 0; e < expected.size(); ++e)
      if (!(std::fabs(found[e] - expected[e]) <= 1e-3 * (1e-2 + std::fabs(expected[e]))))
        return str(of, ": element ", e, " is ", found[e], ", expected ", expected[e]);
    return "";
  }
  static Numbers numbers_of(const void* from, const graph::TensorType& type) {
    return graph::Constant({static_cast<const std::byte*>(from), static_cast<size_t>(type.bytes())}, nullptr)
        .numbers(type.dtype);
  }

  // Runs the model in ONNX Runtime. Returns its outputs, or why it did not run.
  Result<std::vector<Numbers>> run_elsewhere(const testing::RandomEmpty& made,
                                             const graph::Graph& graph) const {
    ASSIGN_OR_RETURN(const auto session,
                     OnnxSession::open(*api_, made.bytes(), graph,
                                       {.all_optimizations = false, .no_optimizations = true}));
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const graph::Value& input = graph[graph.inputs[i]];
      const auto given = std::ranges::find(made.inputs(), input.name, &testing::RandomEmpty::Tensor::name);
      const auto elements = graph::Constant::of(given->numbers, input.type.dtype);
      std::ranges::copy(elements.bytes(), static_cast<std::byte*>(session->input(i)));
    }
    RETURN_IF_ERROR(session->run());
    std::vector<Numbers> outputs;
    for (size_t o = 0; o < graph.outputs.size(); ++o)
      outputs.push_back(numbers_of(session->output(o), graph[graph.outputs[o]].type));
    return outputs;
  }

  std::unique_ptr<OnnxRuntimeApi> api_;
};

TEST_F(RandomModels, LibrariesComputeWhatOnnxRuntimeDoes) {
  std::map<std::string, int> all;
  Seeds seeds(5650, 40);
  for (const uint32_t seed : seeds) {
    const testing::RandomControlFlow made(
        seed, {.recurrent = true, .strict = true, .most_rows = 12, .most_columns = 40});
    for (const auto& [what, count] : made.counts()) all[what] += count;
    const TemporaryFolder folder;
    CompileRequest request;
    request.model = folder.file("net.onnx");
    request.db = folder.file("none.db");
    request.target = *resolve_target("cpu");
    request.tune = false;
    std::ofstream(request.model, std::ios::binary) << made.bytes();
    const auto graph = read_model_file(request.model, {});
    ASSERT_TRUE(graph.is_ok()) << graph.message();
    // Its optimisations end the process on some graphs within graphs (1.30, seed 5812).
    auto session = OnnxSession::open(*api_, made.bytes(), *graph,
                                     {.all_optimizations = false, .no_optimizations = true});
    ASSERT_TRUE(session.is_ok()) << session.message();
    std::vector<ModelContext> libraries;
    for (const bool random_configs : {false, true}) {
      request.output = folder.file(random_configs ? "random" : "default");
      const Status written = write_library(request, random_configs, seed);
      ASSERT_TRUE(written) << written.message();
      const auto opened = CompiledModel::open(request.output);
      ASSERT_TRUE(opened.is_ok()) << opened.message();
      auto context = opened->context();
      ASSERT_TRUE(context.is_ok()) << context.message();
      libraries.push_back(*std::move(context));
    }
    std::mt19937 random(seed);
    for (int run = 0; run < 3; ++run) {  // conditions on data take both ways
      std::vector<Numbers> inputs;
      std::vector<AlignedBuffer> memory;
      std::vector<const void*> in;
      for (size_t i = 0; i < graph->inputs.size(); ++i) {
        const graph::TensorType& type = (*graph)[graph->inputs[i]].type;
        memory.emplace_back(type.bytes());
        for (int64_t e = 0; e < type.elements(); ++e)
          memory.back().as<float>()[e] = std::uniform_real_distribution<float>(-1, 1)(random);
        inputs.push_back(numbers_of(memory.back().data(), type));
        in.push_back(memory.back().data());
        std::memcpy((*session)->input(i), memory.back().data(), static_cast<size_t>(type.bytes()));
      }
      const Status ran = (*session)->run();
      ASSERT_TRUE(ran) << ran.message();
      const auto reference = run_reference(*graph, inputs, model_evaluator());
      ASSERT_TRUE(reference.is_ok()) << reference.message();
      std::vector<void*> out;
      for (const graph::ValueId v : graph->outputs) {
        memory.emplace_back((*graph)[v].type.bytes());
        out.push_back(memory.back().data());
      }
      for (ModelContext& library : libraries) {
        library.fill_arena(static_cast<char>(0xff));
        ASSERT_TRUE(library.run(in, out));
        for (size_t o = 0; o < out.size(); ++o) {
          const graph::TensorType& type = (*graph)[graph->outputs[o]].type;
          const Numbers found = numbers_of(out[o], type);
          const char* which = &library == libraries.data() ? "default configs" : "random configs";
          EXPECT_EQ(difference(which, found, (*reference)[o]), "") << "against the reference, output " << o;
          EXPECT_EQ(difference(which, found, numbers_of((*session)->output(o), type)), "")
              << "against ONNX Runtime, output " << o;
        }
      }
    }
  }
  for (const auto& [what, count] : all) std::printf("%5d %s\n", count, what.c_str());
  if (seeds.all()) {
    for (const char* what : {"If on data", "Loop", "Scan", "LSTM", "GRU", "RNN"})
      EXPECT_GT(all[what], 5) << what;
  }
}

// ONNX leaves open what the mean of nothing is, a NaN with us and numpy.
bool near(double found, double expected) {
  if (std::isnan(expected)) return true;
  if (std::isinf(expected)) return found == expected;
  return std::fabs(found - expected) <= 1e-4 * (1 + std::fabs(expected));
}

// The expectations of random_empty.h, which our tests hold libraries against, are ONNX Runtime's. It may
// refuse a model.
TEST_F(RandomModels, ItSaysTheSameOfTensorsWithoutElements) {
  size_t ran = 0, refused = 0;
  std::map<std::string, int> reasons;
  Seeds seeds(5600, 600);
  for (const uint32_t seed : seeds) {
    const testing::RandomEmpty made(seed, /*as_elsewhere=*/true);
    const auto graph = read_model(made.bytes(), nullptr, {}, model_evaluator());
    ASSERT_TRUE(graph.is_ok()) << graph.message();
    const auto found = run_elsewhere(made, *graph);
    if (!found) {
      ++refused;
      ++reasons[found.message().substr(0, 200)];
      continue;
    }
    ++ran;
    for (size_t o = 0; o < made.outputs().size(); ++o) {
      const Numbers& expected = made.outputs()[o].numbers;
      ASSERT_EQ((*found)[o].size(), expected.size());
      for (size_t e = 0; e < expected.size(); ++e)
        ASSERT_TRUE(near((*found)[o][e], expected[e]))
            << made.outputs()[o].name << ", element " << e << ": found " << (*found)[o][e] << ", expected "
            << expected[e] << "\n"
            << made.nodes() << "\n"
            << to_text(*graph);
    }
  }
  for (const auto& [reason, count] : reasons) std::cout << count << " refused: " << reason << "\n";
  std::cout << ran << " models ran, " << refused << " were refused\n";
  if (seeds.all()) {
    EXPECT_GT(ran, 300u);
  }
}

}  // namespace
}  // namespace tuner
