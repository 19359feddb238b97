// ONNX Runtime as a contestant: each case as a model of one operator with its epilogue, optimised by the
// library, weights inside. The library is found at run time, by BENCH_LIBONNXRUNTIME or by the loader; no
// header of it is needed.
#pragma once

#include <memory>

#include "tests/bench/cpu/bench_case.h"

namespace tuner {

class OnnxRuntimeApi;

class OnnxRuntime {
 public:
  // NotFound: not here; Failed: it is not what it should be. `threads`: of each of its calls.
  static Result<std::unique_ptr<OnnxRuntime>> open(int threads);
  ~OnnxRuntime();

  const std::string& version() const;
  // One contestant; with several threads two, as its idle threads may sleep or spin between calls (as they
  // do when a user says nothing). Images are NCHW in and out: cases with blocked ones are left out.
  void add(const BenchCase& bench_case, int sets, std::vector<Contestant>& contestants,
           std::vector<MissingPeer>& missing) const;

 private:
  OnnxRuntime() = default;
  std::unique_ptr<const OnnxRuntimeApi> api_;
};

}  // namespace tuner
