// Models for GPUs on the driver for tests (tests/measure_server/fake_cuda), which runs printed kernels on
// this host. What is set here must be set before a driver or a compiler is looked for.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/target.h"
#include "tests/support/temporary_folder.h"
#include "tuner/compile/compile_model.h"
#include "tuner/model/compiled_model.h"

namespace tuner::testing {

// The environment of all tests in a program, and of programs that they start.
inline void use_fake_gpu() {
  setenv("TUNER_LIBCUDA", TUNER_FAKE_CUDA, 1);
  setenv("TUNER_NVRTC", TUNER_FAKE_NVRTC, 1);
  std::filesystem::create_directories(TUNER_FAKE_PROGRAMS);
  setenv("TUNER_FAKE_CUDA_PROGRAMS", TUNER_FAKE_PROGRAMS, 1);
  // The real NVRTC, which the one for tests calls.
  for (const char* real : {"/usr/local/cuda/lib64/libnvrtc.so", "/usr/local/cuda/lib/libnvrtc.so"})
    if (std::getenv("TUNER_FAKE_NVRTC_REAL") == nullptr && std::filesystem::exists(real))
      setenv("TUNER_FAKE_NVRTC_REAL", real, 1);
}

// A setting of the driver for tests, for as long as this lives.
class FakeSetting {
 public:
  FakeSetting(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  FakeSetting(const FakeSetting&) = delete;
  ~FakeSetting() { unsetenv(name_.c_str()); }

 private:
  const std::string name_;
};

inline CompileRequest gpu_request(const TemporaryFolder& folder, const std::string& bytes,
                                  const std::string& target = "cuda -arch=sm_90a") {
  CompileRequest request;
  request.model = folder.file("net.onnx");
  request.output = folder.file("out");
  request.name = "net";
  request.db = folder.file("none.db");
  request.tune = false;
  request.target = *parse_target(target);
  std::ofstream(request.model, std::ios::binary) << bytes;
  return request;
}

inline Result<CompiledReport> compile(const CompileRequest& request) {
  const auto never = [] { return false; };
  ASSIGN_OR_RETURN(PreparedModel model, prepare_model(request, never));
  ASSIGN_OR_RETURN(const auto folder, open_model_folder(request, model));
  return build_model(request, model, *folder, never);
}

}  // namespace tuner::testing
