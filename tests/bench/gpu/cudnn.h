// Cudnn: NVIDIA's library for convolutions, loaded when first used (dlopen): the peer of ours. It is asked by
// its graph interface (cudnn_graph.h); here are its handle and, where that has nothing, its older functions
// that take descriptors of tensors (cudnnConvolutionForward):
//
//   float32              fused multiply-adds, no tensor cores; direct and implicit algorithms only, as ours
//                        are: Winograd and FFT round otherwise
//   float32 where        tensor cores allowed, operands rounded to 10 bits of fraction; every algorithm that
//                        the library
//   TF32 is allowed      offers
//   bfloat16, float16    likewise, sums in float32. out is documented to be of the same type only
//
// Images are NCHW or NHWC, in and out alike; where channels come last, weights are [OC, KH, KW, IC].
//
// Needs no header of it to build. Uses the context that is current on the calling thread; one thread at a
// time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/cuda_objects.h"
#include "templates/workload/workload.h"

namespace tuner {

class Cudnn {
 public:
  // Unavailable saying why: no library ($TUNER_LIBCUDNN names a file; else libcudnn.so.9, then .8), or it
  // makes no handle. Calls are queued on `stream`, which outlives this.
  static Result<Cudnn> open(const cuda::DeviceStream& stream);
  Cudnn(Cudnn&& other) noexcept : version_(std::move(other.version_)), handle_(other.handle_) {
    other.handle_ = nullptr;
  }
  Cudnn& operator=(Cudnn&&) = delete;
  ~Cudnn();

  const std::string& version() const { return version_; }  // "9.15.0"
  void* handle() const { return handle_; }

 private:
  Cudnn() = default;
  std::string version_;
  void* handle_ = nullptr;
};

// One convolution, described to the library, and the algorithms that it has for it.
class CudnnConvolution {
 public:
  struct Algorithm {
    int id = 0;
    std::string name;  // "implicit_gemm"
    size_t workspace_bytes = 0;
    int math = 0;  // cudnnMathType_t
  };
  // Failed: the library has no algorithm for it. `w` is one that cudnn_serves(), and `cudnn` outlives this.
  static Result<std::unique_ptr<CudnnConvolution>> describe(const Cudnn& cudnn, const Conv2dWorkload& w,
                                                            DType out);
  CudnnConvolution(const CudnnConvolution&) = delete;
  CudnnConvolution& operator=(const CudnnConvolution&) = delete;
  ~CudnnConvolution();

  // Those that it takes on this device.
  const std::vector<Algorithm>& algorithms() const { return algorithms_; }
  // Queues out = data * weight; no bias, no residual, no activation.
  Status run(const Algorithm& algorithm, cuda::DevicePtr data, cuda::DevicePtr weight,
             cuda::DevicePtr workspace, cuda::DevicePtr out) const;

 private:
  explicit CudnnConvolution(const Cudnn& cudnn) : cudnn_(cudnn) {}
  Status describe(const Conv2dWorkload& w, DType out);
  void find_direct_algorithms();
  Status find_offered_algorithms();

  const Cudnn& cudnn_;
  void *data_ = nullptr, *out_ = nullptr, *weight_ = nullptr, *convolution_ = nullptr;
  std::vector<Algorithm> algorithms_;
};

// A convolution that the library can be told of: else why not (another layout, bytes...).
Status cudnn_serves(const Conv2dWorkload& w);

}  // namespace tuner
