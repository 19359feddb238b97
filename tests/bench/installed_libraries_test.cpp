// NVIDIA's libraries that are really installed, where they are, without driver and device: cuBLASLt takes
// what we set of products and algorithms; cuDNN takes our graphs, and makes plans for an H200 of which it is
// told. What a plan needs of a driver's library it finds in the toolkit's stub.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/bench/gpu/cublaslt_api.h"
#include "tests/bench/gpu/cudnn_graph.h"

namespace tuner {
namespace {

using testing::HasSubstr;

// As cuDNN 9.19 writes it down; the numbers are those of NVIDIA's data sheets and programming guide.
constexpr char kH200[] =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
    R"("multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
    R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
    R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":150109880320,)"
    R"("smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":62914560,"cudaDeviceId":0,"deviceVer":900,)"
    R"("driverVer":13000,"deviceName":"NVIDIA H200"})";

class InstalledCudnn : public testing::Test {
 protected:
  void SetUp() override {
    if (!cudnn::loaded().is_ok()) GTEST_SKIP() << cudnn::loaded().message();
    Result<cudnn::CudnnDescriptor> described = cudnn_described_device(kH200);
    if (!described.is_ok()) GTEST_SKIP() << "this version wants other properties: " << described.message();
    device_ = *std::move(described);
  }
  static Conv2dWorkload layer(DType dtype, bool last) {
    Conv2dWorkload w{.batch = 32, .in_channels = 256, .in_height = 14, .in_width = 14, .out_channels = 256};
    w.kernel_height = w.kernel_width = 3, w.padding = {1, 1, 1, 1}, w.bias = true;
    w.activation = Activation::kRelu, w.dtype = dtype, w.layout = w.out_layout = last ? "NHWC" : "NCHW";
    if (dtype != DType::kFloat32) w.narrow_out = dtype;
    return w;
  }
  Result<std::unique_ptr<CudnnGraph>> graph_of(const Conv2dWorkload& w) const {
    return CudnnGraph::describe(
        {.properties = &device_}, w,
        {.channels_last = w.layout == "NHWC", .bias = w.out_dtype(), .out = w.out_dtype()});
  }
  cudnn::CudnnDescriptor device_;
};

// Of the size that we have in mind, and of no other.
TEST(InstalledCublasLt, KnowsTheAttributesThatWeSet) {
  const Result<cublaslt::Api>& api = cublaslt::loaded();
  if (!api.is_ok()) GTEST_SKIP() << api.message();
  cublaslt::Opaque algorithm{};
  const auto takes = [&](int attribute, auto value) {
    decltype(value) found = 0;
    size_t written = 0;
    EXPECT_EQ(api->set_config(&algorithm, attribute, &value, sizeof value), 0) << "config " << attribute;
    EXPECT_EQ(api->get_config(&algorithm, attribute, &found, sizeof found, &written), 0)
        << "config " << attribute;
    EXPECT_EQ(found, value) << "config " << attribute;
    EXPECT_EQ(written, sizeof value) << "config " << attribute;
    const uint64_t larger = 0;
    EXPECT_NE(api->set_config(&algorithm, attribute, &larger, sizeof larger), 0) << "config " << attribute;
  };
  for (const int attribute : {cublaslt::kConfigTile, cublaslt::kConfigReduction, cublaslt::kConfigSwizzle,
                              cublaslt::kConfigCustom, cublaslt::kConfigStages})
    takes(attribute, uint32_t{3});
  takes(cublaslt::kConfigSplitK, int32_t{3});
  for (const int attribute : {cublaslt::kConfigInner, cublaslt::kConfigCluster})
    takes(attribute, uint16_t{3});

  void *product = nullptr, *layout = nullptr, *preference = nullptr;
  ASSERT_EQ(api->create_product(&product, cublaslt::kCompute32F, cublaslt::kReal32F), 0);
  ASSERT_EQ(api->create_layout(&layout, cublaslt::kReal16Bf, 8, 8, 8), 0);
  ASSERT_EQ(api->create_preference(&preference), 0);
  const auto set = [](auto setter, void* of, int attribute, auto value) {
    EXPECT_EQ(setter(of, attribute, &value, sizeof value), 0) << "attribute " << attribute;
    const std::array<uint64_t, 2> larger{};
    EXPECT_NE(setter(of, attribute, &larger, sizeof larger), 0) << "attribute " << attribute;
  };
  set(api->set_product, product, cublaslt::kDescTransposeA, int32_t{cublaslt::kTransposed});
  set(api->set_product, product, cublaslt::kDescTransposeB, int32_t{cublaslt::kNotTransposed});
  set(api->set_product, product, cublaslt::kDescEpilogue, cublaslt::kEpilogueRelu | cublaslt::kEpilogueBias);
  set(api->set_product, product, cublaslt::kDescBiasPointer, static_cast<const void*>(&product));
  set(api->set_layout, layout, cublaslt::kLayoutBatch, int32_t{2});
  set(api->set_layout, layout, cublaslt::kLayoutBatchStride, int64_t{64});
  set(api->set_preference, preference, cublaslt::kPreferenceSearch, cublaslt::kSearchOfOneId);
  set(api->set_preference, preference, cublaslt::kPreferenceWorkspace, uint64_t{1} << 20);
  api->destroy_preference(preference);
  api->destroy_layout(layout);
  api->destroy_product(product);
}

TEST_F(InstalledCudnn, TakesEveryGraphThatWeMake) {
  for (const bool last : {false, true})
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16})
      for (int parts = 0; parts < 8; ++parts) {
        Conv2dWorkload w = layer(dtype, last);
        w.bias = parts & 1, w.residual = parts & 2;
        w.activation = parts & 4 ? Activation::kRelu : Activation::kNone;
        const auto graph = graph_of(w);
        EXPECT_TRUE(graph.is_ok()) << graph.message() << " of " << dtype << " " << w.layout << " parts "
                                   << parts;
      }
  Conv2dWorkload w = layer(DType::kBFloat16, true);
  w.groups = 256, w.padding = {0, 1, 1, 0}, w.stride = {2, 2};
  EXPECT_TRUE(graph_of(w).is_ok()) << graph_of(w).message();
}

