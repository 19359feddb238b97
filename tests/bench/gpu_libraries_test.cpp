// How bench_gpu calls cuBLASLt and cuDNN: every algorithm once, epilogues, TF32 where it is allowed and
// nowhere else, images with channels last, graphs and their plans. On the libraries of ours that tests/bench
// has, which refuse what the real ones would not forgive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>

#include "compiler_core/base/elements.h"
#include "measure_server/runner/input_data.h"
#include "tests/bench/gpu/cublaslt_search.h"
#include "tests/bench/gpu/cudnn.h"
#include "tests/bench/gpu/cudnn_graph.h"

namespace tuner {
namespace {

using cudnn::Attribute;
using cudnn::CudnnDescriptor;
using cudnn::Object;
using cudnn::Type;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using Epilogue = CublasLtProduct::Epilogue;

bool never() { return false; }

class GpuLibraries : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("TUNER_LIBCUDA", TUNER_FAKE_CUDA, 1);
    setenv("TUNER_LIBCUBLASLT", TUNER_FAKE_CUBLASLT, 1);
    setenv("TUNER_LIBCUDNN", TUNER_FAKE_CUDNN, 1);
    setenv("NVIDIA_TF32_OVERRIDE", "1", 1);  // of somebody else: the libraries must not see it
  }
  void SetUp() override {
    Result<cuda::DeviceContext> opened = cuda::DeviceContext::open(0);
    ASSERT_TRUE(opened.is_ok()) << opened.message();
    context_.emplace(*std::move(opened));
    ASSERT_TRUE(cuda::DeviceStream::create(stream_));
  }
  cuda::DevicePtr allocate(int64_t bytes) {
    cuda::DeviceMemory& memory = memory_.emplace_back();
    EXPECT_TRUE(cuda::DeviceMemory::allocate(bytes, memory));
    return memory.address();
  }
  cuda::DevicePtr upload(const std::vector<float>& values, DType dtype) {
    const std::string bytes = element_bytes(values, dtype);
    const cuda::DevicePtr address = allocate(static_cast<int64_t>(bytes.size()));
    EXPECT_TRUE(cuda::copy_to_device(address, bytes.data(), static_cast<int64_t>(bytes.size())));
    return address;
  }
  static std::vector<double> download(cuda::DevicePtr from, int64_t count, DType dtype) {
    std::string bytes(static_cast<size_t>(count * dtype_bytes(dtype)), '\0');
    EXPECT_TRUE(cuda::copy_to_host(bytes.data(), from, static_cast<int64_t>(bytes.size())));
    return load_elements(bytes.data(), count, dtype);
  }

  static float tf32(float x) {
    return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000) & 0xffffe000);
  }
  static double tolerance(DType out, double value) {
    return 1e-6 + (out == DType::kFloat32 ? 0 : 0x1p-8 * std::fabs(value));
  }

  std::optional<cuda::DeviceContext> context_;
  cuda::DeviceStream stream_;
  std::vector<cuda::DeviceMemory> memory_;
};

// --- cuBLASLt ---

TEST_F(GpuLibraries, Tf32IsUsedWhereItIsAskedForAndNowhereElse) {
  const Result<CublasLt> lt = CublasLt::open(stream_);
  ASSERT_TRUE(lt.is_ok()) << lt.message();
  MatmulWorkload w{.m = 3, .n = 4, .k = 5};
  const std::vector<float> a = random_values(1, 0, w.m * w.k), b = random_values(1, 1, w.k * w.n);
  const CublasLtProduct::Operands operands{.a = upload(a, DType::kFloat32),
                                           .b = upload(b, DType::kFloat32),
                                           .out = upload(std::vector<float>(12), DType::kFloat32)};
  for (const bool allowed : {false, true}) {
    w.allow_tf32 = allowed;
    const auto product = CublasLtProduct::describe(*lt, w, Epilogue::kNothing, 0);
    ASSERT_TRUE(product.is_ok()) << product.message();
    CublasLtAlgorithms algorithms(**product);
    ASSERT_TRUE((*product)->run(*algorithms.next(never), operands, 0).is_ok());
    const std::vector<double> found = download(operands.out, 12, DType::kFloat32);
    for (int64_t i = 0; i < w.m; ++i)
      for (int64_t j = 0; j < w.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < w.k; ++k) {
          const float x = a[static_cast<size_t>(i * w.k + k)], y = b[static_cast<size_t>(k * w.n + j)];
          sum += allowed ? double{tf32(x)} * tf32(y) : double{x} * y;
        }
        EXPECT_NEAR(found[static_cast<size_t>(i * w.n + j)], sum, 1e-6);
      }
  }
}

