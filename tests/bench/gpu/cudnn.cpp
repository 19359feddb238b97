#include "tests/bench/gpu/cudnn.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "tests/bench/gpu/cudnn_api.h"

namespace tuner {
namespace {

using namespace cudnn;  // NOLINT: its words, throughout

// By cudnnConvolutionFwdAlgo_t.
constexpr const char* kAlgorithms[] = {
    "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
    "winograd",      "winograd_nonfused"};
constexpr int kDirectAlgorithms = 4;  // the first ones

}  // namespace

Result<Cudnn> Cudnn::open(const cuda::DeviceStream& stream) {
  const Result<Api>& api = loaded();
  if (!api.is_ok()) return api.status();
  Cudnn cudnn;
  Status status = checked(api->create(&cudnn.handle_), "cudnnCreate");
  if (status) status = checked(api->set_stream(cudnn.handle_, stream.get()), "cudnnSetStream");
  if (!status) return unavailable("no cuDNN: ", status.message());
  // 8907 is 8.9.7, 91500 is 9.15.0.
  const size_t version = api->version(), major = version >= 10000 ? 10000 : 1000;
  cudnn.version_ = str(version / major, ".", version % major / 100, ".", version % 100);
  return cudnn;
}

Cudnn::~Cudnn() {
  if (handle_ != nullptr) loaded()->destroy(handle_);
}

Status cudnn_serves(const Conv2dWorkload& w) {
  if (w.dtype != DType::kFloat32 && w.dtype != DType::kBFloat16 && w.dtype != DType::kFloat16)
    return failed("cuDNN: convolutions of ", w.dtype, " are not compared");
  if (w.layout != w.out_layout || (w.layout != "NCHW" && w.layout != "NHWC"))
    return failed("cuDNN: data in ", w.layout, " and ", w.out_layout,
                  "; only NCHW and NHWC are compared, the same for both");
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (std::max({w.batch, w.in_channels, w.in_height, w.in_width, w.out_channels, w.groups}) > kMost)
    return failed("cuDNN: a size does not fit 32 bits");
  return Status::ok();
}

namespace {

bool for_tensor_cores(const Conv2dWorkload& w) { return w.dtype != DType::kFloat32 || w.allow_tf32; }
int code_of(DType t) { return t == DType::kBFloat16 ? kBFloat16 : t == DType::kFloat16 ? kHalf : kFloat; }

}  // namespace

Result<std::unique_ptr<CudnnConvolution>> CudnnConvolution::describe(const Cudnn& cudnn,
                                                                     const Conv2dWorkload& w, DType out) {
  RETURN_IF_ERROR(cudnn_serves(w));
  if (w.padding[0] != w.padding[2] || w.padding[1] != w.padding[3])
    return failed("cuDNN: its older functions take the same padding on both sides only");
  std::unique_ptr<CudnnConvolution> made(new CudnnConvolution(cudnn));
  RETURN_IF_ERROR(made->describe(w, out));
  if (for_tensor_cores(w)) {
    RETURN_IF_ERROR(made->find_offered_algorithms());
    return made;
  }
  made->find_direct_algorithms();
  if (made->algorithms_.empty()) return failed("cuDNN: has no direct or implicit algorithm for it");
  return made;
}

Status CudnnConvolution::describe(const Conv2dWorkload& w, DType out) {
  const Api& api = *loaded();
  const auto n = [](int64_t size) { return static_cast<int>(size); };
  const int format = w.layout == "NHWC" ? kNhwc : kNchw, type = code_of(w.dtype);
  for (void** tensor : {&data_, &out_})
    RETURN_IF_ERROR(checked(api.create_tensor(tensor), "cudnnCreateTensor"));
  RETURN_IF_ERROR(checked(api.create_filter(&weight_), "cudnnCreateFilter"));
  RETURN_IF_ERROR(checked(api.create_convolution(&convolution_), "cudnnCreateConvolution"));
  RETURN_IF_ERROR(checked(
      api.set_tensor(data_, format, type, n(w.batch), n(w.in_channels), n(w.in_height), n(w.in_width)),
      "cudnnSetTensor4d"));
  RETURN_IF_ERROR(checked(api.set_tensor(out_, format, code_of(out), n(w.batch), n(w.out_channels),
                                         n(w.out_height()), n(w.out_width())),
                          "cudnnSetTensor4d"));
  RETURN_IF_ERROR(checked(api.set_filter(weight_, type, format, n(w.out_channels),
                                         n(w.in_channels / w.groups), n(w.kernel_height), n(w.kernel_width)),
                          "cudnnSetFilter4d"));
  // The type is that of the sums.
  RETURN_IF_ERROR(checked(
      api.set_convolution(convolution_, n(w.padding[0]), n(w.padding[1]), n(w.stride[0]), n(w.stride[1]),
                          n(w.dilation[0]), n(w.dilation[1]), kCrossCorrelation, kFloat),
      "cudnnSetConvolution2d"));
  RETURN_IF_ERROR(checked(api.set_groups(convolution_, n(w.groups)), "cudnnSetConvolutionGroupCount"));
  return checked(api.set_math(convolution_, for_tensor_cores(w) ? kTensorCores : kFusedMultiplyAdds),
                 "cudnnSetConvolutionMathType");
}

void CudnnConvolution::find_direct_algorithms() {
  for (int id = 0; id < kDirectAlgorithms; ++id) {
    Algorithm algorithm{.id = id, .name = kAlgorithms[id], .math = kFusedMultiplyAdds};
    if (loaded()->workspace(cudnn_.handle(), data_, weight_, convolution_, out_, id,
                            &algorithm.workspace_bytes) == kSuccess)
      algorithms_.push_back(std::move(algorithm));
  }
}

Status CudnnConvolution::find_offered_algorithms() {
  std::array<Offer, 2 * std::size(kAlgorithms)> offers{};  // with tensor cores and without
  int found = 0;
  const int code = loaded()->offers(cudnn_.handle(), data_, weight_, convolution_, out_,
                                    static_cast<int>(offers.size()), &found, offers.data());
  for (int i = 0; i < std::min<int>(found, offers.size()) && code == kSuccess; ++i) {
    const Offer& offer = offers[static_cast<size_t>(i)];
    if (offer.status != kSuccess || offer.algorithm < 0 ||
        offer.algorithm >= static_cast<int>(std::size(kAlgorithms)))
      continue;
    std::string name = kAlgorithms[offer.algorithm];
    if (offer.math == kTensorCores) name += " on tensor cores";
    algorithms_.push_back({.id = offer.algorithm,
                           .name = std::move(name),
                           .workspace_bytes = offer.workspace_bytes,
                           .math = offer.math});
  }
  if (algorithms_.empty())
    return failed("cuDNN: cudnnGetConvolutionForwardAlgorithm_v7 offers no algorithm for it (status ", code,
                  ")");
  return Status::ok();
}

CudnnConvolution::~CudnnConvolution() {
  const Api& api = *loaded();
  for (void* tensor : {data_, out_})
    if (tensor != nullptr) api.destroy_tensor(tensor);
  if (weight_ != nullptr) api.destroy_filter(weight_);
  if (convolution_ != nullptr) api.destroy_convolution(convolution_);
}

Status CudnnConvolution::run(const Algorithm& algorithm, cuda::DevicePtr data, cuda::DevicePtr weight,
                             cuda::DevicePtr workspace, cuda::DevicePtr out) const {
  const float one = 1, zero = 0;
  // What was offered with tensor cores is asked for with them. A word of the descriptor; nothing is queued.
  RETURN_IF_ERROR(checked(loaded()->set_math(convolution_, algorithm.math), "cudnnSetConvolutionMathType"));
  const auto pointer = [](cuda::DevicePtr p) { return reinterpret_cast<void*>(p); };
  return checked(loaded()->forward(cudnn_.handle(), &one, data_, pointer(data), weight_, pointer(weight),
                                   convolution_, algorithm.id, pointer(workspace), algorithm.workspace_bytes,
                                   &zero, out_, pointer(out)),
                 "cudnnConvolutionForward");
}

}  // namespace tuner
