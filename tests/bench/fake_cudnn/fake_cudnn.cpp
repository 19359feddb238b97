// libfakecudnn.so: as much of cuDNN as bench_gpu asks for, by its definition (plain loops), so that how we
// call it is tested for real. Works on the memory and the clock of libfakecuda.so. Here are its older
// functions; its graph interface stands in fake_cudnn_graph.cpp.
//
// Algorithm 0 takes twice as long as TUNER_FAKE_CUDNN_NS (default 5000), 1 so long, 2 is not supported, and 3
// is the fastest but wrong. 1 wants a workspace, and uses all of it. With TUNER_FAKE_CUDNN_WRONG all are
// wrong.
//
// Who asks for offers gets 0 and 1 without tensor cores, 1 with them, which takes half as long, and 6, which
// refuses when it is called; out has the type of data. Numbers of float32 lose their last 13 bits unless
// fused multiply-adds are asked for, as on GPUs since the A100. With TUNER_FAKE_CUDNN_NO_BFLOAT16 it has
// nothing of bfloat16.
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "compiler_core/base/elements.h"
#include "tests/measure_server/fake_cuda/fake_queue.h"

namespace {

using tuner::DType;

using Sizes = std::array<int, 4>;
struct Tensor {
  Sizes sizes{};      // n, c, h, w, whatever the order in memory
  bool last = false;  // channels come last
  DType type = DType::kFloat32;

  int elements() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  int at(int n, int c, int h, int w) const {
    return last ? ((n * sizes[2] + h) * sizes[3] + w) * sizes[1] + c
                : ((n * sizes[1] + c) * sizes[2] + h) * sizes[3] + w;
  }
};
struct Offer {
  int algorithm, status;
  float time;
  size_t workspace_bytes;
  int determinism, math, reserved[3];
};
struct Convolution {
  Sizes pad_stride{};  // pad_h, pad_w, stride_h, stride_w
  int dilation_h = 1, dilation_w = 1, groups = 1, math = -1;
};
constexpr int kNotSupported = 3000, kBadParameter = 2000, kTensorCores = 1, kFusedMultiplyAdds = 3;
constexpr size_t kWorkspaceBytes = 4096;

int set(void* tensor, int format, int type, Sizes sizes) {
  auto& t = *static_cast<Tensor*>(tensor);
  if ((format != 0 && format != 1) || (type != 0 && type != 2 && type != 9)) return kBadParameter;
  t = {sizes, format == 1, type == 0 ? DType::kFloat32 : type == 2 ? DType::kFloat16 : DType::kBFloat16};
  return 0;
}

// What the operands have in common: else there is no such convolution.
bool fits(const Tensor& data, const Tensor& weight, const Tensor& out, int groups) {
  return data.type == weight.type && data.type == out.type && data.last == weight.last &&
         data.last == out.last && data.sizes[0] == out.sizes[0] && out.sizes[1] == weight.sizes[0] &&
         weight.sizes[1] * groups == data.sizes[1];
}

double rounded(double x, DType type) {
  const auto nearest = static_cast<float>(x);
  return type == DType::kBFloat16  ? tuner::rounded_to_bfloat16(nearest)
         : type == DType::kFloat16 ? tuner::rounded_to_float16(nearest)
                                   : nearest;
}

// What tensor cores see of a float32: 10 bits of fraction.
double as_tf32(double x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(static_cast<float>(x)) + 0x1000) & 0xffffe000);
}

void convolve(const Convolution& conv, const Tensor& data, const void* x, const Tensor& filter,
              const void* weight, const Tensor& out, void* y) {
  const auto [batch, channels, height, width] = data.sizes;
  const auto [filters, per_group, kh, kw] = filter.sizes;
  const auto [n, oc, oh, ow] = out.sizes;
  std::vector<double> image = tuner::load_elements(x, data.elements(), data.type),
                      taps = tuner::load_elements(weight, filter.elements(), filter.type);
  if (data.type == DType::kFloat32 && conv.math != kFusedMultiplyAdds)
    for (std::vector<double>* operand : {&image, &taps})
      for (double& number : *operand) number = as_tf32(number);
  std::vector<double> sums(static_cast<size_t>(out.elements()));
  for (int i = 0; i < n * oc * oh * ow; ++i) {
    const int column = i % ow, row = i / ow % oh, o = i / ow / oh % oc, b = i / ow / oh / oc;
    double sum = 0;
    for (int c = 0; c < per_group; ++c)
      for (int k = 0; k < kh * kw; ++k) {
        const int h = row * conv.pad_stride[2] + k / kw * conv.dilation_h - conv.pad_stride[0];
        const int w = column * conv.pad_stride[3] + k % kw * conv.dilation_w - conv.pad_stride[1];
        if (h < 0 || h >= height || w < 0 || w >= width) continue;
        const int channel = o / (oc / conv.groups) * per_group + c;
        sum += image[static_cast<size_t>(data.at(b, channel, h, w))] *
               taps[static_cast<size_t>(filter.at(o, c, k / kw, k % kw))];
      }
    sums[static_cast<size_t>(out.at(b, o, row, column))] = rounded(sum, out.type);
  }
  tuner::store_elements(sums.data(), out.elements(), out.type, y);
}

}  // namespace

