// bench_model: a compiled model against ONNX Runtime on the same file, in one run, in turn. See README.md
// beside this file.
//
//   bench_model MODEL.onnx DIR [--rounds 40] [--threads 1] [--json FILE] [--most-error 0.001]
//               [--by-spread] [--starts 5] [--provider PLUGIN [OPTION=VALUE...]]
//
// DIR is what `tuner compile MODEL.onnx -o DIR` wrote. ONNX Runtime is found by BENCH_LIBONNXRUNTIME, and
// runs twice: as it comes, and with all its optimisations; the faster counts. Answers are compared first:
// each output within --most-error of its largest element, or, where DequantizeLinear gives it, within one
// step of its scale in 99.9 % of its elements. With --by-spread instead: no farther from ONNX Runtime without
// optimisations than with them (model/answer_spread.h).
// With --provider, ONNX Runtime with our execution provider takes part, too.
// Then: times in turn, the sum of our layers beside the whole, memory and the time to a first answer, each in
// a process of its own.
//
// Exit status: 0 all were right and timed; 1 a wrong answer, no library; 2 wrong use.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"
#include "compiler_core/runtime/bandwidth.h"
#include "compiler_core/runtime/dot_peak.h"
#include "compiler_core/runtime/peak.h"
#include "compiler_core/runtime/thread_pool.h"
#include "tests/bench/common/statistics.h"
#include "tests/bench/cpu/interleave.h"
#include "tests/bench/model/answer_spread.h"
#include "tests/bench/model/onednn_chain.h"
#include "tests/bench/model/onnx_session.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/model_file.h"

namespace tuner {
namespace {

constexpr uint64_t kSeed = 20261124;  // of inputs and of the bootstrap

struct Options {
  std::string model, folder, json, once, shapes;
  std::vector<std::string> provider;  // the plugin, then options of the provider, NAME=VALUE; empty: none
  int rounds = 40, threads = 1, starts = 5;
  bool by_spread = false;
  double most_error = 1e-3;  // of the largest element of an output, against another library's sums
};

// Inputs of a seed, as elements in memory.
std::vector<AlignedBuffer> inputs_of(const graph::Graph& graph) {
  std::vector<AlignedBuffer> memory;
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<float> real(-1, 1);
  for (const graph::ValueId v : graph.inputs) {
    const graph::TensorType& type = graph[v].type;
    std::vector<double> numbers(static_cast<size_t>(type.elements()));
    for (double& x : numbers) x = is_float(type.dtype) ? static_cast<double>(real(random)) : 1;
    const graph::Constant elements = graph::Constant::of(numbers, type.dtype);
    memory.emplace_back(type.bytes());
    std::memcpy(memory.back().data(), elements.bytes().data(), elements.bytes().size());
  }
  return memory;
}

// Our library with inputs and outputs.
class Ours {
 public:
  static Result<std::unique_ptr<Ours>> open(const std::string& folder, const graph::Graph& graph,
                                            int threads) {
    std::unique_ptr<Ours> out(new Ours(threads));
    ASSIGN_OR_RETURN(CompiledModel model, CompiledModel::open(folder));
    out->model_ = std::make_unique<CompiledModel>(std::move(model));
    out->runtime_ = out->pool_.runtime(nullptr);
    ASSIGN_OR_RETURN(ModelContext context, out->model_->context(threads > 1 ? &out->runtime_ : nullptr));
    out->context_ = std::make_unique<ModelContext>(std::move(context));
    out->inputs_ = inputs_of(graph);
    for (const AlignedBuffer& b : out->inputs_) out->in_.push_back(b.data());
    for (const graph::ValueId v : graph.outputs) {
      out->outputs_.emplace_back(graph[v].type.bytes());
      out->out_.push_back(out->outputs_.back().data());
    }
    return out;
  }
  void run() {
    const Status done = context_->run(in_, out_);
    CHECK(done.is_ok()) << done.message();
  }
  const void* output(size_t i) const { return out_[i]; }
  const CompiledModel& model() const { return *model_; }
  ModelContext& context() { return *context_; }

 private:
  explicit Ours(int threads) : pool_(threads) {}

