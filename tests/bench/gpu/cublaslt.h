// CublasLt: NVIDIA's library for products on tensor cores, loaded when first used (dlopen): the peer of our products of
// bfloat16, float16 and bytes, of those of float32 that may take TF32, and beside cublasSgemm of other float32. Its heuristic
// offers algorithms; which of them is the fastest is for the caller to find out.
//
// Needs no CUDA header to build. Uses the context that is current on the calling thread; one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/cuda_objects.h"
#include "templates/workload/workload.h"

namespace tuner {

class CublasLt {
 public:
  // Unavailable saying why: no library ($TUNER_LIBCUBLASLT names a file; else libcublasLt.so.13, then .12), or it makes no
  // handle. Calls are queued on `stream`, which outlives this.
  static Result<CublasLt> open(const cuda::DeviceStream& stream);
  CublasLt(CublasLt&& other) noexcept
      : version_(std::move(other.version_)), handle_(other.handle_), stream_(other.stream_) {
    other.handle_ = nullptr;
  }
  CublasLt& operator=(CublasLt&&) = delete;
  ~CublasLt();

  const std::string& version() const { return version_; }  // "13.1.0"
  void* handle() const { return handle_; }
  cuda::Stream stream() const { return stream_; }

 private:
  CublasLt() = default;
  std::string version_;
  void* handle_ = nullptr;
  cuda::Stream stream_ = nullptr;
};

// One product, described to the library, and the algorithms that its heuristic has for it.
//
//   dtype      a, b                              sums      out
//   float32    float32                           float32   float32; with `allow_tf32` on tensor cores, operands
//                                                          rounded to 10 bits of fraction
//   bfloat16   bfloat16                          float32   float32 or bfloat16
//   float16    float16                           float32   float32 or float16
//   int8       int8 both; a as [M, K],           int32     int32
//              b as [N, K]
//
// The library multiplies no uint8, and bytes only where they are stored like that. The workload's a less 128 is int8, so the
// caller makes such operands (peers.cpp), and puts 128 times the sum of b's column on the answer.
class CublasLtProduct {
 public:
  struct Algorithm {
    std::array<uint64_t, 8> opaque{};  // cublasLtMatmulAlgo_t
    size_t workspace_bytes = 0;
    int place = 0;  // in the order of the heuristic, from 1
  };
  static constexpr int kMostAlgorithms = 8;
  static constexpr int64_t kMostWorkspaceBytes = int64_t{64} << 20;

  // Failed: the library cannot do it, or has no algorithm for it on this device. `lt` outlives this.
  static Result<std::unique_ptr<CublasLtProduct>> describe(const CublasLt& lt, const MatmulWorkload& w);
  CublasLtProduct(const CublasLtProduct&) = delete;
  CublasLtProduct& operator=(const CublasLtProduct&) = delete;
  ~CublasLtProduct();

  // At least one, the one that the heuristic takes for the fastest first.
  const std::vector<Algorithm>& algorithms() const { return algorithms_; }
  // Queues out = a * b, operands stored as above; no bias, no activation. Failed with the library's code.
  Status run(const Algorithm& algorithm, cuda::DevicePtr a, cuda::DevicePtr b, cuda::DevicePtr workspace,
             cuda::DevicePtr out) const;

 private:
  explicit CublasLtProduct(const CublasLt& lt) : lt_(lt) {}
  Status describe(const MatmulWorkload& w);
  Status find_algorithms();

  const CublasLt& lt_;
  bool sums_integers_ = false;
  void *product_ = nullptr, *left_ = nullptr, *right_ = nullptr, *out_ = nullptr;  // of columns: left is b
  std::vector<Algorithm> algorithms_;
};

// A product that the library can be told of: else why not.
Status cublaslt_serves(const MatmulWorkload& w);

}  // namespace tuner