// Bias, residual and ReLU in all combinations, against the definition.
TEST_F(GpuLibraries, CublasLtDoesWhatFollowsAProduct) {
  const Result<CublasLt> lt = CublasLt::open(stream_);
  ASSERT_TRUE(lt.is_ok()) << lt.message();
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16})
    for (int parts = 0; parts < 8; ++parts) {
      MatmulWorkload w{.batch = 2, .m = 3, .n = 4, .k = 5};
      w.bias = parts & 1, w.residual = parts & 2, w.dtype = dtype;
      if (dtype != DType::kFloat32) w.narrow_out = dtype;
      if (parts & 4) w.activation = Activation::kRelu;
      SCOPED_TRACE(str(dtype, " parts ", parts));
      const std::vector<float> a = random_values(1, 0, 2 * 3 * 5, dtype),
                               b = random_values(1, 1, 2 * 5 * 4, dtype),
                               bias = random_values(1, 2, 4, dtype),
                               residual = random_values(1, 3, 24, dtype);
      const CublasLtProduct::Operands operands{.a = upload(a, dtype),
                                               .b = upload(b, dtype),
                                               .out = upload(std::vector<float>(24, 9), dtype),
                                               .bias = upload(bias, dtype),
                                               .residual = upload(residual, dtype)};
      const auto product = CublasLtProduct::describe(*lt, w, Epilogue::kWhole, operands.bias);
      ASSERT_TRUE(product.is_ok()) << product.message();
      CublasLtAlgorithms algorithms(**product);
      const auto algorithm = algorithms.next(never);
      ASSERT_TRUE(algorithm) << algorithms.refusal();
      const Status ran = (*product)->run(*algorithm, operands, 0);
      ASSERT_TRUE(ran.is_ok()) << ran.message();
      const std::vector<double> found = download(operands.out, 24, dtype);
      for (size_t i = 0; i < found.size(); ++i) {
        const size_t product_of = i / 12, row = i / 4 % 3, column = i % 4;
        double sum = (w.residual ? residual[i] : 0) + (w.bias ? bias[column] : 0);
        for (size_t k = 0; k < 5; ++k)
          sum += double{a[product_of * 15 + row * 5 + k]} * b[product_of * 20 + k * 4 + column];
        if (parts & 4) sum = std::max(sum, 0.0);
        EXPECT_NEAR(found[i], sum, tolerance(dtype, sum));
      }
    }
}

TEST_F(GpuLibraries, EveryAlgorithmOfCublasLtIsGivenOnceTheHeuristicsFirst) {
  const Result<CublasLt> lt = CublasLt::open(stream_);
  ASSERT_TRUE(lt.is_ok()) << lt.message();
  MatmulWorkload w{.m = 8, .n = 8, .k = 8, .dtype = DType::kBFloat16};
  const auto product = CublasLtProduct::describe(*lt, w, Epilogue::kNothing, 0);
  ASSERT_TRUE(product.is_ok()) << product.message();
  CublasLtAlgorithms algorithms(**product);
  std::vector<std::string> origins;
  std::set<CublasLtConfig> configs;
  while (const auto algorithm = algorithms.next(never)) {
    origins.push_back(algorithm->origin);
    EXPECT_TRUE(configs.insert(algorithm->config).second) << algorithm->origin;
    EXPECT_EQ(algorithm->on_tensor_cores, algorithm->config.id == 66);
    EXPECT_EQ(algorithm->workspace_bytes, algorithm->config.id == 66 ? 8192u : 0u);
  }
  // The second is offered with a state that says it cannot run. Of id 21 alone there is the first again, of
  // id 6 nothing.
  const std::vector<std::string> first(origins.begin(), origins.begin() + 6);
  EXPECT_THAT(first, testing::ElementsAre("heuristic #1", "heuristic #3", "heuristic #4", "heuristic #5",
                                          "heuristic #6", "heuristic of id 66, #1"));
  EXPECT_THAT(std::vector<std::string>(origins.begin() + 6, origins.end()), Each("enumerated"));
  // By tile, stages and cluster: one of id 6, 4 of id 21, 4 x 3 of id 66; four of these were there before.
  EXPECT_EQ(origins.size(), 6u + 1 + 4 + 12 - 4);
  EXPECT_THAT(configs, Contains(CublasLtConfig{.id = 66, .tile = 24, .stages = 35, .cluster = 3}));
  EXPECT_EQ(algorithms.by_heuristic(), 5);
  EXPECT_EQ(algorithms.by_heuristic_of_ids(), 2);
  EXPECT_EQ(algorithms.ids(), 3);
  EXPECT_EQ(algorithms.enumerated(), 13);
  // Clusters are asked about where tile and stages can be: each of 14 for 4 pairs of id 66, 4 of id 21 and
  // one of id 6.
  EXPECT_EQ(algorithms.checked(), 14 * (4 + 4 + 1));
}

