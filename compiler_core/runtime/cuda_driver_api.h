// The few declarations of the CUDA driver API and of NVML that we use, written down after their documented
// ABI: no CUDA header is needed to build, and a driver newer than us still has these symbols.
//
// Names that end in _v2 are what libcuda exports; the names of the manual are macros of cuda.h for them.
// Where a newer _v2 exists beside the plain name (cuEventElapsedTime, cuDeviceGetUuid), the plain one is
// exported still and does the same for what we ask, on older drivers too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tuner::cuda {

// Handles are opaque; null is "none" (of a stream: the default one).
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;
using DevicePtr = uint64_t;
using Device = int;

// CUresult: only the codes that are told apart.
enum CuResult : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kNvlinkUncorrectable = 220,
  kUnsupportedPtxVersion = 222,
  kInvalidSource = 300,
  kNotFound = 500,
  kLaunchOutOfResources = 701,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kCaptureUnsupported = 900,  // these and those between them: recording failed, and nothing else
  kCaptureWrongThread = 908,
};

// CUdevice_attribute.
enum DeviceAttribute : int {
  kClockKhz = 13,
  kMultiprocessors = 16,
  kL2Bytes = 38,
  kComputeMajor = 75,
  kComputeMinor = 76,
};

// CUfunction_attribute.
inline constexpr int kMaxDynamicSharedBytes = 8;
// CUevent_flags, CUstream_flags: a default stream waits for the copies that were issued before.
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kStreamDefault = 0;
// CUstreamCaptureMode: calls that are not queued on the stream are not watched.
inline constexpr int kCaptureRelaxed = 2;

struct Uuid {
  char bytes[16];
};

// CUtensorMap: opaque, passed to kernels by value.
struct alignas(64) TensorMapBytes {
  uint64_t opaque[16] = {};
};
// CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
// CUtensorMapFloatOOBfill.
enum TensorMapType : int {
  kMapUInt8 = 0,
  kMapUInt16 = 1,
  kMapUInt32 = 2,
  kMapInt32 = 3,
  kMapUInt64 = 4,
  kMapInt64 = 5,
  kMapFloat16 = 6,
  kMapFloat32 = 7,
  kMapFloat64 = 8,
  kMapBFloat16 = 9,
};
inline constexpr int kMapNotInterleaved = 0;
inline constexpr int kMapSwizzle0 = 0, kMapSwizzle32 = 1, kMapSwizzle64 = 2, kMapSwizzle128 = 3;
inline constexpr int kMapL2As = 0, kMapL2By64 = 1, kMapL2By128 = 2, kMapL2By256 = 3;
inline constexpr int kMapFillsZeros = 0, kMapFillsNan = 1;

