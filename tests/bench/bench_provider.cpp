// bench_provider: ONNX Runtime with our execution provider against ONNX Runtime alone, in one process, in
// turn. See README.md beside this file.
//
//   bench_provider MODEL.onnx PLUGIN [--cache DIR] [--db FILE] [--tune SECONDS] [--threads 1] [--rounds 40]
//
// PLUGIN is libtuner_onnxruntime.so. ONNX Runtime is found by BENCH_LIBONNXRUNTIME, and runs alone twice: as
// it comes, and with all its optimisations; the faster counts. Answers are compared first.
//
// Exit status: 0 all were right and timed; 1 a wrong answer, no library; 2 wrong use.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/input_file.h"
#include "tests/bench/common/statistics.h"
#include "tests/bench/cpu/interleave.h"
#include "tests/bench/model/onnx_session.h"
#include "tuner/model/model_file.h"

namespace tuner {
namespace {

constexpr uint64_t kSeed = 20261129;  // of inputs and of the bootstrap
// An element may be off by this part of itself, and of the largest one's thousandth.
constexpr double kRelative = 1e-3, kOfLargest = 1e-3;

struct Options {
  std::string model, plugin, cache, db, tune = "0";
  int rounds = 40, threads = 1;
};

using Session = std::unique_ptr<OnnxSession>;

Result<Session> session(const OnnxRuntimeApi& api, const std::string& bytes, const graph::Graph& graph,
                        const OnnxRuntimeApi::SessionOptions& options) {
  ASSIGN_OR_RETURN(Session made, OnnxSession::open(api, bytes, graph, options));
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<float> real(-1, 1);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const graph::TensorType& type = graph[graph.inputs[i]].type;
    std::vector<double> numbers(static_cast<size_t>(type.elements()));
    for (double& x : numbers) x = is_float(type.dtype) ? static_cast<double>(real(random)) : 1;
    const graph::Constant elements = graph::Constant::of(numbers, type.dtype);
    std::memcpy(made->input(i), elements.bytes().data(), elements.bytes().size());
  }
  RETURN_IF_ERROR(made->run());
  return made;
}

// The largest error of an element, in parts of what it may be off.
Result<double> compare(const graph::Graph& graph, const OnnxSession& found, const OnnxSession& expected) {
  double most = 0;
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const graph::TensorType& type = graph[graph.outputs[o]].type;
    const auto a = load_elements(found.output(o), type.elements(), type.dtype),
               b = load_elements(expected.output(o), type.elements(), type.dtype);
    double largest = 0;
    for (const double x : b) largest = std::max(largest, std::fabs(x));
    for (size_t e = 0; e < a.size(); ++e) {
      const double allowed = kRelative * (std::fabs(b[e]) + kOfLargest * largest);
      const double off = std::fabs(a[e] - b[e]) / allowed;
      if (!(off <= 1))
        return failed("output ", o, ", element ", e, ": with the provider ", a[e], ", alone ", b[e]);
      most = std::max(most, off);
    }
  }
  return most;
}

Contestant contestant(const char* name, OnnxSession& session) {
  OnnxSession* const run = &session;
  return {.name = name, .call = [run](int) { CHECK(run->run().is_ok()); }};
}

Status bench(const Options& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<OnnxRuntimeApi> api, OnnxRuntimeApi::open(options.threads));
  RETURN_IF_ERROR(api->load_plugin(options.plugin));
  ASSIGN_OR_RETURN(const graph::Graph graph, read_model_file(options.model, {}));
  ASSIGN_OR_RETURN(const std::string bytes, read_file(options.model, "an ONNX model", size_t{1} << 32));
  OnnxRuntimeApi::SessionOptions with{.all_optimizations = false, .provider = "TunerExecutionProvider"};
  with.provider_options = {
      {"strict", "1"}, {"threads", str(options.threads)}, {"tune_seconds", options.tune}};
  if (!options.cache.empty()) with.provider_options.emplace_back("cache", options.cache);
  if (!options.db.empty()) with.provider_options.emplace_back("db", options.db);
  ASSIGN_OR_RETURN(const Session ours, session(*api, bytes, graph, with));
  ASSIGN_OR_RETURN(const Session plain, session(*api, bytes, graph, {.all_optimizations = false}));
  ASSIGN_OR_RETURN(const Session all, session(*api, bytes, graph, {.all_optimizations = true}));
  ASSIGN_OR_RETURN(const double off, compare(graph, *ours, *plain));

  std::vector<Contestant> contestants = {contestant("with the provider", *ours), contestant("alone", *plain),
                                         contestant("alone, all optimisations", *all)};
  take_turns({.rounds = options.rounds, .threads = options.threads}, contestants);
  std::printf("%s: ONNX Runtime %s, %d threads, %d rounds; largest error %.2g of what is allowed (rtol %g)\n",
              options.model.c_str(), api->version.c_str(), options.threads, options.rounds, off, kRelative);
  double least = INFINITY;
  for (size_t c = 0; c < contestants.size(); ++c) {
    const Figure time = median_interval(contestants[c].ns, kSeed);
    std::printf("  %-26s %8.3f ms [%.3f, %.3f]", contestants[c].name.c_str(), time.middle / 1e6,
                time.low / 1e6, time.high / 1e6);
    if (c > 0) {
      const Figure ratio = ratio_interval(contestants[c].ns, contestants[0].ns, kSeed);
      std::printf("  speed with the provider over it %.3f [%.3f, %.3f]", ratio.middle, ratio.low, ratio.high);
      least = std::min(least, ratio.middle);
    }
    std::printf("\n");
  }
  std::printf("  over the faster one: %.3f\n", least);
  return Status::ok();
}

}  // namespace
}  // namespace tuner

int main(int count, char** words) {
  tuner::Options options;
  CLI::App app("ONNX Runtime with our execution provider against ONNX Runtime alone, in turn");
  app.add_option("MODEL", options.model, "ONNX model")->required();
  app.add_option("PLUGIN", options.plugin, "libtuner_onnxruntime.so")->required();
  app.add_option("--cache", options.cache, "Folder of the libraries");
  app.add_option("--db", options.db, "Database of measurements");
  app.add_option("--tune", options.tune, "Seconds to tune a part that is compiled");
  app.add_option("--rounds", options.rounds)->check(CLI::Range(5, 10000));
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024));
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const tuner::Status done = tuner::bench(options);
  if (done) return 0;
  std::fprintf(stderr, "bench_provider: %s\n", done.message().c_str());
  return done.code() == tuner::StatusCode::kInvalidArgument ? 2 : 1;
}