extern "C" {

int cudnnCreate(void** handle) {
  *handle = new char;
  return 0;
}
int cudnnDestroy(void* handle) {
  delete static_cast<char*>(handle);
  return 0;
}
size_t cudnnGetVersion() { return 91500; }
int cudnnSetStream(void*, void*) { return 0; }
int cudnnCreateTensorDescriptor(void** tensor) {
  *tensor = new Tensor;
  return 0;
}
int cudnnDestroyTensorDescriptor(void* tensor) {
  delete static_cast<Tensor*>(tensor);
  return 0;
}
int cudnnSetTensor4dDescriptor(void* tensor, int format, int type, int n, int c, int h, int w) {
  return set(tensor, format, type, {n, c, h, w});
}
int cudnnCreateFilterDescriptor(void** filter) { return cudnnCreateTensorDescriptor(filter); }
int cudnnDestroyFilterDescriptor(void* filter) { return cudnnDestroyTensorDescriptor(filter); }
int cudnnSetFilter4dDescriptor(void* filter, int type, int format, int k, int c, int h, int w) {
  return set(filter, format, type, {k, c, h, w});
}
int cudnnCreateConvolutionDescriptor(void** convolution) {
  *convolution = new Convolution;
  return 0;
}
int cudnnDestroyConvolutionDescriptor(void* convolution) {
  delete static_cast<Convolution*>(convolution);
  return 0;
}
int cudnnSetConvolution2dDescriptor(void* convolution, int pad_h, int pad_w, int stride_h, int stride_w,
                                    int dilation_h, int dilation_w, int mode, int type) {
  if (mode != 1 || type != 0) return kBadParameter;  // a true convolution turns its weight around
  auto& c = *static_cast<Convolution*>(convolution);
  c.pad_stride = {pad_h, pad_w, stride_h, stride_w};
  c.dilation_h = dilation_h, c.dilation_w = dilation_w;
  return 0;
}
int cudnnSetConvolutionGroupCount(void* convolution, int groups) {
  static_cast<Convolution*>(convolution)->groups = groups;
  return 0;
}
int cudnnSetConvolutionMathType(void* convolution, int math) {
  static_cast<Convolution*>(convolution)->math = math;
  return 0;
}
int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int algorithm, size_t* bytes) {
  *bytes = algorithm == 1 ? kWorkspaceBytes : 0;
  return algorithm == 2 || algorithm > 3 ? kNotSupported : 0;
}

int cudnnGetConvolutionForwardAlgorithm_v7(void*, void* data, void* filter, void* convolution, void* out,
                                           int most, int* found, Offer* offers) {
  const auto &x = *static_cast<Tensor*>(data), &y = *static_cast<Tensor*>(out);
  *found = 0;
  if (!fits(x, *static_cast<Tensor*>(filter), y, static_cast<Convolution*>(convolution)->groups))
    return kBadParameter;
  if (x.type == DType::kBFloat16 && std::getenv("TUNER_FAKE_CUDNN_NO_BFLOAT16") != nullptr)
    return kNotSupported;
  const Offer all[] = {{6, 0, 1, 0, 1, kTensorCores, {}},
                       {1, 0, 2, kWorkspaceBytes, 1, kTensorCores, {}},
                       {1, 0, 3, kWorkspaceBytes, 1, 0, {}},
                       {0, 0, 4, 0, 1, 0, {}},
                       {2, kNotSupported, -1, 0, 0, 0, {}}};
  for (const Offer& offer : all)
    if (*found < most) offers[(*found)++] = offer;
  return 0;
}

int cudnnConvolutionForward(void*, const void* alpha, void* data, const void* x, void* filter,
                            const void* weight, void* convolution, int algorithm, void* workspace,
                            size_t workspace_bytes, const void* beta, void* out, void* y) {
  const Convolution conv = *static_cast<Convolution*>(convolution);
  const Tensor in = *static_cast<Tensor*>(data), to = *static_cast<Tensor*>(out),
               taps = *static_cast<Tensor*>(filter);
  if (!fits(in, taps, to, conv.groups) || *static_cast<const float*>(alpha) != 1 ||
      *static_cast<const float*>(beta) != 0)
    return kBadParameter;
  if (algorithm == 6) return kNotSupported;
  if (algorithm == 1 && (workspace == nullptr || workspace_bytes < kWorkspaceBytes)) return kBadParameter;
  return fake_cuda_queue([=] {
    if (algorithm == 1) std::memset(workspace, 0x5A, kWorkspaceBytes);
    convolve(conv, in, x, taps, weight, to, y);
    const double wrong = 1000;
    if (algorithm == 3 || std::getenv("TUNER_FAKE_CUDNN_WRONG") != nullptr)
      tuner::store_elements(&wrong, 1, to.type, y);
    const char* given = std::getenv("TUNER_FAKE_CUDNN_NS");
    const double ns = given != nullptr ? std::atof(given) : 5000;
    const double with_tensor_cores = conv.math == kTensorCores ? 0.5 : 1;
    fake_cuda_advance(with_tensor_cores * (algorithm == 0 ? 2 * ns : algorithm == 1 ? ns : ns / 10));
    return 0;
  });
}

}  // extern "C"