// The symbols, resolved together: X(member, symbol, parameters). All return a CUresult.
#define TUNER_CUDA_SYMBOLS(X)                                                                                \
  X(init, "cuInit", (unsigned flags))                                                                        \
  X(driver_version, "cuDriverGetVersion", (int* version))                                                    \
  X(error_name, "cuGetErrorName", (int error, const char** text))                                            \
  X(error_string, "cuGetErrorString", (int error, const char** text))                                        \
  X(device_count, "cuDeviceGetCount", (int* count))                                                          \
  X(device_get, "cuDeviceGet", (Device * device, int ordinal))                                               \
  X(device_name, "cuDeviceGetName", (char* name, int capacity, Device device))                               \
  X(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, Device device))                                   \
  X(device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, Device device))                    \
  X(device_uuid, "cuDeviceGetUuid", (Uuid * uuid, Device device))                                            \
  X(context_retain, "cuDevicePrimaryCtxRetain", (Context * context, Device device))                          \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", (Device device))                                        \
  X(context_set, "cuCtxSetCurrent", (Context context))                                                       \
  X(context_synchronize, "cuCtxSynchronize", ())                                                             \
  X(module_load, "cuModuleLoadData", (Module * module, const void* image))                                   \
  X(module_unload, "cuModuleUnload", (Module module))                                                        \
  X(module_function, "cuModuleGetFunction", (Function * function, Module module, const char* name))          \
  X(function_set, "cuFuncSetAttribute", (Function function, int attribute, int value))                       \
  X(memory_alloc, "cuMemAlloc_v2", (DevicePtr * pointer, size_t bytes))                                      \
  X(memory_free, "cuMemFree_v2", (DevicePtr pointer))                                                        \
  X(copy_to_device, "cuMemcpyHtoD_v2", (DevicePtr to, const void* from, size_t bytes))                       \
  X(copy_to_host, "cuMemcpyDtoH_v2", (void* to, DevicePtr from, size_t bytes))                               \
  X(copy_on_device, "cuMemcpyDtoDAsync_v2", (DevicePtr to, DevicePtr from, size_t bytes, Stream stream))     \
  X(fill_bytes, "cuMemsetD8Async", (DevicePtr to, unsigned char value, size_t count, Stream stream))         \
  X(launch, "cuLaunchKernel",                                                                                \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,                 \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** params, void** extra)) \
  X(event_create, "cuEventCreate", (Event * event, unsigned flags))                                          \
  X(event_destroy, "cuEventDestroy_v2", (Event event))                                                       \
  X(event_record, "cuEventRecord", (Event event, Stream stream))                                             \
  X(event_synchronize, "cuEventSynchronize", (Event event))                                                  \
  X(event_elapsed, "cuEventElapsedTime", (float* milliseconds, Event begin, Event end))                      \
  X(stream_create, "cuStreamCreate", (Stream * stream, unsigned flags))                                      \
  X(stream_destroy, "cuStreamDestroy_v2", (Stream stream))                                                   \
  X(stream_synchronize, "cuStreamSynchronize", (Stream stream))                                              \
  X(capture_begin, "cuStreamBeginCapture_v2", (Stream stream, int mode))                                     \
  X(capture_end, "cuStreamEndCapture", (Stream stream, Graph * graph))                                       \
  X(graph_instantiate, "cuGraphInstantiateWithFlags",                                                        \
    (GraphExec * made, Graph graph, unsigned long long flags))                                               \
  X(graph_launch, "cuGraphLaunch", (GraphExec graph, Stream stream))                                         \
  X(graph_exec_destroy, "cuGraphExecDestroy", (GraphExec graph))                                             \
  X(graph_destroy, "cuGraphDestroy", (Graph graph))

// Symbols that kernels with tensor maps need, and nothing else: null where the driver lacks them.
#define TUNER_CUDA_OPTIONAL_SYMBOLS(X)                                                                 \
  X(tensor_map_tiled, "cuTensorMapEncodeTiled",                                                        \
    (TensorMapBytes * map, int type, uint32_t rank, void* address, const uint64_t* extents,            \
     const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave, int swizzle, \
     int l2, int fill))                                                                                \
  X(tensor_map_im2col, "cuTensorMapEncodeIm2col",                                                      \
    (TensorMapBytes * map, int type, uint32_t rank, void* address, const uint64_t* extents,            \
     const uint64_t* strides, const int* lower, const int* upper, uint32_t channels, uint32_t pixels,  \
     const uint32_t* steps, int interleave, int swizzle, int l2, int fill))

// Pointers to all of them.
struct Api {
#define TUNER_CUDA_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;  // NOLINT
  TUNER_CUDA_SYMBOLS(TUNER_CUDA_MEMBER)
  TUNER_CUDA_OPTIONAL_SYMBOLS(TUNER_CUDA_MEMBER)
#undef TUNER_CUDA_MEMBER
};

// NVML: nvmlReturn_t is 0 for success. Each of these may be missing from an old library.
using NvmlDevice = struct NvmlDeviceTag*;
inline constexpr int kNvmlClockSm = 1, kNvmlClockMemory = 2;  // nvmlClockType_t
inline constexpr int kNvmlTemperatureGpu = 0;                 // nvmlTemperatureSensors_t

#define TUNER_NVML_SYMBOLS(X)                                                                    \
  X(init, "nvmlInit_v2", ())                                                                     \
  X(device_by_uuid, "nvmlDeviceGetHandleByUUID", (const char* uuid, NvmlDevice* device))         \
  X(clock_mhz, "nvmlDeviceGetClockInfo", (NvmlDevice device, int type, unsigned* mhz))           \
  X(temperature, "nvmlDeviceGetTemperature", (NvmlDevice device, int sensor, unsigned* celsius)) \
  X(power_mw, "nvmlDeviceGetPowerUsage", (NvmlDevice device, unsigned* milliwatts))              \
  X(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons", (NvmlDevice device, unsigned long long* reasons))

struct NvmlApi {
#define TUNER_CUDA_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;  // NOLINT
  TUNER_NVML_SYMBOLS(TUNER_CUDA_MEMBER)
#undef TUNER_CUDA_MEMBER
};

}  // namespace tuner::cuda
