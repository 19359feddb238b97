#include "tests/bench/gpu/peer_sources.h"

#include <algorithm>
#include <array>

#include "compiler_core/base/elements.h"
#include "tests/bench/gpu/cublaslt_search.h"
#include "tests/bench/gpu/cudnn_graph.h"
#include "tests/bench/gpu/peer_operands.h"

namespace tuner {
namespace {

template <class Product>
bool has_epilogue(const Product& w) {
  return w.bias || w.scale || w.residual || w.activation != Activation::kNone;
}

// "bias, residual and relu", as far as there are any.
template <class Product>
std::string epilogue_words(const Product& w) {
  std::vector<std::string> parts;
  if (w.bias) parts.emplace_back("bias");
  if (w.residual) parts.emplace_back("residual");
  if (w.activation == Activation::kRelu) parts.emplace_back("relu");
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += str(i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ", parts[i]);
  return text;
}

// --- sources ---

// A function of a library that has no algorithms to choose from.
class OneWay final : public WaySource {
 public:
  explicit OneWay(PeerWay way) : way_(std::move(way)) {}
  std::optional<Result<PeerWay>> next(const std::function<bool()>&) override {
    if (std::exchange(is_given_, true)) return std::nullopt;
    return way_;
  }
  Facts offered() const override { return {{"functions", int64_t{1}}}; }
  std::string refusal() const override { return {}; }

 private:
  PeerWay way_;
  bool is_given_ = false;
};

// The names of cublasLtReductionScheme_t.
std::string reduction_name(uint32_t reduction) {
  switch (reduction) {
    case 0:
      return "none";
    case 1:
      return "in place";
    case 2:
      return "in the type of sums";
    case 4:
      return "in the type of out";
    default:
      return str("#", reduction);
  }
}

class CublasLtWays final : public WaySource {
 public:
  using Bind = std::function<CublasLtProduct::Operands(int set)>;
  CublasLtWays(std::shared_ptr<const CublasLtProduct> product, PeerAnswer answer, Bind operands)
      : product_(std::move(product)),
        answer_(std::move(answer)),
        operands_(std::move(operands)),
        algorithms_(*product_) {}

  std::optional<Result<PeerWay>> next(const std::function<bool()>& over) override {
    const std::optional<CublasLtAlgorithm> algorithm = algorithms_.next(over);
    if (!algorithm) return std::nullopt;
    const CublasLtConfig& c = algorithm->config;
    PeerWay way{.facts = {{"id", int64_t{c.id}},
                          {"tile", cublaslt_tile_name(c.tile)},
                          {"stages", cublaslt_stages_name(c.stages)},
                          {"cluster", cublaslt_cluster_name(c.cluster)},
                          {"split k", int64_t{c.split_k}},
                          {"reduction", reduction_name(c.reduction)},
                          {"swizzle", int64_t{c.swizzle}},
                          {"custom", int64_t{c.custom}},
                          {"inner", int64_t{c.inner}},
                          {"workspace bytes", static_cast<int64_t>(algorithm->workspace_bytes)},
                          {"tensor cores", algorithm->on_tensor_cores},
                          {"found by", algorithm->origin}},
                .answer = answer_,
                .workspace_bytes = algorithm->workspace_bytes,
                .run = [product = product_, operands = operands_, algorithm = *algorithm](
                           int set, cuda::DevicePtr workspace) {
                  return product->run(algorithm, operands(set), workspace);
                }};
    way.name = str("id ", c.id, ", tile ", cublaslt_tile_name(c.tile), ", stages ",
                   cublaslt_stages_name(c.stages), ", cluster ", cublaslt_cluster_name(c.cluster));
    if (c.split_k > 1) way.name += str(", split k ", c.split_k, " reduced ", reduction_name(c.reduction));
    if (c.swizzle != 0) way.name += ", swizzled";
    if (c.custom != 0) way.name += str(", custom ", c.custom);
    way.name += str(algorithm->on_tensor_cores ? ", tensor cores" : "", " (", algorithm->origin, ")");
    return way;
  }
  Facts offered() const override {
    return {{"heuristic", algorithms_.by_heuristic()},
            {"heuristic of ids", algorithms_.by_heuristic_of_ids()},
            {"enumerated", algorithms_.enumerated()},
            {"ids", algorithms_.ids()},
            {"combinations asked about", algorithms_.checked()}};
  }
  std::string refusal() const override { return algorithms_.refusal(); }

 private:
  const std::shared_ptr<const CublasLtProduct> product_;
  const PeerAnswer answer_;
  const Bind operands_;
  CublasLtAlgorithms algorithms_;
};

class CudnnWays final : public WaySource {
 public:
  using Bind = std::function<CudnnPlan::Operands(int set)>;
  // kDirect: without Winograd and FFT; kOthers: only those.
  enum class Algorithms : uint8_t { kAll, kDirect, kOthers };
  CudnnWays(std::unique_ptr<CudnnGraph> graph, PeerAnswer answer, Bind operands, Algorithms algorithms)
      : graph_(std::move(graph)),
        answer_(std::move(answer)),
        operands_(std::move(operands)),
        algorithms_(algorithms) {}

  std::optional<Result<PeerWay>> next(const std::function<bool()>& over) override {
    for (;;) {
      auto found = graph_->next(over);
      if (!found) return std::nullopt;
      if (!found->is_ok()) return Result<PeerWay>(found->status());
      const std::shared_ptr<CudnnPlan> plan = **std::move(found);
      const bool is_direct = !plan->by_winograd && !plan->by_fft;
      if (algorithms_ == Algorithms::kAll || (algorithms_ == Algorithms::kDirect) == is_direct)
        return way_of(plan);
      ++passed_over_;
    }
  }
  Facts offered() const override {
    const CudnnGraph::Offered& o = graph_->offered();
    return {{"heuristic A", o.mode_a},
            {"heuristic B", o.mode_b},
            {"fallback", o.fallback},
            {"engines by their defaults", o.engines},
            {"of other arithmetic", o.left_out},
            {"of other algorithms", passed_over_}};
  }
  std::string refusal() const override { return "cuDNN: no plan for this graph"; }

 private:
  PeerWay way_of(const std::shared_ptr<CudnnPlan>& plan) const {
    PeerWay way{.name = str("engine ", plan->engine),
                .facts = {{"engine", plan->engine}},
                .answer = answer_,
                .workspace_bytes = plan->workspace_bytes,
                .run = [plan, operands = operands_](int set, cuda::DevicePtr workspace) {
                  CudnnPlan::Operands all = operands(set);
                  all.workspace = workspace;
                  return plan->run(all);
                }};
    for (const auto& [knob, value] : plan->knobs) {
      way.name += str(", ", cudnn_knob_name(knob), " ", value);
      way.facts.push_back({str("knob: ", cudnn_knob_name(knob)), value});
    }
    if (plan->by_winograd) way.name += ", winograd";
    if (plan->by_fft) way.name += ", fft";
    way.name += str(plan->on_tensor_cores ? ", tensor cores" : "", " (", plan->origin, ")");
    way.facts.push_back({"winograd", plan->by_winograd});
    way.facts.push_back({"fft", plan->by_fft});
    way.facts.push_back({"workspace bytes", static_cast<int64_t>(plan->workspace_bytes)});
    way.facts.push_back({"tensor cores", plan->on_tensor_cores});
    way.facts.push_back({"found by", plan->origin});
    return way;
  }

  const std::unique_ptr<CudnnGraph> graph_;
  const PeerAnswer answer_;
  const Bind operands_;
  const Algorithms algorithms_;
  int64_t passed_over_ = 0;
};

// The functions of before, which take one convolution and nothing else.
class CudnnFunctions final : public WaySource {
 public:
  CudnnFunctions(std::shared_ptr<const CudnnConvolution> convolution, PeerAnswer answer,
                 CudnnWays::Bind operands)
      : convolution_(std::move(convolution)), answer_(std::move(answer)), operands_(std::move(operands)) {}
  std::optional<Result<PeerWay>> next(const std::function<bool()>&) override {
    if (place_ == convolution_->algorithms().size()) return std::nullopt;
    const CudnnConvolution::Algorithm& algorithm = convolution_->algorithms()[place_++];
    return PeerWay{.name = algorithm.name,
                   .facts = {{"algorithm", algorithm.name},
                             {"workspace bytes", static_cast<int64_t>(algorithm.workspace_bytes)}},
                   .answer = answer_,
                   .workspace_bytes = algorithm.workspace_bytes,
                   .run = [convolution = convolution_, operands = operands_, algorithm](
                              int set, cuda::DevicePtr workspace) {
                     const CudnnPlan::Operands o = operands(set);
                     return convolution->run(algorithm, o.data, o.weight, workspace, o.out);
                   }};
  }
  Facts offered() const override {
    return {{"algorithms", static_cast<int64_t>(convolution_->algorithms().size())}};
  }
  std::string refusal() const override { return "cuDNN: no algorithm for it"; }

 private:
  const std::shared_ptr<const CudnnConvolution> convolution_;
  const PeerAnswer answer_;
  const CudnnWays::Bind operands_;
  size_t place_ = 0;
};

// --- products ---

using Made = Result<std::unique_ptr<WaySource>>;

template <class Source, class... Args>
std::unique_ptr<WaySource> make(Args&&... args) {
  return std::make_unique<Source>(std::forward<Args>(args)...);
}

// With what follows the product, or the product alone.
Made open_cublaslt(const CublasLt& lt, const MatmulWorkload& w, const ProductOperands& operands,
                   CublasLtProduct::Epilogue epilogue) {
  Result<std::unique_ptr<CublasLtProduct>> described =
      CublasLtProduct::describe(lt, w, epilogue, operands.bias ? operands.bias(0) : 0);
  if (!described.is_ok()) return described.status();
  const bool is_whole = epilogue == CublasLtProduct::Epilogue::kWhole;
  PeerAnswer answer = operands.answer;
  answer.bare = !is_whole && has_epilogue(w);
  if (answer.bare) answer.bias_errors.clear();  // no bias was added
  return make<CublasLtWays>(*std::move(described), std::move(answer), [operands](int set) {
    return CublasLtProduct::Operands{.a = operands.a(set),
                                     .b = operands.b(set),
                                     .out = operands.out(set),
                                     .bias = operands.bias ? operands.bias(set) : 0,
                                     .residual = operands.residual ? operands.residual(set) : 0};
  });
}

void ask_cublaslt(const CublasLt& lt, const MatmulWorkload& w, DeviceCase& ours,
                  std::vector<Question>& questions) {
  if (has_epilogue(w) && w.dtype != DType::kInt8)
    questions.push_back({.library = "cuBLASLt",
                         .what = str(epilogue_words(w), " in its epilogue"),
                         .open = [&lt, w, &ours]() -> Made {
                           ASSIGN_OR_RETURN(const ProductOperands operands, product_operands(ours, w));
                           return open_cublaslt(lt, w, operands, CublasLtProduct::Epilogue::kWhole);
                         }});
  std::string what = has_epilogue(w) ? "the product alone, without bias and activation" : "";
  if (w.dtype == DType::kInt8)
    what += str(what.empty() ? "" : "; ", "operands of its own: a less 128 as int8 [M, K], b as [N, K]");
  questions.push_back({.kind = questions.empty() ? Question::Kind::kCounts : Question::Kind::kIfNone,
                       .library = "cuBLASLt",
                       .what = what,
                       .open = [&lt, w, &ours]() -> Made {
                         ASSIGN_OR_RETURN(const ProductOperands operands, w.dtype == DType::kInt8
                                                                              ? byte_operands(ours, w)
                                                                              : product_operands(ours, w));
                         return open_cublaslt(lt, w, operands, CublasLtProduct::Epilogue::kNothing);
                       }});
}

}  // namespace

// float32: what cuBLASLt has, and cublasSgemm, whose TF32 is off and which adds nothing. Tensor cores:
// cuBLASLt.
Result<std::vector<Question>> questions_for(const Libraries& libraries, const MatmulWorkload& w,
                                            DeviceCase& ours) {
  const bool is_float = w.dtype == DType::kFloat32 && !w.allow_tf32;
  RETURN_IF_ERROR(ours.can_finish());
  if (is_float) RETURN_IF_ERROR(libraries.cublas.is_ok() ? cublas_serves(w) : libraries.cublas.status());
  if (!is_float)
    RETURN_IF_ERROR(libraries.cublaslt.is_ok() ? cublaslt_serves(w) : libraries.cublaslt.status());
  std::vector<Question> questions;
  if (libraries.cublaslt.is_ok()) ask_cublaslt(*libraries.cublaslt, w, ours, questions);
  if (!is_float) return questions;
  const bool does_more = has_epilogue(w) && libraries.cublaslt.is_ok();
  questions.push_back({.kind = does_more ? Question::Kind::kIfNone : Question::Kind::kCounts,
                       .library = "cuBLAS",
                       .what = has_epilogue(w) ? "the product alone, without bias and activation" : "",
                       .open = [&cublas = *libraries.cublas, &ours, w]() -> Made {
                         return make<OneWay>(PeerWay{.name = "cublasSgemm",
                                                     .facts = {{"function", std::string("cublasSgemm")}},
                                                     .answer = {.bare = has_epilogue(w)},
                                                     .run = [&cublas, &ours, w](int set, cuda::DevicePtr) {
                                                       return cublas.multiply(w, ours.address(set, "a"),
                                                                              ours.address(set, "b"),
                                                                              ours.address(set, "out"));
                                                     }});
                       }});
  return questions;
}

// --- convolutions ---

namespace {

// A convolution of one tap that skips nothing is a product of its pixels by its weight, where channels come
// last.
bool is_product(const Conv2dWorkload& w) {
  return w.layout == "NHWC" && w.kernel_height == 1 && w.kernel_width == 1 && w.groups == 1 &&
         std::ranges::all_of(w.stride, [](int64_t s) { return s == 1; }) &&
         std::ranges::all_of(w.padding, [](int64_t p) { return p == 0; });
}

MatmulWorkload as_product(const Conv2dWorkload& w) {
  MatmulWorkload m{.m = w.batch * w.in_height * w.in_width, .n = w.out_channels, .k = w.in_channels};
  m.transpose_b = true;
  m.bias = w.bias;
  m.residual = w.residual;
  m.activation = w.activation;
  m.dtype = w.dtype;
  m.allow_tf32 = w.allow_tf32;
  m.narrow_out = w.narrow_out;
  return m;
}

struct CudnnTerms {
  bool channels_last = false;  // whatever the task says
  bool epilogue = true;
  std::optional<DType> bias, out;  // other types than the task's
  CudnnWays::Algorithms algorithms = CudnnWays::Algorithms::kAll;
};

Made open_cudnn(const Cudnn& cudnn, const Conv2dWorkload& w, DeviceCase& ours, const CudnnTerms& terms) {
  const DType out = terms.out.value_or(w.out_dtype()), bias = terms.bias.value_or(sum_dtype(w.dtype));
  const CudnnAsked asked{.channels_last = terms.channels_last || w.layout == "NHWC",
                         .bias = bias,
                         .out = out,
                         .epilogue = terms.epilogue};
  ASSIGN_OR_RETURN(std::unique_ptr<CudnnGraph> graph,
                   CudnnGraph::describe({.handle = cudnn.handle()}, w, asked));
  ASSIGN_OR_RETURN(
      ConvolutionOperands operands,
      convolution_operands(ours, w, asked.channels_last, terms.epilogue ? bias : DType::kFloat32));
  PeerAnswer answer = operands.answer;
  answer.bare = !terms.epilogue && has_epilogue(w);
  if (answer.bare) answer.bias_errors.clear();  // no bias was added
  if (out != w.out_dtype()) answer.written = out;
  return make<CudnnWays>(
      std::move(graph), std::move(answer),
      [operands](int set) {
        return CudnnPlan::Operands{.data = operands.data(set),
                                   .weight = operands.weight(set),
                                   .bias = operands.bias ? operands.bias(set) : 0,
                                   .residual = operands.residual ? operands.residual(set) : 0,
                                   .out = operands.out(set)};
      },
      terms.algorithms);
}

Made open_functions(const Cudnn& cudnn, const Conv2dWorkload& w, DeviceCase& ours) {
  DType out = w.out_dtype();
  Result<std::unique_ptr<CudnnConvolution>> described = CudnnConvolution::describe(cudnn, w, out);
  if (!described.is_ok() && out != w.dtype) {
    out = w.dtype;
    described = CudnnConvolution::describe(cudnn, w, out);
  }
  if (!described.is_ok()) return described.status();
  ASSIGN_OR_RETURN(const ConvolutionOperands operands,
                   convolution_operands(ours, w, w.layout == "NHWC", DType::kFloat32));
  PeerAnswer answer{.bare = has_epilogue(w)};
  if (out != w.out_dtype()) answer.written = out;
  return make<CudnnFunctions>(*std::move(described), std::move(answer), [operands](int set) {
    return CudnnPlan::Operands{
        .data = operands.data(set), .weight = operands.weight(set), .out = operands.out(set)};
  });
}

// What stands in a question beside the library: what it does, and on which terms.
std::string terms_words(const Conv2dWorkload& w, const CudnnTerms& terms) {
  std::string text = !has_epilogue(w) ? ""
                     : terms.epilogue ? str(epilogue_words(w), " in its graph")
                                      : "the convolution alone, without bias and activation";
  const auto add = [&text](const std::string& more) { text += str(text.empty() ? "" : "; ", more); };
  if (terms.bias && *terms.bias != sum_dtype(w.dtype)) add(str("bias in ", *terms.bias));
  if (terms.out && *terms.out != w.out_dtype()) add(str("out in ", *terms.out));
  if (terms.channels_last && w.layout != "NHWC") add("images as NHWC, in and out");
  if (!terms.channels_last && w.layout == "NHWC" && w.kernel_height * w.kernel_width > 1)
    add("weight as [OC, KH, KW, IC]");
  if (terms.algorithms == CudnnWays::Algorithms::kOthers) add("by Winograd and FFT");
  return text;
}

}  // namespace

Result<std::vector<Question>> questions_for(const Libraries& libraries, const Conv2dWorkload& w,
                                            DeviceCase& ours) {
  using Kind = Question::Kind;
  RETURN_IF_ERROR(ours.can_finish());
  RETURN_IF_ERROR(libraries.cudnn.is_ok() ? cudnn_serves(w) : libraries.cudnn.status());
  const Cudnn& cudnn = *libraries.cudnn;
  std::vector<Question> questions;
  const auto ask = [&](Kind kind, const CudnnTerms& terms) {
    questions.push_back(
        {.kind = kind, .library = "cuDNN", .what = terms_words(w, terms), .open = [&cudnn, w, &ours, terms] {
           return open_cudnn(cudnn, w, ours, terms);
         }});
  };
  // Ours is a direct sum. Where tensor cores may round what is multiplied, so may transformations.
  const bool is_exact = w.dtype == DType::kFloat32 && !w.allow_tf32;
  const auto direct = is_exact ? CudnnWays::Algorithms::kDirect : CudnnWays::Algorithms::kAll;
  // A bias of out's type is what the library's ready-made kernels take; others are compiled for the graph.
  const bool narrows_bias = w.bias && w.out_dtype() != sum_dtype(w.dtype);
  if (narrows_bias)
    ask(Kind::kCounts, {.bias = w.out_dtype(), .algorithms = direct});
  else
    ask(Kind::kCounts, {.algorithms = direct});
  if (is_product(w) && libraries.cublaslt.is_ok()) {
    const MatmulWorkload m = as_product(w);
    questions.push_back({.kind = Kind::kCounts,
                         .library = "cuBLASLt",
                         .what = str("as a product of ", m.m, " pixels",
                                     has_epilogue(w) ? str(", ", epilogue_words(w), " in its epilogue") : ""),
                         .open = [&lt = *libraries.cublaslt, w, m, &ours]() -> Made {
                           ASSIGN_OR_RETURN(const ProductOperands operands, pixel_operands(ours, w));
                           return open_cublaslt(lt, m, operands, CublasLtProduct::Epilogue::kWhole);
                         }});
  }
  if (narrows_bias) ask(Kind::kCounts, {.algorithms = direct});
  if (w.out_dtype() != w.dtype) ask(Kind::kIfNone, {.out = w.dtype, .algorithms = direct});
  if (has_epilogue(w)) ask(Kind::kIfNone, {.epilogue = false, .algorithms = direct});
  questions.push_back(
      {.kind = Kind::kIfNone,
       .library = "cuDNN",
       .what = str("its older functions",
                   has_epilogue(w) ? "; the convolution alone, without bias and activation" : ""),
       .open = [&cudnn, w, &ours] { return open_functions(cudnn, w, ours); }});
  if (w.layout == "NCHW" && !w.residual)
    ask(Kind::kBeside, {.channels_last = true,
                        .bias = narrows_bias ? std::optional(w.out_dtype()) : std::nullopt,
                        .algorithms = direct});
  if (is_exact) ask(Kind::kBeside, {.algorithms = CudnnWays::Algorithms::kOthers});
  return questions;
}

}  // namespace tuner
