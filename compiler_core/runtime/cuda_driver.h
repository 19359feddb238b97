// CudaDriver: libcuda and, where it is there, NVML, loaded when first used (dlopen). The only user of the
// driver API. Needs no CUDA header to build: the few declarations stand in cuda_driver_api.h, ours, after the
// documented ABI of the driver.
//
// A fault of a kernel (an illegal address, a launch timeout) poisons the context of its process: every later
// call fails. So candidates run in a child process, which is ended; see measure_server/runner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"

namespace tuner {

// OK, or why no GPU can be used here: no libcuda ($TUNER_LIBCUDA names a file, else the loader's path),
// driver too old (needs CUDA >= 12.3), no device.
Status cuda_available();

struct CudaDevice {
  int ordinal = 0;
  std::string name;  // "NVIDIA H200"
  std::string arch;  // "sm_90"
  int multiprocessors = 0;
  int64_t memory_bytes = 0, l2_bytes = 0;
  int driver_version = 0;  // 13000
  std::string uuid;
};
Result<std::vector<CudaDevice>> cuda_devices();

}  // namespace tuner