  ThreadPool pool_;
  tuner_runtime runtime_{};
  std::unique_ptr<CompiledModel> model_;
  std::unique_ptr<ModelContext> context_;
  std::vector<AlignedBuffer> inputs_, outputs_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
};

Result<std::unique_ptr<OnnxSession>> session(const OnnxRuntimeApi& api, const std::string& bytes,
                                             const graph::Graph& graph,
                                             const OnnxRuntimeApi::SessionOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<OnnxSession> made, OnnxSession::open(api, bytes, graph, options));
  const std::vector<AlignedBuffer> inputs = inputs_of(graph);
  for (size_t k = 0; k < inputs.size(); ++k)
    std::memcpy(made->input(k), inputs[k].data(), static_cast<size_t>(inputs[k].bytes()));
  return made;
}

// The largest difference, relative to the largest element.
double error_of(const void* found, const void* expected, const graph::TensorType& type) {
  const std::vector<double> a = load_elements(found, type.elements(), type.dtype),
                            b = load_elements(expected, type.elements(), type.dtype);
  double most = 0, error = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    most = std::max(most, std::fabs(b[k]));
    const double difference = std::fabs(a[k] - b[k]);
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
  }
  return most > 0 ? error / most : error;
}

// The scale of bytes that become the output at the end of the model; nothing: it is no such output.
std::optional<double> step_of(const graph::Graph& graph, graph::ValueId output) {
  const size_t maker = graph::Uses(graph).maker(output);
  if (maker == graph::Uses::kNoNode || graph.nodes[maker].op != "DequantizeLinear") return std::nullopt;
  const graph::Value& scale = graph[graph.nodes[maker].inputs[1]];
  if (!scale.constant || scale.type.elements() != 1) return std::nullopt;
  return scale.constant->numbers(scale.type.dtype)[0];
}

// How answers of two libraries differ.
struct Difference {
  double error = 0;                        // the largest, of floats: relative to the largest element
  int64_t elements = 0, off = 0, far = 0;  // of outputs in steps: all, not the same, more than one step away
};
Difference difference_of(const graph::Graph& graph, const Ours& ours, const OnnxSession& other) {
  Difference all;
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const graph::TensorType& type = graph[graph.outputs[o]].type;
    const std::optional<double> step = step_of(graph, graph.outputs[o]);
    if (!step) {
      all.error = std::max(all.error, error_of(ours.output(o), other.output(o), type));
      continue;
    }
    const std::vector<double> a = load_elements(ours.output(o), type.elements(), type.dtype),
                              b = load_elements(other.output(o), type.elements(), type.dtype);
    all.elements += type.elements();
    for (size_t k = 0; k < a.size(); ++k) {
      const double steps = std::fabs(a[k] - b[k]) / *step;
      all.off += steps <= 0.5 ? 0 : 1;
      all.far += steps <= 1.5 ? 0 : 1;
    }
  }
  return all;
}
// OK if they are the same but for rounding; prints how they differ.
Status check_difference(const Difference& found, double most_error) {
  if (found.elements > 0)
    std::printf("  in steps of bytes: %lld of %lld elements differ, %lld by more than one step\n",
                static_cast<long long>(found.off), static_cast<long long>(found.elements),
                static_cast<long long>(found.far));
  if (!(found.error <= most_error))
    return failed("answers differ by ", found.error, " of the largest output, expected at most ", most_error);
  if (found.far * 1000 > found.elements)
    return failed("answers differ by more than one step in ", found.far, " of ", found.elements,
                  " elements, expected at most 0.1 %");
  return Status::ok();
}

// ONNX Runtime with our execution provider (deploy/onnxruntime), which must have the whole model.
Result<std::unique_ptr<OnnxSession>> session_with_provider(const Options& options, OnnxRuntimeApi& api,
                                                           const std::string& bytes,
                                                           const graph::Graph& graph) {
  RETURN_IF_ERROR(api.load_plugin(options.provider[0]));
  OnnxRuntimeApi::SessionOptions with{.all_optimizations = false, .spinning = true};
  with.provider = "TunerExecutionProvider";
  with.provider_options = {{"strict", "1"}, {"threads", str(options.threads)}};
  for (size_t k = 1; k < options.provider.size(); ++k) {
    const std::string& word = options.provider[k];
    const size_t mark = word.find('=');
    if (mark == std::string::npos)
      return invalid_argument("--provider: found ", word, ", expected OPTION=VALUE");
    with.provider_options.emplace_back(word.substr(0, mark), word.substr(mark + 1));
  }
  return session(api, bytes, graph, with);
}