TEST_F(GpuLibraries, AnEnumerationThatHasNoTimeLeftEnds) {
  const Result<CublasLt> lt = CublasLt::open(stream_);
  ASSERT_TRUE(lt.is_ok()) << lt.message();
  MatmulWorkload w{.m = 8, .n = 8, .k = 8, .dtype = DType::kBFloat16};
  const auto product = CublasLtProduct::describe(*lt, w, Epilogue::kNothing, 0);
  ASSERT_TRUE(product.is_ok()) << product.message();
  CublasLtAlgorithms algorithms(**product);
  int found = 0;
  while (algorithms.next([] { return true; })) ++found;
  EXPECT_EQ(found, 5) << "what the heuristic had said already";
  EXPECT_EQ(algorithms.checked(), 0);
}

TEST_F(GpuLibraries, ProductsThatCublasLtCannotBeToldOfAreRefused) {
  EXPECT_TRUE(cublaslt_serves({.dtype = DType::kInt8}).is_ok());
  EXPECT_EQ(cublaslt_serves({.dtype = DType::kInt8, .narrow_out = DType::kUInt8}).message(),
            "cuBLASLt: products of bytes are compared where out is int32; here it is uint8");
  EXPECT_EQ(cublaslt_serves({.m = int64_t{1} << 31}).message(), "cuBLASLt: a size does not fit 32 bits");
}

TEST(CublasLtNames, AreThoseOfNumbersThatAreKnown) {
  EXPECT_EQ(cublaslt_tile_name(0), "-");
  EXPECT_EQ(cublaslt_tile_name(24), "256x128");
  EXPECT_EQ(cublaslt_tile_name(36), "8x128");
  EXPECT_EQ(cublaslt_tile_name(233), "264x64");
  EXPECT_EQ(cublaslt_tile_name(393), "128x8");
  EXPECT_EQ(cublaslt_tile_name(630), "768x80");
  EXPECT_EQ(cublaslt_tile_name(634), "512x1024");
  EXPECT_EQ(cublaslt_tile_name(635), "#635");
  EXPECT_EQ(cublaslt_stages_name(16), "64x4");
  EXPECT_EQ(cublaslt_stages_name(35), "64xauto");
  EXPECT_EQ(cublaslt_stages_name(29), "#29");
  EXPECT_EQ(cublaslt_cluster_name(0), "auto");
  EXPECT_EQ(cublaslt_cluster_name(3), "2x1");
  EXPECT_EQ(cublaslt_cluster_name(1), "#1");
  EXPECT_EQ(cublaslt_cluster_name(51), "1x15");
}

// Where NVIDIA's header is installed: every name that it has.
TEST(CublasLtNames, AreThoseOfTheInstalledHeader) {
  std::ifstream in("/usr/local/cuda/include/cublasLt.h");
  if (!in) GTEST_SKIP() << "no cublasLt.h is installed here";
  const std::regex line(
      "CUBLASLT_(MATMUL_TILE|MATMUL_STAGES|CLUSTER_SHAPE)_([0-9]+)x([0-9AUTO]+)(x1)? = ([0-9]+)");
  int names = 0;
  for (std::string text; std::getline(in, text);) {
    std::smatch m;
    if (!std::regex_search(text, m, line)) continue;
    ++names;
    const int number = std::stoi(m[5]);
    const std::string second = m[3] == "AUTO" ? "auto" : m[3].str();
    const std::string found = m[1] == "MATMUL_TILE" ? cublaslt_tile_name(static_cast<uint32_t>(number))
                              : m[1] == "MATMUL_STAGES"
                                  ? cublaslt_stages_name(static_cast<uint32_t>(number))
                                  : cublaslt_cluster_name(static_cast<uint16_t>(number));
    EXPECT_EQ(found, m[2].str() + "x" + second) << text;
  }
  EXPECT_GT(names, 600);
}

