// Epilogues: every activation, and parts in any order, in every template of products for GPUs, emulated,
// against the oracle.
#include <gtest/gtest.h>

#include <iterator>

#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"
#include "tests/templates/random_epilogue.h"

namespace tuner {
namespace {

template <class Product>
void expect_epilogues_right(const AnyTemplate& t, const Product& product, uint32_t fixed_seed) {
  const RandomSeed seed(fixed_seed);
  std::mt19937_64 random(seed);
  std::ptrdiff_t drawn = 0;
  for (const Activation& activation : testing::kActivations) {
    Product w = product;
    testing::draw_epilogue(w, activation, /*in_place=*/false, random);
    if (!validate(w)) continue;  // bytes take few activations
    ++drawn;
    expect_gpu_configs_right(t, w, gpu(), /*samples=*/1, static_cast<uint32_t>(random()));
  }
  EXPECT_EQ(drawn, product.dtype != DType::kInt8 ? std::ssize(testing::kActivations)
                   : requantises(product)        ? 3
                                                 : 2);
}

Conv2dWorkload conv(int64_t channels, int64_t out_channels, int64_t kernel) {
  return {.in_channels = channels,
          .in_height = 7,
          .in_width = 6,
          .out_channels = out_channels,
          .kernel_height = kernel,
          .kernel_width = kernel,
          .padding = {1, 1, 1, 1}};
}

TEST(EpilogueCuda, OfMatrixProducts) {
  expect_epilogues_right(matmul_cuda(), MatmulWorkload{.m = 13, .n = 20, .k = 17}, 1);
  expect_epilogues_right(matmul_cuda(), MatmulWorkload{.batch = 2, .m = 9, .n = 7, .k = 5, .constant = {"b"}},
                         2);
  expect_epilogues_right(matmul_cuda(), MatmulWorkload{.m = 1, .n = 20, .k = 17, .dtype = DType::kFloat16},
                         3);
}

TEST(EpilogueCuda, OfProductsOnTensorCores) {
  for (const DType t : {DType::kBFloat16, DType::kFloat16}) {
    expect_epilogues_right(matmul_mma_cuda(), MatmulWorkload{.m = 13, .n = 20, .k = 18, .dtype = t}, 6);
    expect_epilogues_right(matmul_mma_cuda(),
                           MatmulWorkload{.batch = 2, .m = 9, .n = 7, .k = 5, .dtype = t, .constant = {"b"}},
                           7);
  }
  expect_epilogues_right(matmul_wgmma_cuda(),
                         MatmulWorkload{.m = 13, .n = 20, .k = 18, .dtype = DType::kBFloat16}, 10);
}

TEST(EpilogueCuda, OfConvolutionsOnTensorCores) {
  for (const DType t : {DType::kBFloat16, DType::kFloat16}) {
    Conv2dWorkload w = conv(9, 12, 3);
    w.dtype = t;
    w.layout = w.out_layout = "NHWC";
    w.constant = {"weight"};
    expect_epilogues_right(conv2d_nhwc_mma_cuda(), w, 8);
    w.in_channels = 16;
    w.groups = 2;
    expect_epilogues_right(conv2d_nhwc_mma_cuda(), w, 9);
  }
}

TEST(EpilogueCuda, OfProductsOfBytes) {
  MatmulWorkload w{.m = 13, .n = 20, .k = 18, .dtype = DType::kInt8};
  expect_epilogues_right(matmul_dp4a_cuda(), w, 8);
  w.batch = 2, w.constant = {"b"}, w.narrow_out = DType::kUInt8;
  expect_epilogues_right(matmul_dp4a_cuda(), w, 9);
}

TEST(EpilogueCuda, OfFloat32OnTensorCores) {
  expect_epilogues_right(matmul_tf32x3_cuda(), MatmulWorkload{.m = 13, .n = 20, .k = 18}, 8);
  expect_epilogues_right(matmul_tf32x3_cuda(),
                         MatmulWorkload{.batch = 2, .m = 9, .n = 7, .k = 21, .constant = {"b"}}, 9);
}

TEST(EpilogueCuda, OfConvolutions) {
  expect_epilogues_right(conv2d_nchw_cuda(), conv(3, 5, 3), 3);
  Conv2dWorkload constant = conv(9, 11, 2);
  constant.bias = true;
  constant.constant = {"weight"};
  expect_epilogues_right(conv2d_implicit_gemm_cuda(), constant, 4);
  Conv2dWorkload depthwise = conv(6, 6, 3);
  depthwise.groups = 6;
  expect_epilogues_right(depthwise_conv2d_nchw_cuda(), depthwise, 5);
  depthwise.layout = depthwise.out_layout = "NHWC";
  for (const DType t : {DType::kFloat32, DType::kBFloat16, DType::kInt8}) {
    depthwise.dtype = t;
    expect_epilogues_right(depthwise_conv2d_nhwc_cuda(), depthwise, 6);
  }
}

}  // namespace
}  // namespace tuner
