// CublasLt: NVIDIA's library for products on tensor cores, loaded when first used (dlopen): the peer of our
// products of bfloat16, float16 and bytes, of those of float32 that may take TF32, beside cublasSgemm of
// other float32, and of convolutions that are products. Which of its algorithms there are, cublaslt_search.h
// finds out; which is the fastest is for the caller.
//
// Needs no CUDA header to build. Uses the context that is current on the calling thread; one thread at a
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/cuda_objects.h"
#include "templates/workload/workload.h"
#include "tests/bench/gpu/cublaslt_api.h"

namespace tuner {

class CublasLt {
 public:
  // Unavailable saying why: no library ($TUNER_LIBCUBLASLT names a file; else libcublasLt.so.13, then .12),
  // or it makes no handle. Calls are queued on `stream`, which outlives this.
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

// How an algorithm is configured, in the library's numbers.
struct CublasLtConfig {
  int32_t id = 0, split_k = 1;
  uint32_t tile = 0, stages = 0, reduction = 0, swizzle = 0, custom = 0;
  uint16_t inner = 0, cluster = 0;
  auto operator<=>(const CublasLtConfig&) const = default;
};

struct CublasLtAlgorithm {
  cublaslt::Opaque opaque{};
  size_t workspace_bytes = 0;
  CublasLtConfig config;
  bool on_tensor_cores = false;
  std::string origin;  // "heuristic #3", "heuristic of id 66, #1", "enumerated"
};

// One product, described to the library.
//
//   dtype      a, b                              sums      out
//   float32    float32                           float32   float32; with `allow_tf32` on tensor cores, operands
//                                                          rounded to 10 bits of fraction
//   bfloat16   bfloat16                          float32   float32 or bfloat16
//   float16    float16                           float32   float32 or float16
//   int8       int8 both; a as [M, K],           int32     int32
//              b as [N, K]
//
// The library multiplies no uint8, and bytes only where they are stored like that. The workload's a less 128
// is int8, so the caller makes such operands (peers.cpp), and puts 128 times the sum of b's column on the
// answer.
class CublasLtProduct {
 public:
  // What the library does besides the product: bias and ReLU by an epilogue of its own, a residual as the
  // matrix that it adds (beta is 1). kNothing leaves them away.
  enum class Epilogue : uint8_t { kNothing, kWhole };
  // Addresses on the device, of one set of operands. bias has elements of out's type.
  struct Operands {
    cuda::DevicePtr a = 0, b = 0, out = 0;
    cuda::DevicePtr bias = 0, residual = 0;  // where the product has them and the epilogue is whole
  };

  // Failed: the library cannot be told of it. `lt` outlives this. `bias` is where a bias will lie, which
  // decides about its alignment; 0 where none is read.
  static Result<std::unique_ptr<CublasLtProduct>> describe(const CublasLt& lt, const MatmulWorkload& w,
                                                           Epilogue epilogue, cuda::DevicePtr bias);
  CublasLtProduct(const CublasLtProduct&) = delete;
  CublasLtProduct& operator=(const CublasLtProduct&) = delete;
  ~CublasLtProduct();

  // Queues out = a * b, with what the epilogue does. Failed with the library's code.
  Status run(const CublasLtAlgorithm& algorithm, const Operands& operands, cuda::DevicePtr workspace) const;

 private:
  friend class CublasLtAlgorithms;
  explicit CublasLtProduct(const CublasLt& lt) : lt_(lt) {}
  Status describe(const MatmulWorkload& w, Epilogue epilogue, cuda::DevicePtr bias);

  const CublasLt& lt_;
  bool sums_integers_ = false, adds_bias_ = false, adds_residual_ = false;
  int compute_ = 0, scale_ = 0, type_ = 0, out_type_ = 0;                          // the library's numbers
  void *product_ = nullptr, *left_ = nullptr, *right_ = nullptr, *out_ = nullptr;  // of columns: left is b
};

// A product that the library can be told of: else why not.
Status cublaslt_serves(const MatmulWorkload& w);

}  // namespace tuner