// --- cuDNN ---

// Where element (n, c, h, w) of an image lies.
int64_t place(bool last, int64_t c, int64_t h, int64_t w, int64_t channels, int64_t height, int64_t width) {
  return last ? (h * width + w) * channels + c : (c * height + h) * width + w;
}

// One image with two groups, stride 2 and padding above and below, and what its convolution is by the
// definition.
struct OneImage {
  static constexpr int64_t kOut = 6, kGroups = 2, kPerGroup = 2;
  Conv2dWorkload w;
  std::vector<float> data, weight, bias, residual;

  explicit OneImage(DType dtype, bool last, bool tf32 = false) {
    w = {.in_channels = 4, .in_height = 5, .in_width = 6, .out_channels = kOut};
    w.kernel_height = 3, w.kernel_width = 2, w.groups = kGroups, w.stride = {2, 1}, w.padding = {1, 0, 1, 0};
    w.dtype = dtype, w.allow_tf32 = tf32, w.layout = w.out_layout = last ? "NHWC" : "NCHW";
    if (dtype != DType::kFloat32) w.narrow_out = dtype;
    data = random_values(1, 0, 4 * 5 * 6, dtype);
    weight = random_values(1, 1, kOut * kPerGroup * 3 * 2, dtype);
    bias = random_values(1, 2, kOut, dtype);
  }
  int64_t elements() const { return kOut * w.out_height() * w.out_width(); }
  std::vector<double> answer() const {
    const bool last = w.layout == "NHWC";
    const int64_t rows = w.out_height(), columns = w.out_width();
    std::vector<double> out(static_cast<size_t>(elements()));
    for (int64_t o = 0; o < kOut; ++o)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          double sum = w.bias ? bias[static_cast<size_t>(o)] : 0;
          for (int64_t i = 0; i < kPerGroup; ++i)
            for (int64_t k = 0; k < 6; ++k) {
              const int64_t row = 2 * r + k / 2 - w.padding[0], column = c + k % 2 - w.padding[1];
              if (row < 0 || row >= 5 || column < 0 || column >= 6) continue;
              const float p = data[static_cast<size_t>(place(last, o / 3 * 2 + i, row, column, 4, 5, 6))];
              const float q = weight[static_cast<size_t>(o * 12 + place(last, i, k / 2, k % 2, 2, 3, 2))];
              sum += double{p} * q;
            }
          const auto at = static_cast<size_t>(place(last, o, r, c, kOut, rows, columns));
          if (w.residual) sum += residual[at];
          out[at] = w.activation == Activation::kRelu ? std::max(sum, 0.0) : sum;
        }
    return out;
  }
};

