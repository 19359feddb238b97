#include "compiler_core/runtime/cuda_driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "compiler_core/base/gpu_class.h"

namespace tuner {
namespace cuda {
namespace {

constexpr int kOldestDriver = 12030;  // CUDA 12.3

struct Loaded {
  Status status;
  Api api;
  int driver_version = 0;
};

std::string library_path() {
  const char* given = std::getenv("TUNER_LIBCUDA");
  return given != nullptr && *given != '\0' ? given : "libcuda.so.1";
}

Status load_symbols(void* library, const std::string& path, Api& api) {
#define TUNER_CUDA_RESOLVE(member, symbol, parameters)                         \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(library, symbol)); \
  if (api.member == nullptr)                                                   \
    return unavailable("no GPU: ", path, " has no ", symbol, ", expected in a driver of CUDA 12.3 or newer");
  TUNER_CUDA_SYMBOLS(TUNER_CUDA_RESOLVE)
#undef TUNER_CUDA_RESOLVE
#define TUNER_CUDA_RESOLVE(member, symbol, parameters) \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(library, symbol));
  TUNER_CUDA_OPTIONAL_SYMBOLS(TUNER_CUDA_RESOLVE)
#undef TUNER_CUDA_RESOLVE
  return Status::ok();
}

// Error texts need no initialised driver, so they are there for cuInit's own failure too.
std::string text_of(const Api& api, int code) {
  const char *name = nullptr, *meaning = nullptr;
  if (api.error_name(code, &name) != kSuccess || name == nullptr) return str("CUDA error ", code);
  if (api.error_string(code, &meaning) != kSuccess || meaning == nullptr) return name;
  return str(name, " (", meaning, ")");
}

Status load(Loaded& loaded) {
  const std::string path = library_path();
  // Never closed: the driver keeps threads and exit handlers of its own.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return unavailable("no GPU: the driver library cannot be loaded: ", dlerror(),
                       "; install the NVIDIA driver, or name the library in TUNER_LIBCUDA");
  RETURN_IF_ERROR(load_symbols(library, path, loaded.api));
  const Api& api = loaded.api;
  if (const int code = api.driver_version(&loaded.driver_version); code != kSuccess)
    return unavailable("no GPU: cuDriverGetVersion: ", text_of(api, code));
  if (loaded.driver_version < kOldestDriver)
    return unavailable("no GPU: the driver supports CUDA ", cuda_version_text(loaded.driver_version),
                       ", expected ", cuda_version_text(kOldestDriver), " or newer; update it");
  if (const int code = api.init(0); code != kSuccess)
    return unavailable("no GPU: cuInit: ", text_of(api, code));
  int count = 0;
  if (const int code = api.device_count(&count); code != kSuccess)
    return unavailable("no GPU: cuDeviceGetCount: ", text_of(api, code));
  if (count < 1) return unavailable("no GPU: the driver is there but knows no device");
  return Status::ok();
}

const Loaded& loaded() {
  // Kept to the end of the process and beyond: threads may still be in the driver when it exits.
  static const Loaded* once = [] {
    auto* made = new Loaded;
    made->status = load(*made);
    return made;
  }();
  return *once;
}

// Float32 lanes of a multiprocessor, from the table "Arithmetic Instructions" of the CUDA C++ Programming
// Guide.
int fp32_lanes(int major, int minor) {
  if (major < 8 || (major == 8 && minor == 0)) return 64;
  return 128;
}

// Multiply-adds by the tensor cores of a multiprocessor in a clock, of 16-bit types with float32 sums and of
// bytes: the data sheets' rates by multiprocessors and clock. GeForce cards do the former at half the rate of
// the others.
struct TensorRates {
  int half = 0, byte = 0;
};
TensorRates tensor_rates(int major, int minor, std::string_view name) {
  if (major < 8) return {};  // no mma.sync of 16 x 8 x 16
  if (major == 8 && (minor == 0 || minor == 7)) return {1024, 2048};
  if (major == 9) return {2048, 4096};
  if (major == 10) return {4096, 8192};
  return {name.find("GeForce") != std::string_view::npos ? 256 : 512, 1024};
}

std::string uuid_text(const Uuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

CallStatus describe(const Api& api, int ordinal, CudaDevice& out) {
  Device device = 0;
  char name[256] = "";
  size_t memory = 0;
  Uuid uuid{};
  if (const int code = api.device_get(&device, ordinal); code != kSuccess) return {code, "cuDeviceGet"};
  if (const int code = api.device_name(name, sizeof name, device); code != kSuccess)
    return {code, "cuDeviceGetName"};
  if (const int code = api.device_memory(&memory, device); code != kSuccess)
    return {code, "cuDeviceTotalMem"};
  if (const int code = api.device_uuid(&uuid, device); code != kSuccess) return {code, "cuDeviceGetUuid"};
  int major = 0, minor = 0, l2_bytes = 0, clock_khz = 0;
  const std::pair<int, int*> attributes[] = {{kComputeMajor, &major},
                                             {kComputeMinor, &minor},
                                             {kMultiprocessors, &out.multiprocessors},
                                             {kL2Bytes, &l2_bytes},
                                             {kClockKhz, &clock_khz}};
  for (const auto& [attribute, value] : attributes)
    if (const int code = api.device_attribute(value, attribute, device); code != kSuccess)
      return {code, "cuDeviceGetAttribute"};
  out.ordinal = ordinal;
  out.name = name;
  out.arch = str("sm_", major, minor);
  out.memory_bytes = static_cast<int64_t>(memory);
  out.l2_bytes = l2_bytes;
  out.driver_version = loaded().driver_version;
  out.uuid = uuid_text(uuid);
  out.fp32_peak_gflops = 2e-6 * clock_khz * fp32_lanes(major, minor) * out.multiprocessors;
  const TensorRates tensor = tensor_rates(major, minor, out.name);
  out.half_peak_gflops = 2e-6 * clock_khz * tensor.half * out.multiprocessors;
  out.byte_peak_gflops = 2e-6 * clock_khz * tensor.byte * out.multiprocessors;
  return {};
}

}  // namespace

const Api* api() { return loaded().status.is_ok() ? &loaded().api : nullptr; }

std::string CallStatus::message() const { return str(call_, ": ", text_of(loaded().api, code_)); }

bool CallStatus::is_of_device() const {
  switch (code_) {
    case kDeviceUnavailable:
    case kNoDevice:
    case kInvalidDevice:
    case kNvlinkUncorrectable:
    case kEccUncorrectable:
    case kSystemNotReady:
    case kSystemDriverMismatch:
      return true;
    default:
      return false;
  }
}

}  // namespace cuda

Status cuda_available() { return cuda::loaded().status; }

std::string cuda_version_text(int version) { return str(version / 1000, ".", version % 1000 / 10); }

Result<std::vector<CudaDevice>> cuda_devices() {
  RETURN_IF_ERROR(cuda_available());
  const cuda::Api& api = *cuda::api();
  int count = 0;
  if (const int code = api.device_count(&count); code != cuda::kSuccess)
    return cuda::CallStatus(code, "cuDeviceGetCount").status();
  std::vector<CudaDevice> devices(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    RETURN_IF_ERROR(cuda::describe(api, i, devices[i]).status().with_context(str("device ", i, ": ")));
  return devices;
}

std::vector<std::string> native_archs(const CudaDevice& device) {
  std::vector<std::string> archs{device.arch};
  // From 9.0 on each architecture has features of its own, under the name with an a.
  if (std::atoi(device.arch.c_str() + 3) >= 90) archs.push_back(device.arch + "a");
  return archs;
}

std::vector<std::string> targets_of_device(std::string_view family, std::string_view hardware) {
  std::vector<std::string> names;
  const GpuHardware gpu = gpu_of_fingerprint(hardware);
  if (family != "cuda" || gpu.arch.empty()) return names;
  const std::vector<std::string> archs = native_archs({.arch = gpu.arch});
  for (const std::string& arch : archs) names.push_back(str("cuda -arch=", arch));
  if (gpu.device_class.empty()) return names;
  for (const std::string& arch : archs)
    names.push_back(str("cuda -arch=", arch, " -device=", gpu.device_class));
  return names;
}

std::string fingerprint(const CudaDevice& d) {
  char sizes[64];
  std::snprintf(sizes, sizeof sizes, "%.1f GiB L2 %.1f MiB", static_cast<double>(d.memory_bytes) / (1 << 30),
                static_cast<double>(d.l2_bytes) / (1 << 20));
  return str(d.name, " ", d.arch, " | ", d.multiprocessors, " multiprocessors | ", sizes, " | driver CUDA ",
             cuda_version_text(d.driver_version));
}

}  // namespace tuner
