// oneDNN 2.x as a contestant, in every way its users call it. Built where its headers are found; the library
// is loaded at run time.
#pragma once

#include <memory>

#include "tests/bench/cpu/bench_case.h"

namespace tuner {

class OnednnApi;

class Onednn {
 public:
  // NotFound: not built in, or not here. `threads` is OpenMP's for the whole process.
  static Result<std::unique_ptr<Onednn>> open(int threads);
  ~Onednn();

  std::string version() const;
  const OnednnApi& api() const { return *api_; }
  // One contestant for each way that serves the case; the others go to `missing` with the library's reason.
  //   matmul   weights packed, inner product (packed), plain operands, dnnl_sgemm
  //   conv2d, NCHW on both sides: the library's own layouts with both reorders timed (direct, Winograd),
  //   plain
  //            NCHW; else: its own layouts (direct, Winograd, auto), channels last
  //   rows     softmax, layer_norm, elementwise by eltwise or binary
  void add(const BenchCase& bench_case, int sets, std::vector<Contestant>& contestants,
           std::vector<MissingPeer>& missing) const;

 private:
  Onednn() = default;
  std::unique_ptr<const OnednnApi> api_;
};

}  // namespace tuner