class CudnnGraphs : public GpuLibraries {
 protected:
  void SetUp() override {
    GpuLibraries::SetUp();
    Result<Cudnn> opened = Cudnn::open(stream_);
    ASSERT_TRUE(opened.is_ok()) << opened.message();
    cudnn_.emplace(*std::move(opened));
  }
  // Every plan: runs those that can be run, and tells how far each answer is off, in tolerances; refused:
  // what was said.
  struct Outcome {
    std::string origin;
    int64_t engine = -1;
    bool on_tensor_cores = false;
    double error = -1;
    std::string refusal;
  };
  std::vector<Outcome> run_all(OneImage& image, CudnnAsked asked) {
    const Conv2dWorkload& w = image.w;
    asked.channels_last = w.layout == "NHWC";
    asked.out = w.out_dtype();
    if (w.residual) image.residual = random_values(1, 3, image.elements(), w.out_dtype());
    const std::vector<double> wanted = image.answer();
    CudnnPlan::Operands operands{.data = upload(image.data, w.dtype),
                                 .weight = upload(image.weight, w.dtype),
                                 .bias = upload(image.bias, asked.bias),
                                 .residual = w.residual ? upload(image.residual, w.out_dtype()) : 0,
                                 .out = allocate(image.elements() * 4),
                                 .workspace = allocate(4096)};
    const auto graph = CudnnGraph::describe({.handle = cudnn_->handle()}, w, asked);
    EXPECT_TRUE(graph.is_ok()) << graph.message();
    std::vector<Outcome> all;
    if (!graph.is_ok()) return all;
    while (auto plan = (*graph)->next(never)) {
      Outcome& o = all.emplace_back();
      if (!plan->is_ok()) {
        o.refusal = plan->message();
        continue;
      }
      o.origin = (**plan)->origin;
      o.engine = (**plan)->engine;
      o.on_tensor_cores = (**plan)->on_tensor_cores;
      const Status ran = (**plan)->run(operands);
      if (!ran) o.refusal = ran.message();
      if (!ran) continue;
      const std::vector<double> found = download(operands.out, image.elements(), w.out_dtype());
      for (size_t i = 0; i < found.size(); ++i)
        o.error = std::max(o.error, std::fabs(found[i] - wanted[i]) / tolerance(w.out_dtype(), wanted[i]));
    }
    offered_ = (*graph)->offered();
    return all;
  }
  std::optional<Cudnn> cudnn_;
  CudnnGraph::Offered offered_;
};

// Everything that can follow a convolution, in both layouts and all types, against the definition. Engine 3
// is wrong, and of engine 2 there is no plan.
TEST_F(CudnnGraphs, ComputeAConvolutionAndWhatFollowsIt) {
  for (const bool last : {false, true})
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16})
      for (int parts = 0; parts < 8; ++parts) {
        SCOPED_TRACE(str(last ? "NHWC " : "NCHW ", dtype, " parts ", parts));
        OneImage image(dtype, last);
        image.w.bias = parts & 1, image.w.residual = parts & 2;
        if (parts & 4) image.w.activation = Activation::kRelu;
        const std::vector<Outcome> all = run_all(image, {.bias = image.w.out_dtype()});
        int right = 0;
        for (const Outcome& o : all) {
          if (o.engine < 0) {
            EXPECT_EQ(o.refusal,
                      "engine 2: cuDNN: cudnnBackendFinalize answered status 3000 (engine 2 is not made)");
          } else if (o.engine == 3) {
            EXPECT_GT(o.error, 1);
          } else {
            EXPECT_EQ(o.refusal, "") << o.origin;
            EXPECT_LE(o.error, 1) << o.origin;
            ++right;
          }
        }
        EXPECT_GE(right, 3);
      }
}

TEST_F(CudnnGraphs, AreAskedByAllHeuristicsEachPlanOnce) {
  OneImage image(DType::kBFloat16, true);
  const std::vector<Outcome> all = run_all(image, {.bias = DType::kBFloat16});
  std::vector<std::string> origins;
  for (const Outcome& o : all) origins.push_back(o.origin);
  // A: the refusing one, the wrong one, two tiles, and one without tensor cores; B repeats them and has a
  // third tile.
  EXPECT_THAT(origins,
              testing::ElementsAre("", "heuristic A #2", "heuristic A #3", "heuristic A #4", "heuristic A #5",
                                   "heuristic B #6", "fallback #1", "engine's defaults"));
  EXPECT_EQ(offered_.mode_a, 5);
  EXPECT_EQ(offered_.mode_b, 6);
  EXPECT_EQ(offered_.fallback, 1);
  EXPECT_EQ(offered_.engines, 5) << "of these only one has knobs, which it leaves to the library";
  EXPECT_EQ(offered_.left_out, 0);
}

// Tensor cores would round what is multiplied.
TEST_F(CudnnGraphs, Float32GetsNoTensorCoresUnlessTf32IsAllowed) {
  for (const bool allowed : {false, true}) {
    OneImage image(DType::kFloat32, false, allowed);
    const std::vector<Outcome> all = run_all(image, {});
    std::vector<bool> on_tensor_cores;
    for (const Outcome& o : all) on_tensor_cores.push_back(o.on_tensor_cores);
    if (allowed)
      EXPECT_THAT(on_tensor_cores, Contains(true));
    else
      EXPECT_THAT(on_tensor_cores, Each(false));
    EXPECT_EQ(offered_.left_out, allowed ? 0 : 4) << "three tiles and the defaults";
  }
}