// OK if each element is the expected one within 1e-3 of it, and of a thousandth of the largest.
Status check_same(const graph::Graph& graph, const OnnxSession& found, const OnnxSession& expected) {
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const graph::TensorType& type = graph[graph.outputs[o]].type;
    const auto a = load_elements(found.output(o), type.elements(), type.dtype),
               b = load_elements(expected.output(o), type.elements(), type.dtype);
    double largest = 0;
    for (const double x : b) largest = std::max(largest, std::fabs(x));
    for (size_t e = 0; e < a.size(); ++e)
      if (!(std::fabs(a[e] - b[e]) <= 1e-3 * (std::fabs(b[e]) + 1e-3 * largest)))
        return failed("with the provider output ", o, ", element ", e, " is ", a[e], ", alone ", b[e]);
  }
  return Status::ok();
}

// How fast the last contestant is beside ONNX Runtime alone, contestants 1 and 2.
double print_provider(const std::vector<Contestant>& contestants) {
  const Figure time = median_interval(contestants.back().ns, kSeed);
  std::printf("  %-34s %.3f ms [%.3f, %.3f]\n", contestants.back().name.c_str(), time.middle / 1e6,
              time.low / 1e6, time.high / 1e6);
  double least = INFINITY;
  for (size_t c = 1; c <= 2; ++c) {
    const Figure ratio = ratio_interval(contestants[c].ns, contestants.back().ns, kSeed);
    std::printf("  %-34s over it %.3f [%.3f, %.3f]\n", contestants[c].name.c_str(), ratio.middle, ratio.low,
                ratio.high);
    least = std::min(least, ratio.middle);
  }
  return least;
}

// The median time of each of our steps, of as many runs as rounds.
std::vector<double> step_times(Ours& ours, int rounds) {
  const size_t steps = ours.model().plan().steps.size();
  std::vector<std::vector<double>> samples(steps);
  std::chrono::steady_clock::time_point begin;
  ours.context().watch([&](size_t step, bool done) {
    const auto now = std::chrono::steady_clock::now();
    if (done) samples[step].push_back(std::chrono::duration<double, std::nano>(now - begin).count());
    begin = now;
  });
  for (int r = 0; r < rounds; ++r) ours.run();
  ours.context().watch({});
  std::vector<double> medians;
  for (std::vector<double>& s : samples) medians.push_back(s.empty() ? 0 : median(s));  // empty: left out
  return medians;
}

// The bytes of constants that a run reads, each once; without tables of which it picks rows.
int64_t constants_read(const CompiledPlan& plan) {
  std::map<int64_t, int64_t> bytes;  // by offset in the file
  for (const PlanStep& step : plan.steps)
    if (step.workload.find("Gather") == std::string::npos)
      for (const PlanOperand& each : step.reads)
        if (each.at == "weights") bytes[each.offset] = std::max(bytes[each.offset], each.bytes);
  int64_t sum = 0;
  for (const auto& [offset, count] : bytes) sum += count;
  return sum;
}
// Against what one thread reads of the memory behind all caches.
void print_bandwidth(const CompiledPlan& plan, double ns) {
  constexpr int64_t kKilobyte = 1024,
                    kMegabyte = kKilobyte * kKilobyte;  // any caches: only what is behind counts
  const MemoryLevel memory = memory_levels(32 * kKilobyte, kMegabyte, 32 * kMegabyte).back();
  const double most = measure_read_gbps(memory, 100), bytes = static_cast<double>(constants_read(plan));
  std::printf("  constants: %.1f MB, read at %.1f GB/s, %.0f %% of the %.1f GB/s that a thread reads of %s\n",
              bytes / 1e6, bytes / ns, 100 * bytes / ns / most, most, memory.name.c_str());
}

// --- processes of their own: memory, and the time to a first answer ---

