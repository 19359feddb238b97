// NVML beside the CUDA driver for tests: one device, in one state.
#include <cstring>

#include "compiler_core/runtime/cuda_driver_api.h"

using tuner::cuda::kNvmlClockSm;
using tuner::cuda::NvmlDevice;

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, NvmlDevice* device) {
  *device = nullptr;
  return std::strcmp(uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f") == 0 ? 0 : 6;
}
int nvmlDeviceGetClockInfo(NvmlDevice, int type, unsigned* mhz) {
  *mhz = type == kNvmlClockSm ? 1980 : 2619;
  return 0;
}
int nvmlDeviceGetTemperature(NvmlDevice, int, unsigned* celsius) {
  *celsius = 41;
  return 0;
}
int nvmlDeviceGetPowerUsage(NvmlDevice, unsigned* milliwatts) {
  *milliwatts = 212'700;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(NvmlDevice, unsigned long long* reasons) {
  *reasons = 0x1 | 0x4 | 0x20;  // idle, power cap, temperature
  return 0;
}

}  // extern "C"