TEST_F(CudnnGraphs, ABiasOfAnotherTypeThanOutIsForTheCompiler) {
  OneImage image(DType::kBFloat16, true);
  image.w.bias = true;
  const std::vector<Outcome> all = run_all(image, {.bias = DType::kFloat32});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].engine, 6);
  EXPECT_LE(all[0].error, 1) << all[0].refusal;
}

TEST_F(CudnnGraphs, PaddingMayDifferFromSideToSide) {
  OneImage image(DType::kFloat32, false);
  image.w.padding = {1, 1, 2, 0};
  int right = 0;
  for (const Outcome& o : run_all(image, {})) {
    if (o.engine < 0 || o.engine == 3) continue;
    EXPECT_LE(o.error, 1) << o.refusal;
    ++right;
  }
  EXPECT_GE(right, 2);
}

TEST_F(CudnnGraphs, ADeviceIsWrittenDownAndReadBack) {
  const Result<std::string> json = cudnn_device_properties(cudnn_->handle());
  ASSERT_TRUE(json.is_ok()) << json.message();
  EXPECT_EQ(*json, R"({"deviceVer":900,"deviceName":"Fake GPU"})");
  const Result<CudnnDescriptor> device = cudnn_described_device(*json);
  ASSERT_TRUE(device.is_ok()) << device.message();
  // Plans for it are made without its handle.
  OneImage image(DType::kBFloat16, true);
  const auto graph = CudnnGraph::describe({.properties = &*device}, image.w,
                                          {.channels_last = true, .out = DType::kBFloat16});
  ASSERT_TRUE(graph.is_ok()) << graph.message();
  int made = 0;
  while (auto plan = (*graph)->next(never)) made += plan->is_ok();
  EXPECT_EQ(made, 7);
  EXPECT_THAT(cudnn_described_device("{}").message(), HasSubstr("HasMember(\"deviceVer\")"));
}

// What the libraries of ours look at: wrong calls are refused as the real ones refuse them.
TEST_F(CudnnGraphs, WrongCallsAreRefused) {
  Result<CudnnDescriptor> tensor = CudnnDescriptor::make(Object::kTensor);
  ASSERT_TRUE(tensor.is_ok());
  EXPECT_THAT(tensor->set(Attribute::kTensorId, Type::kInt32, 1).message(),
              HasSubstr("another type of attribute"));
  EXPECT_THAT(tensor->set(Attribute::kTensorDimensions, {1, 2, 3}).message(), HasSubstr("so many elements"));
  EXPECT_THAT(tensor->set(Attribute::kStrides, {1, 2}).message(), HasSubstr("no such attribute"));
  EXPECT_THAT(tensor->finalize().message(), HasSubstr("attribute 900 is missing"));
  Result<CudnnDescriptor> operation = CudnnDescriptor::make(Object::kForward);
  ASSERT_TRUE(operation.is_ok());
  EXPECT_THAT(operation->set(Attribute::kForwardData, *tensor).message(), HasSubstr("not finalized"));
  Result<CudnnDescriptor> knob = CudnnDescriptor::make(Object::kOperands);
  ASSERT_TRUE(knob.is_ok());
  EXPECT_THAT(operation->set(Attribute::kForwardData, *knob).message(), HasSubstr("another kind of object"));
}

TEST_F(CudnnGraphs, OperandsMustLieOnTheDeviceAligned) {
  OneImage image(DType::kFloat32, false);
  CudnnPlan::Operands good{.data = upload(image.data, DType::kFloat32),
                           .weight = upload(image.weight, DType::kFloat32),
                           .out = allocate(image.elements() * 4),
                           .workspace = allocate(4096)};
  const auto graph = CudnnGraph::describe({.handle = cudnn_->handle()}, image.w, {});
  ASSERT_TRUE(graph.is_ok()) << graph.message();
  std::unique_ptr<CudnnPlan> plan;
  while (auto next = (*graph)->next(never))
    if (next->is_ok() && (**next)->workspace_bytes > 0) plan = **std::move(next);
  ASSERT_NE(plan, nullptr);
  EXPECT_TRUE(plan->run(good).is_ok());
  std::vector<float> host(1000);
  CudnnPlan::Operands bad = good;
  bad.data = reinterpret_cast<cuda::DevicePtr>(host.data()) / 16 * 16 + 16;
  EXPECT_THAT(plan->run(bad).message(), HasSubstr("id 1 does not lie on the device"));
  bad = good, bad.out += 4;
  EXPECT_THAT(plan->run(bad).message(), HasSubstr("id 5 is not aligned"));
  bad = good, bad.workspace = 0;
  EXPECT_THAT(plan->run(bad).message(), HasSubstr("the workspace does not lie on the device"));
}

