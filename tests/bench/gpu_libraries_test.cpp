// How bench_gpu calls cuBLASLt and cuDNN: TF32 where it is allowed and nowhere else, images with channels last. On
// the libraries of ours that tests/bench has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>

#include "compiler_core/base/elements.h"
#include "measure_server/runner/input_data.h"
#include "tests/bench/gpu/cublaslt.h"
#include "tests/bench/gpu/cudnn.h"

namespace tuner {
namespace {

using testing::HasSubstr;

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
  cuda::DevicePtr upload(const std::vector<float>& values, DType dtype) {
    const std::string bytes = element_bytes(values, dtype);
    cuda::DeviceMemory& memory = memory_.emplace_back();
    EXPECT_TRUE(cuda::DeviceMemory::allocate(static_cast<int64_t>(bytes.size()), memory));
    EXPECT_TRUE(cuda::copy_to_device(memory.address(), bytes.data(), static_cast<int64_t>(bytes.size())));
    return memory.address();
  }
  static std::vector<double> download(cuda::DevicePtr from, int64_t count, DType dtype) {
    std::string bytes(static_cast<size_t>(count * dtype_bytes(dtype)), '\0');
    EXPECT_TRUE(cuda::copy_to_host(bytes.data(), from, static_cast<int64_t>(bytes.size())));
    return load_elements(bytes.data(), count, dtype);
  }

  static float tf32(float x) {
    return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000) & 0xffffe000);
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
  const cuda::DevicePtr left = upload(a, DType::kFloat32), right = upload(b, DType::kFloat32),
                        out = upload(std::vector<float>(12), DType::kFloat32);
  for (const bool allowed : {false, true}) {
    w.allow_tf32 = allowed;
    const auto product = CublasLtProduct::describe(*lt, w);
    ASSERT_TRUE(product.is_ok()) << product.message();
    ASSERT_TRUE((*product)->run((*product)->algorithms()[0], left, right, 0, out).is_ok());
    const std::vector<double> found = download(out, 12, DType::kFloat32);
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

TEST_F(GpuLibraries, ProductsThatCublasLtCannotBeToldOfAreRefused) {
  EXPECT_TRUE(cublaslt_serves({.dtype = DType::kInt8}).is_ok());
  EXPECT_EQ(cublaslt_serves({.dtype = DType::kInt8, .narrow_out = DType::kUInt8}).message(),
            "cuBLASLt: products of bytes are compared where out is int32; here it is uint8");
  EXPECT_EQ(cublaslt_serves({.m = int64_t{1} << 31}).message(), "cuBLASLt: a size does not fit 32 bits");
}

// --- cuDNN ---

// Where element (n, c, h, w) of an image lies.
int64_t place(const std::string& layout, int64_t c, int64_t h, int64_t w, int64_t channels, int64_t height,
              int64_t width) {
  return layout == "NHWC" ? (h * width + w) * channels + c : (c * height + h) * width + w;
}

// One image, against the definition; weights and images in the order that the layout has.
TEST_F(GpuLibraries, CudnnTakesImagesOfBothLayoutsAndAllTypes) {
  const Result<Cudnn> cudnn = Cudnn::open(stream_);
  ASSERT_TRUE(cudnn.is_ok()) << cudnn.message();
  for (const std::string layout : {"NCHW", "NHWC"})
    for (const auto& [dtype, allowed] : {std::pair{DType::kFloat32, false},
                                         {DType::kFloat32, true},
                                         {DType::kBFloat16, false},
                                         {DType::kFloat16, false}}) {
      SCOPED_TRACE(str(layout, " ", dtype, allowed ? " TF32" : ""));
      Conv2dWorkload w{.in_channels = 4, .in_height = 5, .in_width = 6, .out_channels = 6};
      w.kernel_height = 3, w.kernel_width = 2, w.groups = 2, w.stride = {2, 1}, w.padding = {1, 0, 1, 0};
      w.dtype = dtype, w.allow_tf32 = allowed, w.layout = w.out_layout = layout;
      const int64_t rows = w.out_height(), columns = w.out_width(), per_group = w.in_channels / w.groups;
      const std::vector<float> data = random_values(1, 0, 4 * 5 * 6, dtype),
                               weight = random_values(1, 1, 6 * per_group * 3 * 2, dtype);
      const cuda::DevicePtr x = upload(data, dtype), taps = upload(weight, dtype),
                            y = upload(std::vector<float>(static_cast<size_t>(6 * rows * columns)), dtype);
      const auto convolution = CudnnConvolution::describe(*cudnn, w, dtype);
      ASSERT_TRUE(convolution.is_ok()) << convolution.message();
      const auto& algorithm = (*convolution)->algorithms().at(1);
      cuda::DeviceMemory workspace;
      ASSERT_TRUE(cuda::DeviceMemory::allocate(static_cast<int64_t>(algorithm.workspace_bytes), workspace));
      const Status ran = (*convolution)->run(algorithm, x, taps, workspace.address(), y);
      ASSERT_TRUE(ran.is_ok()) << ran.message();
      const std::vector<double> found = download(y, 6 * rows * columns, dtype);
      for (int64_t o = 0; o < 6; ++o)
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c) {
            double sum = 0;
            for (int64_t i = 0; i < per_group; ++i)
              for (int64_t k = 0; k < 6; ++k) {
                const int64_t row = 2 * r + k / 2 - 1, column = c + k % 2;
                if (row < 0 || row >= 5) continue;
                const float p = data[place(layout, o / 3 * per_group + i, row, column, 4, 5, 6)];
                const float q = weight[o * per_group * 6 + place(layout, i, k / 2, k % 2, per_group, 3, 2)];
                sum += allowed ? double{tf32(p)} * tf32(q) : double{p} * q;
              }
            EXPECT_NEAR(found[place(layout, o, r, c, 6, rows, columns)], sum,
                        1e-6 + (dtype == DType::kFloat32 ? 0 : 0x1p-8 * std::fabs(sum)));
          }
    }
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
