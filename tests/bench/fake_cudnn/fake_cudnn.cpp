// libfakecudnn.so: as much of cuDNN as bench_gpu asks for, by its definition (plain loops), so that how we call it
// is tested for real. Works on the memory and the clock of libfakecuda.so.
//
// Algorithm 0 takes twice as long as TUNER_FAKE_CUDNN_NS (default 5000), 1 so long, 2 is not supported, and 3 is
// the fastest but wrong. 1 wants a workspace, and uses all of it. With TUNER_FAKE_CUDNN_WRONG all are wrong.
#include <array>
#include <cstdlib>
#include <cstring>

namespace {

using Sizes = std::array<int, 4>;
struct Convolution {
  Sizes pad_stride{};  // pad_h, pad_w, stride_h, stride_w
  int dilation_h = 1, dilation_w = 1, groups = 1, math = -1;
};
constexpr int kNotSupported = 3000, kBadParameter = 2000;
constexpr size_t kWorkspaceBytes = 4096;

int set(void* sizes, int a, int b, int c, int d) {
  *static_cast<Sizes*>(sizes) = {a, b, c, d};
  return 0;
}

}  // namespace

extern "C" {

void fake_cuda_advance(double ns);  // libfakecuda.so

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
  *tensor = new Sizes;
  return 0;
}
int cudnnDestroyTensorDescriptor(void* tensor) {
  delete static_cast<Sizes*>(tensor);
  return 0;
}
int cudnnSetTensor4dDescriptor(void* tensor, int format, int type, int n, int c, int h, int w) {
  return format == 0 && type == 0 ? set(tensor, n, c, h, w) : kBadParameter;
}
int cudnnCreateFilterDescriptor(void** filter) { return cudnnCreateTensorDescriptor(filter); }
int cudnnDestroyFilterDescriptor(void* filter) { return cudnnDestroyTensorDescriptor(filter); }
int cudnnSetFilter4dDescriptor(void* filter, int type, int format, int k, int c, int h, int w) {
  return format == 0 && type == 0 ? set(filter, k, c, h, w) : kBadParameter;
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

int cudnnConvolutionForward(void*, const void* alpha, void* data, const float* x, void* filter,
                            const float* weight, void* convolution, int algorithm, void* workspace,
                            size_t workspace_bytes, const void* beta, void* out, float* y) {
  const auto& conv = *static_cast<Convolution*>(convolution);
  const auto [batch, channels, height, width] = *static_cast<Sizes*>(data);
  const auto [filters, per_group, kh, kw] = *static_cast<Sizes*>(filter);
  const auto [n, oc, oh, ow] = *static_cast<Sizes*>(out);
  const bool right_sizes = n == batch && oc == filters && per_group * conv.groups == channels;
  if (!right_sizes || conv.math != 3 || *static_cast<const float*>(alpha) != 1 ||
      *static_cast<const float*>(beta) != 0)
    return kBadParameter;
  if (algorithm == 1 && (workspace == nullptr || workspace_bytes < kWorkspaceBytes)) return kBadParameter;
  if (algorithm == 1) std::memset(workspace, 0x5A, kWorkspaceBytes);
  for (int i = 0; i < n * oc * oh * ow; ++i) {
    const int column = i % ow, row = i / ow % oh, o = i / ow / oh % oc, b = i / ow / oh / oc;
    float sum = 0;
    for (int c = 0; c < per_group; ++c)
      for (int k = 0; k < kh * kw; ++k) {
        const int h = row * conv.pad_stride[2] + k / kw * conv.dilation_h - conv.pad_stride[0];
        const int w = column * conv.pad_stride[3] + k % kw * conv.dilation_w - conv.pad_stride[1];
        if (h < 0 || h >= height || w < 0 || w >= width) continue;
        const int channel = o / (oc / conv.groups) * per_group + c;
        sum += x[((b * channels + channel) * height + h) * width + w] *
               weight[(o * per_group + c) * kh * kw + k];
      }
    y[i] = sum;
  }
  if (algorithm == 3 || std::getenv("TUNER_FAKE_CUDNN_WRONG") != nullptr) y[0] = 1000;
  const char* given = std::getenv("TUNER_FAKE_CUDNN_NS");
  const double ns = given != nullptr ? std::atof(given) : 5000;
  fake_cuda_advance(algorithm == 0 ? 2 * ns : algorithm == 1 ? ns : ns / 10);
  return 0;
}

}  // extern "C"
