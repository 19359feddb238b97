// ONNX's own test data (onnx_data.h), each model the whole way that `tuner compile --no-tune` and a program
// of its user go: read, rewritten, parted into steps, compiled with default configs, written, opened by the
// runtime library and run. It gives the recorded answers, or is refused by the reader already. Each model is
// compiled for this host, and in one of three other ways; in the long suite in all (TUNER_TEST_ROUNDS).
#include <gtest/gtest.h>

#include <optional>

#include "compiler_core/backend.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/runtime/kernel.h"
#include "deploy/runtime/tuner_runtime_api.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/onnx_data.h"
#include "tuner/compile/compile_model.h"
#include "tuner/model/model_file.h"

#ifndef TUNER_ONNX_TESTDATA

TEST(OnnxDataCompiled, NeedsItsModels) {
  GTEST_SKIP() << "libonnx-testdata is not installed: deploy/install.sh --onnx-testdata";
}

#else

namespace tuner {
namespace {

using testing::OnnxData;
using testing::OnnxOutcome;

// A compiled model and a context, as a program has them.
class LoadedModel {
 public:
  LoadedModel() = default;
  LoadedModel(const LoadedModel&) = delete;
  ~LoadedModel() {
    tuner_model_free_context(context_);
    tuner_model_close(model_);
  }

  // Returns what is wrong with the model in the folder; empty: nothing.
  std::string open(const std::string& folder) {
    if (tuner_model_open(folder.c_str(), &model_) != TUNER_OK) return tuner_last_error();
    if (tuner_model_new_context(model_, 0, &context_) != TUNER_OK) return tuner_last_error();
    return "";
  }

  // Runs it twice: the second run finds in the arena what the first one left.
  std::string run_twice(const OnnxData& data) const {
    std::vector<AlignedBuffer> inputs;
    for (int32_t i = 0; i < tuner_model_num_inputs(model_); ++i) {
      tuner_operand wanted{};
      if (tuner_model_get_input(model_, i, &wanted) != TUNER_OK) return tuner_last_error();
      const graph::Value& given = data.input(wanted.name, static_cast<size_t>(i));
      if (type_of(wanted) != given.type)
        return str("input ", wanted.name, " is ", to_text(type_of(wanted)), ", expected ",
                   to_text(given.type));
      const std::span<const std::byte> bytes = given.constant->bytes();
      inputs.emplace_back(wanted.bytes);
      std::ranges::copy(bytes, inputs.back().as<std::byte>());
    }
    std::string wrong = run(inputs, data);
    if (wrong.empty()) wrong = run(inputs, data);
    return wrong;
  }

 private:
  // What stands in outputs before a run, and in so many bytes behind them also after it.
  static constexpr unsigned char kUnwritten = 0xa5;
  static constexpr int64_t kBehind = 64;

  static graph::TensorType type_of(const tuner_operand& operand) {
    return {*dtype_from_name(operand.dtype), {operand.shape, operand.shape + operand.rank}};
  }

  std::string run(const std::vector<AlignedBuffer>& inputs, const OnnxData& data) const {
    std::vector<const void*> in;
    for (const AlignedBuffer& input : inputs) in.push_back(input.data());
    std::vector<AlignedBuffer> outputs;
    std::vector<void*> out;
    std::vector<graph::TensorType> types;
    for (int32_t i = 0; i < tuner_model_num_outputs(model_); ++i) {
      tuner_operand operand{};
      if (tuner_model_get_output(model_, i, &operand) != TUNER_OK) return tuner_last_error();
      types.push_back(type_of(operand));
      outputs.emplace_back(operand.bytes + kBehind);
      out.push_back(outputs.back().data());
      std::fill_n(outputs.back().as<unsigned char>(), outputs.back().bytes(), kUnwritten);
    }
    if (tuner_model_run(context_, in.data(), out.data()) != TUNER_OK) return tuner_last_error();
    std::vector<std::vector<double> > found;
    for (size_t i = 0; i < out.size(); ++i)
      found.push_back(load_elements(out[i], types[i].elements(), types[i].dtype));
    return difference(data, types, found);
  }

  tuner_loaded_model* model_ = nullptr;
  tuner_model_context* context_ = nullptr;
};

bool never() { return false; }

// What `tuner compile` is asked for.
struct Options {
  std::string name, target;
  bool blocks = false;
  std::optional<size_t> third = {};  // which models the fast suite compiles so; nothing: all
};

// Refused is what the reader refuses, as onnx_data_test tells; a model that was read must be compiled.
OnnxOutcome compile_and_run(const Options& options, const std::filesystem::path& model,
                            const OnnxData& data) {
  CompileRequest request;
  request.model = model;
  request.target = *resolve_target(options.target);
  request.blocks = options.blocks;
  const auto read = testing::read_with(data, [&](const ModelOptions& with) {
    request.options = with;
    return read_model_file(request.model, with);
  });
  if (!read) return {.refused = read.message()};
  const auto fitting = testing::fitted(data, *read);
  if (!fitting) return {.refused = fitting.message()};
  const TemporaryFolder folder;
  request.output = folder.file("out");
  request.db = folder.file("none.db");
  auto prepared = prepare_model(request, never);
  if (!prepared) return {.wrong = prepared.message()};
  const auto written = open_model_folder(request, *prepared);
  if (!written) return {.wrong = written.message()};
  const auto built = build_model(request, *prepared, **written, never);
  if (!built) return {.wrong = built.message()};
  LoadedModel loaded;
  std::string wrong = loaded.open(request.output);
  if (wrong.empty()) wrong = loaded.run_twice(*fitting);
  return {.right = wrong.empty(), .wrong = wrong};
}

class OnnxDataCompiled : public ::testing::TestWithParam<Options> {};

TEST_P(OnnxDataCompiled, EveryModelThatIsReadIsRight) {
  const Options& options = GetParam();
  if (const Status runs = runs_here(*resolve_target(options.target)); !runs) GTEST_SKIP() << runs.message();
  const auto trial = [&](const std::filesystem::path& model, const OnnxData& data) {
    return compile_and_run(options, model, data);
  };
  constexpr size_t kThirds = 3;
  const RandomSeed seed(0);
  testing::OnnxShare share;
  if (options.third && wanted_rounds(1) < kThirds) share = {kThirds, (*options.third + seed) % kThirds};
  testing::try_onnx_data(TUNER_ONNX_TESTDATA, trial, share);
}

INSTANTIATE_TEST_SUITE_P(Options, OnnxDataCompiled,
                         ::testing::Values(Options{"Plain", "cpu"}, Options{"Blocks", "cpu", true, 0},
                                           Options{"TwoThreads", "cpu -threads=2", false, 1},
                                           Options{"Avx2", "llvm -mcpu=haswell", false, 2}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tuner

#endif