struct Once {
  double first_ms = 0;  // from nothing to the first answer, files in the page cache
  int64_t peak_kb = 0;  // resident, shared pages of files included
};

int64_t peak_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6));
  return 0;
}

// Names and types of a model's inputs and outputs, for a child that must not spend memory on reading the
// model for them.
nlohmann::json shapes_json(const graph::Graph& graph) {
  nlohmann::json j{{"inputs", nlohmann::json::array()}, {"outputs", nlohmann::json::array()}};
  const auto tensor = [&](const std::string& name, graph::ValueId v) {
    return nlohmann::json{
        {"name", name}, {"dtype", dtype_name(graph[v].type.dtype)}, {"shape", graph[v].type.shape}};
  };
  for (const graph::ValueId v : graph.inputs) j["inputs"].push_back(tensor(graph[v].name, v));
  for (size_t o = 0; o < graph.outputs.size(); ++o)
    j["outputs"].push_back(tensor(graph.output_names[o], graph.outputs[o]));
  return j;
}
graph::Graph graph_of(const nlohmann::json& shapes) {
  graph::Graph graph;
  const auto add = [&](const nlohmann::json& t) {
    graph::Value value{.name = t["name"], .type = {}, .constant = {}};
    value.type = {*dtype_from_name(t["dtype"].get<std::string>()), t["shape"].get<std::vector<int64_t>>()};
    graph.values.push_back(std::move(value));
    return graph.values.size() - 1;
  };
  for (const auto& t : shapes["inputs"]) graph.inputs.push_back(add(t));
  for (const auto& t : shapes["outputs"]) {
    graph.outputs.push_back(add(t));
    graph.output_names.push_back(t["name"]);
  }
  return graph;
}

// In the child: loads and runs once.
Status run_once(const Options& options) {
  ASSIGN_OR_RETURN(const std::string text, read_file(options.shapes, "shapes of a model", 1 << 20));
  const graph::Graph graph = graph_of(nlohmann::json::parse(text));
  const auto begin = std::chrono::steady_clock::now();
  if (options.once == "ours") {
    ASSIGN_OR_RETURN(const std::unique_ptr<Ours> ours, Ours::open(options.folder, graph, options.threads));
    ours->run();
  } else {
    ASSIGN_OR_RETURN(const std::unique_ptr<OnnxRuntimeApi> api, OnnxRuntimeApi::open(options.threads));
    std::string bytes;
    ASSIGN_OR_RETURN(bytes, read_file(options.model, "an ONNX model", size_t{1} << 32));
    ASSIGN_OR_RETURN(const std::unique_ptr<OnnxSession> made,
                     session(*api, bytes, graph, {.all_optimizations = options.once == "optimised"}));
    bytes = std::string();
    RETURN_IF_ERROR(made->run());
  }
  const double first_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%s\n", nlohmann::json{{"first_ms", first_ms}, {"peak_kb", peak_kb()}}.dump().c_str());
  return Status::ok();
}

// The best of a few starts: the first one reads files. Nothing is known without any.
Result<Once> once(const Options& options, const graph::Graph& graph, const std::string& who) {
  if (options.starts == 0) return Once{};
  Once best{.first_ms = INFINITY};
  for (int k = 0; k < options.starts; ++k) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ScratchFolder> folder, ScratchFolder::make("bench_model"));
    const std::string log = folder->file("out"), shapes = folder->file("shapes.json");
    std::ofstream(shapes) << shapes_json(graph).dump();
    ASSIGN_OR_RETURN(const pid_t child, start_program({.path = "/proc/self/exe",
                                                       .words = {"bench_model", options.model, options.folder,
                                                                 "--once", who, "--shapes", shapes},
                                                       .log = log}));
    const std::optional<int> status = wait_for_end(child, std::chrono::seconds(120));
    if (!status) end_program(child, std::chrono::seconds(1));
    ASSIGN_OR_RETURN(const std::string text, read_file(log, "the output of a child", 1 << 20));
    if (!status || *status != 0) return failed(who, ": ", text);
    const auto j = nlohmann::json::parse(text, nullptr, false);
    if (j.is_discarded()) return failed(who, ": ", text);
    best.first_ms = std::min(best.first_ms, j["first_ms"].get<double>());
    best.peak_kb = std::max(best.peak_kb, j["peak_kb"].get<int64_t>());
  }
  return best;
}

