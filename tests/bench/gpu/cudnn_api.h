// What we call of cuDNN, written down after its documented interface, the same in 8 and 9: no header of it is
// needed to build. First the functions that take descriptors of tensors (cudnn.cpp), then the graph interface
// (cudnn_descriptor.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/cuda_driver_api.h"

namespace tuner::cudnn {

inline constexpr int kSuccess = 0, kNchw = 0, kNhwc = 1, kCrossCorrelation = 1;
inline constexpr int kFloat = 0, kHalf = 2, kBFloat16 = 9;      // cudnnDataType_t
inline constexpr int kTensorCores = 1, kFusedMultiplyAdds = 3;  // cudnnMathType_t

// cudnnConvolutionFwdAlgoPerf_t
struct Offer {
  int algorithm;
  int status;
  float time;
  size_t workspace_bytes;
  int determinism;
  int math;
  int reserved[3];
};
static_assert(sizeof(Offer) == 48);

#define TUNER_CUDNN_SYMBOLS(X)                                                                               \
  X(create, int, "cudnnCreate", (void** handle))                                                             \
  X(destroy, int, "cudnnDestroy", (void* handle))                                                            \
  X(version, size_t, "cudnnGetVersion", ())                                                                  \
  X(set_stream, int, "cudnnSetStream", (void* handle, cuda::Stream stream))                                  \
  X(create_tensor, int, "cudnnCreateTensorDescriptor", (void** tensor))                                      \
  X(destroy_tensor, int, "cudnnDestroyTensorDescriptor", (void* tensor))                                     \
  X(set_tensor, int, "cudnnSetTensor4dDescriptor",                                                           \
    (void* tensor, int format, int type, int n, int c, int h, int w))                                        \
  X(create_filter, int, "cudnnCreateFilterDescriptor", (void** filter))                                      \
  X(destroy_filter, int, "cudnnDestroyFilterDescriptor", (void* filter))                                     \
  X(set_filter, int, "cudnnSetFilter4dDescriptor",                                                           \
    (void* filter, int type, int format, int k, int c, int h, int w))                                        \
  X(create_convolution, int, "cudnnCreateConvolutionDescriptor", (void** convolution))                       \
  X(destroy_convolution, int, "cudnnDestroyConvolutionDescriptor", (void* convolution))                      \
  X(set_convolution, int, "cudnnSetConvolution2dDescriptor",                                                 \
    (void* convolution, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w,    \
     int mode, int type))                                                                                    \
  X(set_groups, int, "cudnnSetConvolutionGroupCount", (void* convolution, int groups))                       \
  X(set_math, int, "cudnnSetConvolutionMathType", (void* convolution, int math))                             \
  X(workspace, int, "cudnnGetConvolutionForwardWorkspaceSize",                                               \
    (void* handle, void* data, void* weight, void* convolution, void* out, int algorithm, size_t* bytes))    \
  X(offers, int, "cudnnGetConvolutionForwardAlgorithm_v7",                                                   \
    (void* handle, void* data, void* weight, void* convolution, void* out, int most, int* found,             \
     Offer* offers))                                                                                         \
  X(forward, int, "cudnnConvolutionForward",                                                                 \
    (void* handle, const void* alpha, void* data, const void* x, void* weight, const void* w,                \
     void* convolution, int algorithm, void* workspace, size_t workspace_bytes, const void* beta, void* out, \
     void* y))                                                                                               \
  X(create_descriptor, int, "cudnnBackendCreateDescriptor", (int type, void** descriptor))                   \
  X(destroy_descriptor, int, "cudnnBackendDestroyDescriptor", (void* descriptor))                            \
  X(set, int, "cudnnBackendSetAttribute",                                                                    \
    (void* descriptor, int attribute, int type, int64_t count, const void* elements))                        \
  X(get, int, "cudnnBackendGetAttribute",                                                                    \
    (const void* descriptor, int attribute, int type, int64_t most, int64_t* count, void* elements))         \
  X(finalize, int, "cudnnBackendFinalize", (void* descriptor))                                               \
  X(execute, int, "cudnnBackendExecute", (void* handle, void* plan, void* operands))

struct Api {
#define TUNER_CUDNN_MEMBER(member, result, symbol, parameters) \
  result(*member) parameters = nullptr;  // NOLINT
  TUNER_CUDNN_SYMBOLS(TUNER_CUDNN_MEMBER)
#undef TUNER_CUDNN_MEMBER
  void (*last_error)(char* text, size_t bytes) = nullptr;  // cudnnGetLastErrorString; 8 has none
};

// The library, once in the life of the process: it cannot be unloaded safely.
const Result<Api>& loaded();

// "cuDNN: CALL answered status 3000 (what the library says of it)".
Status checked(int code, const char* call);

}  // namespace tuner::cudnn
