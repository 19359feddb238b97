// CudaDriver: libcuda, loaded when first used (dlopen). The only user of the driver API, with cuda_objects.h
// (what it owns) and nvml.h (clocks and temperatures). Needs no CUDA header to build: the few declarations
// stand in cuda_driver_api.h, ours, after the documented ABI of the driver.
//
// A fault of a kernel (an illegal address, a launch timeout) poisons the context of its process: every later
// call fails. So candidates run in a child process, which is ended; see measure_server/runner. A process that
// has called anything here must not fork and go on using the driver in the child.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/runtime/cuda_driver_api.h"

namespace tuner {

// OK, or Unavailable saying why no GPU can be used here: no libcuda ($TUNER_LIBCUDA names a file, else the
// loader's path), driver too old (needs CUDA >= 12.3), no device. Looked at once in the life of a process;
// from any thread.
Status cuda_available();

struct CudaDevice {
  int ordinal = 0;
  std::string name;  // "NVIDIA H200"
  std::string arch;  // "sm_90"
  int multiprocessors = 0;
  int64_t memory_bytes = 0, l2_bytes = 0;
  int driver_version = 0;  // 13000
  std::string uuid;        // "GPU-8f0c...", as nvidia-smi prints it
  // Float32 fused multiply-adds at the highest clock, by the data sheet: 2 * lanes * clock. Not measured.
  double fp32_peak_gflops = 0;
  // The same of the tensor cores for 16-bit types with float32 sums, and for bytes; 0: none that kernels here
  // use.
  double half_peak_gflops = 0, byte_peak_gflops = 0;
};
// Every device, in the driver's order; errors as cuda_available().
Result<std::vector<CudaDevice>> cuda_devices();

// "NVIDIA H200 sm_90 | 132 multiprocessors | 139.8 GiB L2 50.0 MiB | driver CUDA 13.0": the hardware
// fingerprint of measure records made on it. Without the UUID: cards of one kind compare.
std::string fingerprint(const CudaDevice& device);
// The architectures whose cubins are made for this device, the most special one last: sm_90 and sm_90a.
// (A cubin of sm_80 runs on sm_89 too, but is not its native code: times of it are of another target.)
std::vector<std::string> native_archs(const CudaDevice& device);
// Names of the targets of a device with this hardware fingerprint, for programs that have no back end, too:
// of its architectures, then of the same for its class. Of another family: none.
std::vector<std::string> targets_of_device(std::string_view family, std::string_view hardware);
// "13.0" of 13000.
std::string cuda_version_text(int version);

namespace cuda {

// The loaded functions; null unless cuda_available().
const Api* api();

// What one driver call answered.
class [[nodiscard]] CallStatus {
 public:
  CallStatus() = default;
  CallStatus(int code, const char* call) : code_(code), call_(call) {}
  bool is_ok() const { return code_ == kSuccess; }
  explicit operator bool() const { return is_ok(); }
  int code() const { return code_; }
  // "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
  std::string message() const;
  Status status() const { return is_ok() ? Status::ok() : unavailable(message()); }

  // Whose trouble it is: the device's or the driver's own (a memory error, a card that fell off the bus), and
  // no fault of a kernel.
  bool is_of_device() const;
  // True if this GPU or driver takes no code of that kind: no fault of the kernel either.
  bool is_of_code_for_others() const { return code_ == kNoBinaryForGpu || code_ == kUnsupportedPtxVersion; }

 private:
  int code_ = kSuccess;
  const char* call_ = "";
};

}  // namespace cuda
}  // namespace tuner