// --- the model chained by hand in oneDNN ---

struct Chain {
  std::string name;
  std::unique_ptr<OnednnChain> calls;
};
struct Chains {
  std::unique_ptr<Onednn> library;
  ModelSteps steps;
  std::vector<Chain> all;
  std::string why_none;
};

// Chains by direct convolutions and by Winograd's. None where a step is not chained, or the library is not
// here.
Result<Chains> chains_of(const graph::Graph& graph, int threads) {
  Chains out;
  graph::Graph optimized = graph;
  RETURN_IF_ERROR(optimize(optimized, model_evaluator()));
  ASSIGN_OR_RETURN(out.steps, partition(std::move(optimized)));
  Result<std::unique_ptr<Onednn>> library = Onednn::open(threads);
  if (!library) {
    out.why_none = library.message();
    return out;
  }
  out.library = *std::move(library);
  const std::vector<AlignedBuffer> inputs = inputs_of(graph);
  for (const bool winograd : {false, true}) {
    auto made = OnednnChain::make(*out.library, out.steps, winograd);
    if (!made) {
      out.all.clear();
      out.why_none = made.message();
      return out;
    }
    for (size_t k = 0; k < inputs.size(); ++k)
      std::memcpy((*made)->input(k), inputs[k].data(), static_cast<size_t>(inputs[k].bytes()));
    out.all.push_back(
        {str("oneDNN ", out.library->version(), winograd ? " chained, Winograd" : " chained, direct"),
         *std::move(made)});
  }
  return out;
}

// --- the report ---

struct Peer {
  std::string name, once;
  std::unique_ptr<OnnxSession> session;
};

std::string ms(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", ns / 1e6);
  return text;
}

// Runs everybody once and compares the answers. Returns the largest difference to ONNX Runtime.
Result<double> compare_answers(const Options& options, const graph::Graph& graph, const OnnxRuntimeApi& api,
                               Ours& ours, std::vector<Peer>& peers, const OnnxSession* with_provider,
                               const Chains& chains) {
  ours.run();
  double error = 0;
  for (const Peer& peer : peers) {
    RETURN_IF_ERROR(peer.session->run());
    const Difference found = difference_of(graph, ours, *peer.session);
    std::printf("%s: largest difference to %s %s: %.2g of the largest output\n", options.model.c_str(),
                peer.name.c_str(), api.version.c_str(), found.error);
    if (!options.by_spread) RETURN_IF_ERROR(check_difference(found, options.most_error));
    error = std::max(error, found.error);
    if (with_provider != nullptr) RETURN_IF_ERROR(check_same(graph, *with_provider, *peer.session));
  }
  if (options.by_spread) {
    std::string bytes;
    ASSIGN_OR_RETURN(bytes, read_file(options.model, "an ONNX model", size_t{1} << 32));
    ASSIGN_OR_RETURN(const std::unique_ptr<OnnxSession> plain,
                     session(api, bytes, graph, {.all_optimizations = false, .no_optimizations = true}));
    RETURN_IF_ERROR(plain->run());
    std::vector<const void*> outputs;
    for (size_t o = 0; o < graph.outputs.size(); ++o) outputs.push_back(ours.output(o));
    RETURN_IF_ERROR(check_spread(graph, outputs, *peers.back().session, *plain));
  }
  if (chains.all.empty()) std::printf("  no chain of oneDNN: %s\n", chains.why_none.c_str());
  for (const Chain& chain : chains.all) {
    chain.calls->run();
    for (size_t o = 0; o < graph.outputs.size(); ++o) {
      const double off = error_of(chain.calls->output(o), ours.output(o), graph[graph.outputs[o]].type);
      if (!(off <= options.most_error))
        return failed(chain.name, ": answers differ by ", off, " of the largest output");
    }
  }
  return error;
}

double lower_quartile(std::vector<double> ns) {
  std::ranges::sort(ns);
  return ns[ns.size() / 4];
}

