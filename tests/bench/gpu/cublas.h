// Cublas: NVIDIA's library, loaded when first used (dlopen): the peer of our matrix products. Single
// precision throughout: TF32 and emulated single precision are off, whatever the environment says.
//
// Needs no CUDA header to build. Uses the context that is current on the calling thread; one thread at a
// time.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/cuda_objects.h"
#include "templates/workload/workload.h"

namespace tuner {

class Cublas {
 public:
  // Unavailable saying why: no library ($TUNER_LIBCUBLAS names a file; else libcublas.so.13, then .12, of the
  // loader's path, then of /usr/local/cuda/lib64), or it makes no handle. Calls are queued on `stream`, which
  // outlives this.
  static Result<Cublas> open(const cuda::DeviceStream& stream);
  Cublas(Cublas&& other) noexcept
      : version_(std::move(other.version_)), workspace_(std::move(other.workspace_)), handle_(other.handle_) {
    other.handle_ = nullptr;
  }
  Cublas& operator=(Cublas&&) = delete;
  ~Cublas();

  const std::string& version() const { return version_; }  // "13.1.0"

  // Queues out = a * b, operands stored as the workload says; no bias, no activation. Failed with the
  // library's code.
  Status multiply(const MatmulWorkload& w, cuda::DevicePtr a, cuda::DevicePtr b, cuda::DevicePtr out) const;

 private:
  Cublas() = default;
  std::string version_;
  cuda::DeviceMemory workspace_;
  void* handle_ = nullptr;
};

// A product whose sizes the library takes (32 bits each): else why not.
Status cublas_serves(const MatmulWorkload& w);

}  // namespace tuner