TEST_F(InstalledCudnn, MakesPlansForADeviceThatIsNotHere) {
  // By its name in the library a driver that is loaded is found again; this one has every function and does
  // nothing.
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr &&
      dlopen("/usr/local/cuda/lib64/stubs/libcuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr)
    GTEST_SKIP() << "neither a driver's library nor the toolkit's stub of it: " << dlerror();
  for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
    const auto graph = graph_of(layer(dtype, dtype == DType::kBFloat16));
    ASSERT_TRUE(graph.is_ok()) << graph.message();
    int made = 0, on_tensor_cores = 0;
    // Those of the heuristics are ready-made; engines that compile come after them.
    while (made < 20) {
      auto plan = (*graph)->next([] { return false; });
      if (!plan || !plan->is_ok()) break;
      ++made;
      on_tensor_cores += (**plan)->on_tensor_cores;
      EXPECT_GE((**plan)->engine, 0);
      EXPECT_THAT((**plan)->origin,
                  testing::AnyOf(HasSubstr("heuristic"), HasSubstr("fallback"), HasSubstr("engine")));
    }
    EXPECT_GE(made, dtype == DType::kBFloat16 ? 20 : 3);
    EXPECT_EQ(on_tensor_cores, dtype == DType::kBFloat16 ? made : 0) << "float32 is no TF32";
    EXPECT_GE((*graph)->offered().mode_a, 10);
  }
}

TEST_F(InstalledCudnn, SaysWhatIsMissingOfADevice) {
  EXPECT_THAT(cudnn_described_device("{}").message(), HasSubstr("maxGridSize"));
}

}  // namespace
}  // namespace tuner