// One peer beside us: times, their ratio, its start. On a busy machine lower quartiles say more: whoever was
// disturbed less is not the faster one.
Result<nlohmann::ordered_json> print_peer(const Options& options, const graph::Graph& graph, const Peer& peer,
                                          const Contestant& ours, const Contestant& theirs) {
  const Figure ratio = ratio_interval(theirs.ns, ours.ns, kSeed), time = median_interval(theirs.ns, kSeed);
  const double quartile = lower_quartile(theirs.ns), own = lower_quartile(ours.ns);
  ASSIGN_OR_RETURN(const Once start, once(options, graph, peer.once));
  std::printf("  %-34s %s, /ours %.3f [%.3f, %.3f]; lower quartiles %s, %s: %.3f\n", peer.name.c_str(),
              ms(time.middle).c_str(), ratio.middle, ratio.low, ratio.high, ms(quartile).c_str(),
              ms(own).c_str(), quartile / own);
  if (options.starts > 0)
    std::printf("  %-34s first answer after %.1f ms, peak %.1f MB\n", "", start.first_ms,
                static_cast<double>(start.peak_kb) / 1e3);
  return nlohmann::ordered_json{{"name", peer.name},          {"ns", time.middle},
                                {"ratio", ratio.middle},      {"ratio_low", ratio.low},
                                {"ratio_high", ratio.high},   {"lower_quartiles", quartile / own},
                                {"first_ms", start.first_ms}, {"peak_kb", start.peak_kb}};
}

// Our times, as a whole and step by step, beside what the machine can do.
Result<nlohmann::ordered_json> print_ours(const Options& options, const graph::Graph& graph, Ours& ours,
                                          const Contestant& timed) {
  const std::vector<double> steps = step_times(ours, options.rounds);
  double sum = 0;
  for (const double ns : steps) sum += ns;
  const double peak = measure_fma_peak_gflops(), narrow_peak = measure_peak_gops(DType::kBFloat16);
  std::printf("  peak of one thread: float32 %.0f GFLOP/s, bfloat16 %.2f times that\n", peak,
              narrow_peak / peak);
  const Figure whole = median_interval(timed.ns, kSeed);
  std::printf("  %-34s %s [%s, %s]\n", "ours", ms(whole.middle).c_str(), ms(whole.low).c_str(),
              ms(whole.high).c_str());
  std::printf("  %-34s %s, the whole is %.3f of it\n", "the sum of its steps", ms(sum).c_str(),
              whole.middle / sum);
  print_bandwidth(ours.model().plan(), whole.middle);
  ASSIGN_OR_RETURN(const Once own, once(options, graph, "ours"));
  if (options.starts > 0)
    std::printf("  %-34s first answer after %.1f ms, peak %.1f MB\n", "", own.first_ms,
                static_cast<double>(own.peak_kb) / 1e3);
  return nlohmann::ordered_json{{"model", options.model},
                                {"threads", options.threads},
                                {"rounds", options.rounds},
                                {"ours_ns", whole.middle},
                                {"sum_of_steps_ns", sum},
                                {"peak_gflops", peak},
                                {"bfloat16_peak_gflops", narrow_peak},
                                {"ours_once", {{"first_ms", own.first_ms}, {"peak_kb", own.peak_kb}}}};
}