TEST(CudnnNames, KnobsAreThoseOfTheInstalledHeader) {
  std::ifstream in("/usr/local/cuda/include/cudnn_graph_v9.h");
  if (!in) GTEST_SKIP() << "no cudnn_graph_v9.h is installed here";
  const std::regex line("CUDNN_KNOB_TYPE_([A-Z0-9_]+) .*= ([0-9]+)");
  int knobs = 0;
  for (std::string text; std::getline(in, text);) {
    std::smatch m;
    if (!std::regex_search(text, m, line) || m[1] == "COUNTS") continue;
    EXPECT_THAT(cudnn_knob_name(std::stoi(m[2])), Not(HasSubstr("knob "))) << text;
    ++knobs;
  }
  EXPECT_EQ(knobs, cudnn::kMostKnobs);
  EXPECT_EQ(cudnn_knob_name(77), "knob 77");
}

// --- the older functions of cuDNN ---

// One image, against the definition; weights and images in the order that the layout has.
TEST_F(CudnnGraphs, OlderFunctionsTakeImagesOfBothLayoutsAndAllTypes) {
  for (const bool last : {false, true})
    for (const auto& [dtype, allowed] : {std::pair{DType::kFloat32, false},
                                         {DType::kFloat32, true},
                                         {DType::kBFloat16, false},
                                         {DType::kFloat16, false}}) {
      SCOPED_TRACE(str(last ? "NHWC " : "NCHW ", dtype, allowed ? " TF32" : ""));
      OneImage image(dtype, last, allowed);
      if (allowed)
        for (std::vector<float>* operand : {&image.data, &image.weight})
          for (float& x : *operand) x = tf32(x);
      const cuda::DevicePtr x = upload(image.data, dtype), taps = upload(image.weight, dtype),
                            y = upload(std::vector<float>(static_cast<size_t>(image.elements())), dtype);
      const auto convolution = CudnnConvolution::describe(*cudnn_, image.w, dtype);
      ASSERT_TRUE(convolution.is_ok()) << convolution.message();
      const auto& algorithm = (*convolution)->algorithms().at(1);
      const Status ran = (*convolution)->run(algorithm, x, taps, allocate(4096), y);
      ASSERT_TRUE(ran.is_ok()) << ran.message();
      const std::vector<double> found = download(y, image.elements(), dtype), wanted = image.answer();
      for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance(dtype, wanted[i]));
    }
}

TEST_F(CudnnGraphs, OlderFunctionsTakeTheSamePaddingOnBothSidesOnly) {
  OneImage image(DType::kFloat32, false);
  image.w.padding = {1, 1, 2, 0};
  EXPECT_EQ(CudnnConvolution::describe(*cudnn_, image.w, DType::kFloat32).message(),
            "cuDNN: its older functions take the same padding on both sides only");
}

TEST_F(GpuLibraries, ConvolutionsThatCudnnCannotBeToldOfAreRefused) {
  EXPECT_TRUE(cudnn_serves({.layout = "NHWC", .out_layout = "NHWC"}).is_ok());
  EXPECT_EQ(cudnn_serves({.layout = "NHWC"}).message(),
            "cuDNN: data in NHWC and NCHW; only NCHW and NHWC are compared, the same for both");
  EXPECT_THAT(cudnn_serves({.layout = "NCHW16c", .out_layout = "NCHW16c"}).message(), HasSubstr("NCHW16c"));
  EXPECT_EQ(cudnn_serves({.dtype = DType::kInt8}).message(), "cuDNN: convolutions of int8 are not compared");
}

}  // namespace
}  // namespace tuner