Status bench(const Options& options) {
  ASSIGN_OR_RETURN(const graph::Graph graph, read_model_file(options.model, {}));
  ASSIGN_OR_RETURN(const std::string bytes, read_file(options.model, "an ONNX model", size_t{1} << 32));
  ASSIGN_OR_RETURN(const std::unique_ptr<OnnxRuntimeApi> api, OnnxRuntimeApi::open(options.threads));
  std::unique_ptr<OnnxSession> with_provider;
  if (!options.provider.empty()) {
    ASSIGN_OR_RETURN(with_provider, session_with_provider(options, *api, bytes, graph));
    RETURN_IF_ERROR(with_provider->run());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Ours> ours, Ours::open(options.folder, graph, options.threads));
  std::vector<Peer> peers;
  for (const bool all : {false, true}) {
    Peer& peer = peers.emplace_back(Peer{all ? "ONNX Runtime, all optimisations" : "ONNX Runtime as it comes",
                                         all ? "optimised" : "plain", nullptr});
    ASSIGN_OR_RETURN(peer.session, session(*api, bytes, graph, {.all_optimizations = all, .spinning = true}));
  }
  ASSIGN_OR_RETURN(const Chains chains, chains_of(graph, options.threads));
  ASSIGN_OR_RETURN(const double error,
                   compare_answers(options, graph, *api, *ours, peers, with_provider.get(), chains));

  std::vector<Contestant> contestants;
  contestants.push_back({.name = "ours", .kind = ContestantKind::kOurs, .call = [&](int) { ours->run(); }});
  for (Peer& peer : peers)
    contestants.push_back({.name = peer.name, .call = [&peer](int) { CHECK(peer.session->run().is_ok()); }});
  for (const Chain& chain : chains.all)
    contestants.push_back({.name = chain.name, .call = [&chain](int) { chain.calls->run(); }});
  if (with_provider != nullptr)
    contestants.push_back({.name = "ONNX Runtime with our provider",
                           .call = [&](int) { CHECK(with_provider->run().is_ok()); }});
  take_turns({.rounds = options.rounds, .threads = options.threads}, contestants);

  ASSIGN_OR_RETURN(nlohmann::ordered_json json, print_ours(options, graph, *ours, contestants[0]));
  json["error"] = error;
  double best = INFINITY;
  for (size_t p = 0; p < peers.size(); ++p) {
    ASSIGN_OR_RETURN(nlohmann::ordered_json peer,
                     print_peer(options, graph, peers[p], contestants[0], contestants[p + 1]));
    best = std::min(best, peer["ratio"].get<double>());
    json["peers"].push_back(std::move(peer));
  }
  for (size_t c = peers.size() + 1; c < peers.size() + 1 + chains.all.size(); ++c) {
    const Figure ratio = ratio_interval(contestants[c].ns, contestants[0].ns, kSeed);
    const double time = median_interval(contestants[c].ns, kSeed).middle;
    std::printf("  %-34s %s, /ours %.3f [%.3f, %.3f]\n", contestants[c].name.c_str(), ms(time).c_str(),
                ratio.middle, ratio.low, ratio.high);
    json["chains"].push_back({{"name", contestants[c].name}, {"ns", time}, {"ratio", ratio.middle}});
  }
  std::printf("  ONNX Runtime / ours: %.3f\n", best);
  json["onnxruntime_over_ours"] = best;
  if (with_provider != nullptr) json["onnxruntime_over_provider"] = print_provider(contestants);
  if (!options.json.empty()) {
    std::ofstream out(options.json);
    out << json.dump(2) << "\n";
    if (!out.flush()) return failed(options.json, ": cannot be written");
  }
  return Status::ok();
}

}  // namespace
}  // namespace tuner

int main(int count, char** words) {
  tuner::Options options;
  CLI::App app("A compiled model against ONNX Runtime, in turn");
  app.add_option("MODEL", options.model, "ONNX model")->required();
  app.add_option("DIR", options.folder, "What tuner compile wrote of it")->required();
  app.add_option("--rounds", options.rounds)->check(CLI::Range(5, 10000));
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024));
  app.add_option("--starts", options.starts,
                 "Processes for the time to a first answer; 0: it is not measured")
      ->check(CLI::Range(0, 100));
  app.add_option("--json", options.json, "Figures to keep");
  app.add_option("--most-error", options.most_error,
                 "Of the largest element of an output; 0.05 for products in bfloat16")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag(
      "--by-spread", options.by_spread,
      "For deep networks in 8 bits: answers as near to ONNX Runtime without optimisations as its own");
  app.add_option("--provider", options.provider,
                 "libtuner_onnxruntime.so, then options of the provider, OPTION=VALUE");
  app.add_option("--once", options.once, "For its own children")->group("");
  app.add_option("--shapes", options.shapes, "For its own children")->group("");
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const tuner::Status done = options.once.empty() ? tuner::bench(options) : tuner::run_once(options);
  if (!done) {
    std::fprintf(stderr, "bench_model: %s\n", done.message().c_str());
    return done.code() == tuner::StatusCode::kInvalidArgument ? 2 : 1;
  }
  return 0;
}
