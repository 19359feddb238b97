// libfakecuda.so: a CUDA driver and NVML for tests, on host memory. Exports the symbols the runner asks for,
// so that everything around a GPU (timing, poisoning, sticky errors, watchdog, recovery) is tested for real.
//
// Its "cubins" are text: a line FAKECUBIN, then a line a kernel. `FAKECUBIN arch=80 toolkit=13` is refused as
// real ones are, on a device of another architecture (CUDA_ERROR_NO_BINARY_FOR_GPU) or by an older driver
// (CUDA_ERROR_INVALID_IMAGE).
//
//   kernel NAME BEHAVIOUR n=COUNT [ns=TIME] [beyond_l2_ns=TIME] [after=LAUNCHES] [shared=BYTES]
//   kernel NAME matmul m=ROWS n=COLUMNS k=DEPTH [b=BATCH] [ta=1] [tb=1] [bias=1] [relu=1]
//          [type=0..3: float32, bfloat16, float16, uint8 by int8] [narrow=1: out of 16 bits] [ns=TIME]
//   kernel NAME conv b=BATCH c=CHANNELS h=HEIGHT w=WIDTH m=FILTERS k=SIZE [s=STRIDE] [p=PADDING] [g=GROUPS]
//   [bias=1]
//          [relu=1] [type=0..3] [narrow=1] [last=1: NHWC, else NCHW]; takes (data, weight, out), or (data, weight, bias, out)
//   kernel NAME probe_clocks n=CLOCKS    writes so many clocks for each round, its third parameter
//   kernel NAME check_sums               or check_samples, check_equal, check_hash, probe_...: those of
//                                        check_kernels.h
//
// `matmul` takes (a, b, out), or (a, b, bias, out), row-major, a or b stored transposed with ta or tb; every
// other kernel takes (x, out) and works on COUNT floats; `doubling` is right: out[i] = 2 * x[i]. What else a
// BEHAVIOUR can be stands in run(). A launch takes TIME on the device's clock, which is a counter: times are
// exact. With beyond_l2_ns it takes that instead when x or out has left the "L2" of 256 KiB.
//
// With maps=COUNT the first COUNT operands come as tensor maps, behind the pointers to the others: what a
// kernel reads of them is what lies inside of the map.
//
// The environment: TUNER_FAKE_CUDA_LOG names a file that gets a line for each context made;
// TUNER_FAKE_CUDA_SICK a file: while it exists no context can be made; TUNER_FAKE_CUDA_HANGS a file that is
// made when somebody begins to wait for a kernel that hangs. TUNER_FAKE_CUDA_ARCH is the architecture (90,
// for 9.0), TUNER_FAKE_CUDA_DRIVER the driver's version (13000), TUNER_FAKE_CUDA_DEVICES how many there are
// (1).
//   TUNER_FAKE_CUDA_NAME=TEXT          what the device calls itself ("Fake GPU")
//   TUNER_FAKE_CUDA_SLOW=SECONDS:FILE  cuInit takes so long while FILE is not there, and makes it: a cold
//                                      driver
//   TUNER_FAKE_CUDA_LAZY=1             modules load when they are launched, as with CUDA_MODULE_LOADING=LAZY
//                                      on a driver that does not heed it; a refusal comes then
//   TUNER_FAKE_CUDA_LAUNCH_NS=TIME     queuing a launch takes so long, and the next one waits for it; not in
//                                      a graph
//   TUNER_FAKE_CUDA_NO_GRAPHS=1        nothing can be recorded
//   TUNER_FAKE_CUDA_COPIES=FILE        gets a line for each copy of 4 KiB and more: "5120 to host"
//   TUNER_FAKE_CUDA_LOST=FILE          a file: while it exists the device has fallen off the bus, and every
//                                      call fails; a kernel `falls_off` makes it
//   TUNER_FAKE_CUDA_TURNS=FILE         gets the name of a kernel when another one was launched before it
//   TUNER_FAKE_CUDA_BUSY=FILE          while it exists somebody else has half of the device: all takes twice
//                                      as long. It holds a number of pulses and goes with the last of them
//   TUNER_FAKE_CUDA_MAPS=FILE          gets a line for each tensor map that is encoded, or what of it is
//                                      refused
//   TUNER_FAKE_CUDA_NO_MAPS=1          no tensor map is taken, as by a device that has none
//   TUNER_FAKE_CUDA_FAULTS=FILE        gets a line for each fault of a kernel that runs by its source
//   TUNER_FAKE_CUDA_MEMORY=BYTES       the device has so much memory (256 MiB)
//   TUNER_FAKE_CUDA_QUEUED=FILE        gets a line for each launch: "kernel", or "graph" with all of its kernels
//   TUNER_FAKE_CUDA_PROGRAMS=FOLDER    keeps what such kernels become, for other processes
// A real cubin is taken if its source stands behind it (source_module.h): its kernels run on the host, those
// that codegen_cuda printed in this process. Those
// of check_kernels.h, whose PTX no host runs, do what the ones of that name in a FAKECUBIN do.
// PTX of the pulse (device_pulse.h) is taken as well, unless TUNER_FAKE_CUDA_NO_PTX=1; a pulse takes 70 us.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compiler_core/host_cuda/device/software_tensor_map.h"
#include "compiler_core/runtime/cuda_driver_api.h"
#include "tests/measure_server/fake_cuda/fake_kernels.h"
#include "tests/measure_server/fake_cuda/fake_queue.h"
#include "tests/measure_server/fake_cuda/fake_settings.h"
#include "tests/measure_server/fake_cuda/source_module.h"
#include "tests/support/wait_until.h"

namespace {

using namespace tuner::cuda;
using namespace fake_cuda;

constexpr int kInvalidContext = 201, kUnknown = 999;
constexpr size_t kL2Size = 256 << 10;
size_t device_bytes() { return static_cast<size_t>(number("TUNER_FAKE_CUDA_MEMORY", 256 << 20)); }

struct LoadedModule {
  std::map<std::string, Kernel> kernels;
  std::shared_ptr<SourceModule> source;  // of those that run on the host
  int refusal = 0;                       // why this device or driver does not take it
};

double clock_ns = 0;  // of the device
int sticky = 0;       // every later call fails with this
int late = 0;         // `sticky` will be this after so many waits
int64_t late_waits = 0;
int64_t memory_version = 0;  // grows when bytes of the device's memory change
int left_behind = 0;         // `sticky` will be this when the next module is loaded
bool hanging = false;        // the next wait never ends
bool context_made = false;
struct Recorded {
  std::vector<std::function<int()>> launches;
  bool is_uploaded = false;  // the first launch of a graph brings it to the device, which takes a millisecond
};
bool is_busy = false;               // for somebody else
std::unique_ptr<Recorded> capture;  // launches that are recorded instead of run
size_t allocated = 0;
std::map<uint64_t, size_t> allocations;
std::list<std::pair<uint64_t, size_t>> l2;  // what was touched last comes first

void pass(double ns) { clock_ns += is_busy ? 2 * ns : ns; }

void* host(DevicePtr p) { return reinterpret_cast<void*>(p); }

// Brings a range into L2 and says whether it was there.
bool touch(uint64_t begin, size_t bytes) {
  bool was_there = false;
  for (auto it = l2.begin(); it != l2.end();) {
    const bool same = it->first == begin;
    was_there = was_there || same;
    it = same ? l2.erase(it) : std::next(it);
  }
  l2.emplace_front(begin, bytes);
  size_t held = 0;
  for (auto it = l2.begin(); it != l2.end();) {
    held += it->second;
    it = held > kL2Size ? l2.erase(it) : std::next(it);
  }
  return was_there;
}

int device_arch() { return number("TUNER_FAKE_CUDA_ARCH", 90); }
int driver_version() { return number("TUNER_FAKE_CUDA_DRIVER", 13000); }

// The answer of a device that is not on the bus any more.
bool is_lost() {
  const char* path = setting("TUNER_FAKE_CUDA_LOST");
  return path != nullptr && access(path, F_OK) == 0;
}
void note_copy(const char* where, size_t bytes) {
  if (bytes >= 4096) note("TUNER_FAKE_CUDA_COPIES", std::to_string(bytes) + " " + where);
}
void be_slow_when_cold() {
  const char* slow = setting("TUNER_FAKE_CUDA_SLOW");
  const char* colon = slow != nullptr ? std::strchr(slow, ':') : nullptr;
  if (colon == nullptr || access(colon + 1, F_OK) == 0) return;
  tuner::let_pass(std::chrono::milliseconds(static_cast<int64_t>(1000 * std::atof(slow))));
  make_file(colon + 1);
}

int wait() {
  if (capture != nullptr)
    return kCaptureUnsupported;  // as the driver does: nothing may wait while it records
  if (is_lost()) sticky = kUnknown;
  if (late != 0 && late_waits-- <= 0) sticky = late;
  if (const char* path = setting("TUNER_FAKE_CUDA_HANGS"); hanging && path != nullptr) make_file(path);
  while (hanging) pause();
  return sticky;
}

// A pulse: sees whether somebody else is there, and counts down how long.
int pulse() {
  const char* path = setting("TUNER_FAKE_CUDA_BUSY");
  std::FILE* busy = path != nullptr ? std::fopen(path, "r+") : nullptr;
  is_busy = busy != nullptr;
  pass(70'000);
  if (busy == nullptr) return kSuccess;
  int left = 0;
  (void)!std::fscanf(busy, "%d", &left);
  std::rewind(busy);
  (void)std::fprintf(busy, "%d\n", left - 1);
  (void)std::fclose(busy);
  if (left <= 1) (void)std::remove(path);
  return kSuccess;
}

// Writes to the start of every other allocation of at least as many bytes as an operand: a stray write.
void write_elsewhere(const float* x, int64_t n) {
  for (const auto& [begin, bytes] : allocations) {
    const auto* end = static_cast<const char*>(host(begin)) + bytes;
    const bool is_own = static_cast<const void*>(x) >= host(begin) && static_cast<const void*>(x) < end;
    if (!is_own && bytes == static_cast<size_t>(n) * sizeof(float)) *static_cast<float*>(host(begin)) += 1;
  }
}

// What a launch does to its operands. Returns what cuLaunchKernel answers.
int run(Kernel& kernel, float* x, float* out) {
  const std::string& b = kernel.behaviour;
  static std::string latest;
  if (std::exchange(latest, kernel.name) != kernel.name) note("TUNER_FAKE_CUDA_TURNS", kernel.name);
  const bool later = kernel.launches++ >= kernel.after;
  if (b == "too_large") return kLaunchOutOfResources;
  if (b == "hang" && later) hanging = true;
  if (b == "illegal_address" && later) sticky = 700;
  if (b == "launch_failed") sticky = 719;
  if (b == "misaligned") sticky = 716;
  if (b == "late_fault" && late == 0) late = 700, late_waits = kernel.waits;
  if (b == "leaves_fault") left_behind = 700;
  if (b == "falls_off" && later)
    if (const char* path = setting("TUNER_FAKE_CUDA_LOST"); path != nullptr) make_file(path);
  if (b == "memory_error") sticky = kEccUncorrectable;
  if (sticky != 0 || hanging) return kSuccess;  // it shows when somebody waits
  if (b == "accumulates") {
    for (int64_t i = 0; i < kernel.n; ++i) out[i] += x[i];
    return pass(static_cast<double>(kernel.ns)), kSuccess;
  }
  // Cheats: what is there is not computed again; answers are kept; one address only is served.
  if (b == "returns_if_there" && out[0] == 2 * x[0]) return pass(static_cast<double>(kernel.ns)), kSuccess;
  static std::map<std::string, std::vector<float>> kept;
  static const float* first_address = nullptr;
  if (b == "knows_addresses" && first_address == nullptr) first_address = x;
  const bool is_known = b == "keeps_answers" && kept.contains(kernel.name);
  const std::vector<float> seen = is_known ? kept[kernel.name] : std::vector<float>(x, x + kernel.n);
  if (b == "keeps_answers") kept[kernel.name] = seen;
  const bool moved_away = b == "knows_addresses" && x != first_address;
  for (int64_t i = 0; i < kernel.n; ++i) out[i] = moved_away ? 0 : 2 * seen[static_cast<size_t>(i)];
  if (b == "slow_on_news") {  // right, but what it has seen before costs it nothing
    static std::vector<float> latest_x;
    pass(latest_x == seen ? 0 : 40 * static_cast<double>(kernel.ns));
    latest_x = seen;
  }
  if (b == "copy") std::memcpy(out, x, kernel.n * sizeof(float));
  if (b == "wrong" && later) out[kernel.at] = -1;
  if (b == "unwritten") std::memset(&out[kernel.n - 1], 0xFF, sizeof(float));
  if (b == "beside") out[kernel.n] = 1;
  if (b == "before") out[-1] = 1;
  if (b == "writes_input") x[3] += 1;
  if (b == "writes_input_unseen") {  // its output is right whatever it did to its input
    static const std::vector<float> first(x, x + kernel.n);
    for (int64_t i = 0; i < kernel.n; ++i) out[i] = 2 * first[static_cast<size_t>(i)];
    x[3] += 1;
  }
  if (b == "writes_elsewhere") write_elsewhere(x, kernel.n);
  const size_t bytes = kernel.n * sizeof(float);
  const bool warm_x = touch(reinterpret_cast<uint64_t>(x), bytes);
  const bool warm_out = touch(reinterpret_cast<uint64_t>(out), bytes);
  pass(static_cast<double>(kernel.beyond_l2_ns > 0 && !(warm_x && warm_out) ? kernel.beyond_l2_ns
                                                                            : kernel.ns));
  return kSuccess;
}

// Null when the text is no module of ours.
std::unique_ptr<LoadedModule> parse(const char* text) {
  auto ptx = std::make_unique<LoadedModule>();
  ptx->kernels["tuner_pulse"] = {.name = "tuner_pulse", .behaviour = "pulse"};
  const bool takes_ptx = setting("TUNER_FAKE_CUDA_NO_PTX") == nullptr;
  if (takes_ptx && std::strstr(text, ".entry tuner_pulse(") != nullptr) return ptx;
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || !line.starts_with("FAKECUBIN")) return nullptr;
  auto module = std::make_unique<LoadedModule>();
  int arch = device_arch(), toolkit = 0;
  (void)std::sscanf(line.c_str(), "FAKECUBIN arch=%d toolkit=%d", &arch, &toolkit);
  if (arch / 10 != device_arch() / 10 || arch > device_arch()) module->refusal = kNoBinaryForGpu;
  if (toolkit > driver_version() / 1000) module->refusal = kInvalidImage;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string word, name;
    Kernel kernel;
    words >> word >> name >> kernel.behaviour;
    if (word != "kernel") return nullptr;
    while (words >> word) {
      const size_t equals = word.find('=');
      const int64_t value = std::atoll(word.c_str() + equals + 1);
      const std::string key = word.substr(0, equals);
      static const std::map<std::string, int64_t Kernel::*> kMembers = {
          {"b", &Kernel::b},         {"m", &Kernel::m},
          {"n", &Kernel::n},         {"k", &Kernel::k},
          {"ta", &Kernel::ta},       {"tb", &Kernel::tb},
          {"bias", &Kernel::bias},   {"relu", &Kernel::relu},
          {"ns", &Kernel::ns},       {"beyond_l2_ns", &Kernel::beyond_l2_ns},
          {"after", &Kernel::after}, {"shared", &Kernel::shared},
          {"waits", &Kernel::waits}, {"at", &Kernel::at},
          {"c", &Kernel::c},         {"h", &Kernel::h},
          {"w", &Kernel::w},         {"s", &Kernel::s},
          {"p", &Kernel::p},         {"g", &Kernel::g},
          {"type", &Kernel::type},   {"narrow", &Kernel::narrow},
          {"last", &Kernel::last},   {"maps", &Kernel::maps}};
      if (const auto it = kMembers.find(key); it != kMembers.end()) kernel.*it->second = value;
    }
    kernel.name = name;
    module->kernels[name] = kernel;
  }
  return module;
}

// The memory that a tensor map begins in, up to its end, with NaN where no element of the map is.
std::vector<unsigned char> gathered(const software_map::Map& map) {
  const auto after = allocations.upper_bound(map.address);
  if (after == allocations.begin()) return {};
  const auto& [begin, bytes] = *std::prev(after);
  std::vector<unsigned char> array(begin + bytes - std::min<uint64_t>(map.address, begin + bytes), 0xff);
  std::vector<uint64_t> at(map.rank, 0);
  for (int d = 0; d < map.rank;) {
    size_t place = 0;
    for (int i = 0; i < map.rank; ++i) place += at[i] * (i == 0 ? map.element_bytes : map.strides[i - 1]);
    if (place + map.element_bytes > array.size()) return {};  // beyond what was allocated
    std::memcpy(array.data() + place, static_cast<const char*>(host(map.address)) + place, map.element_bytes);
    for (d = 0; d < map.rank && at[d]++ == map.extents[d]; ++d) at[d] = 0;
  }
  return array;
}

// What an encoded map became.
int encoded(int code, const char* why) {
  if (setting("TUNER_FAKE_CUDA_NO_MAPS") != nullptr) return kNotSupported;
  note("TUNER_FAKE_CUDA_MAPS", code == kSuccess ? "encoded" : std::string("refused: ") + why);
  return code != kSuccess ? code : sticky;
}

// A copy or fill takes a nanosecond a kilobyte and goes through L2.
int moved(uint64_t to, size_t bytes) {
  pass(1 + static_cast<double>(bytes) / 1000);
  touch(to, bytes);
  ++memory_version;
  return sticky;
}

// A cubin with its source; null: it is none.
std::unique_ptr<LoadedModule> with_source(const char* image) {
  constexpr char kElf[] =
      "\x7f"
      "ELF";
  if (std::strncmp(image, kElf, sizeof kElf - 1) != 0) return nullptr;
  static void* const library = dlopen(TUNER_FAKE_CUDA_SOURCES, RTLD_NOW | RTLD_LOCAL);
  static const auto make =
      library == nullptr
          ? nullptr
          : reinterpret_cast<SourceModule* (*)(const char*)>(dlsym(library, "fake_source_module"));
  SourceModule* const source = make == nullptr ? nullptr : make(image);
  if (source == nullptr) return nullptr;
  auto module = std::make_unique<LoadedModule>();
  module->source.reset(source);
  if (source->arch() / 10 != device_arch() / 10 || source->arch() > device_arch())
    module->refusal = kNoBinaryForGpu;
  return module;
}

// A kernel of a source: the more waves of blocks, the longer. Where no byte has changed since, it is not run
// again: it would write what is there.
int run_source(Kernel& kernel, const SourceRun& launch) {
  if (sticky != 0) return kSuccess;
  static std::string latest;
  if (std::exchange(latest, kernel.name) != kernel.name) note("TUNER_FAKE_CUDA_TURNS", kernel.name);
  std::string key;
  for (const std::string& parameter : launch.parameters) key += parameter;
  if (kernel.ran != key || kernel.ran_at != memory_version) {
    const auto end_of = [](uint64_t address) -> uint64_t {
      const auto after = allocations.upper_bound(address);
      if (after == allocations.begin()) return 0;
      const auto& [begin, bytes] = *std::prev(after);
      return address < begin + bytes ? begin + bytes : 0;
    };
    bool changed = false;
    sticky = kernel.source->run(launch, end_of, changed);
    if (changed) ++memory_version;
    kernel.ran = key;
    kernel.ran_at = memory_version;
  }
  constexpr int64_t kMultiprocessors = 10, kThreads = 2048;
  const int64_t threads = int64_t{launch.block[0]} * launch.block[1] * launch.block[2],
                blocks = int64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const int64_t at_once = kMultiprocessors * std::min<int64_t>(32, kThreads / ((threads + 31) / 32 * 32));
  const int64_t rounds = (blocks + at_once - 1) / at_once;
  pass(2000.0 + 500.0 * static_cast<double>(rounds));
  return kSuccess;
}

// Runs work now, or keeps it for the graph that is being recorded.
int queue(std::function<int()> work) {
  if (sticky != 0) return sticky;
  if (capture != nullptr) {
    capture->launches.push_back(std::move(work));
    return kSuccess;
  }
  const double begin_ns = clock_ns;
  const int code = work();
  clock_ns = std::max(clock_ns, begin_ns + number("TUNER_FAKE_CUDA_LAUNCH_NS", 0));
  return code;
}

}  // namespace

extern "C" {

// --- devices ---

int cuInit(unsigned) {
  be_slow_when_cold();
  return is_lost() ? kNoDevice : kSuccess;
}
int cuDriverGetVersion(int* version) {
  *version = driver_version();
  return kSuccess;
}
int cuGetErrorName(int error, const char** text) {
  static const std::map<int, const char*> names = {{1, "CUDA_ERROR_INVALID_VALUE"},
                                                   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {200, "CUDA_ERROR_INVALID_IMAGE"},
                                                   {100, "CUDA_ERROR_NO_DEVICE"},
                                                   {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                                                   {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
                                                   {500, "CUDA_ERROR_NOT_FOUND"},
                                                   {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                   {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
                                                   {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
                                                   {719, "CUDA_ERROR_LAUNCH_FAILED"},
                                                   {999, "CUDA_ERROR_UNKNOWN"}};
  const auto it = names.find(error);
  if (it == names.end()) return kInvalidValue;
  *text = it->second;
  return kSuccess;
}
int cuGetErrorString(int, const char** text) {
  *text = "by the fake driver";
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = number("TUNER_FAKE_CUDA_DEVICES", 1);
  return kSuccess;
}
int cuDeviceGet(Device* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < number("TUNER_FAKE_CUDA_DEVICES", 1) ? kSuccess : 101;
}
int cuDeviceGetName(char* name, int capacity, Device) {
  const char* given = std::getenv("TUNER_FAKE_CUDA_NAME");
  std::snprintf(name, static_cast<size_t>(capacity), "%s", given != nullptr ? given : "Fake GPU");
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, Device) {
  *bytes = device_bytes();
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, Device) {
  const std::map<int, int> values = {{kClockKhz, 1'000'000},
                                     {kMultiprocessors, 10},
                                     {kL2Bytes, static_cast<int>(kL2Size)},
                                     {kComputeMajor, device_arch() / 10},
                                     {kComputeMinor, device_arch() % 10}};
  const auto it = values.find(attribute);
  if (it == values.end()) return kInvalidValue;
  *value = it->second;
  return kSuccess;
}
int cuDeviceGetUuid(Uuid* uuid, Device device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(i == 0 ? device : i);
  return kSuccess;
}

// --- context, stream, events ---

int cuDevicePrimaryCtxRetain(Context* context, Device device) {
  if (const char* sick = std::getenv("TUNER_FAKE_CUDA_SICK"); sick != nullptr && access(sick, F_OK) == 0)
    return kUnknown;
  note("TUNER_FAKE_CUDA_LOG",
       "context on device " + std::to_string(device) + " in process " + std::to_string(getpid()));
  context_made = true;
  *context = reinterpret_cast<Context>(&context_made);
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(Device) { return kSuccess; }
int cuCtxGetCurrent(Context* context) {
  *context = context_made ? reinterpret_cast<Context>(&context_made) : nullptr;
  return kSuccess;
}
int cuCtxSetCurrent(Context) { return context_made ? kSuccess : kInvalidContext; }
int cuCtxSynchronize() { return wait(); }
int cuStreamCreate(Stream* stream, unsigned) {
  *stream = reinterpret_cast<Stream>(new char);
  return sticky;
}
int cuStreamDestroy_v2(Stream stream) {
  delete reinterpret_cast<char*>(stream);
  return sticky;
}
int cuStreamSynchronize(Stream) { return wait(); }
int cuEventCreate(Event* event, unsigned) {
  *event = reinterpret_cast<Event>(new double(0));
  return sticky;
}
int cuEventDestroy_v2(Event event) {
  delete reinterpret_cast<double*>(event);
  return sticky;
}
int cuEventRecord(Event event, Stream) {
  *reinterpret_cast<double*>(event) = clock_ns;
  return sticky;
}
int cuEventSynchronize(Event) { return wait(); }
int cuEventElapsedTime(float* milliseconds, Event begin, Event end) {
  *milliseconds =
      static_cast<float>(1e-6 * (*reinterpret_cast<double*>(end) - *reinterpret_cast<double*>(begin)));
  return sticky;
}

// --- memory ---

int cuMemAlloc_v2(DevicePtr* pointer, size_t bytes) {
  if (!context_made) return kInvalidContext;
  if (sticky != 0) return sticky;
  if (bytes == 0) return kInvalidValue;
  if (bytes > device_bytes() || allocated > device_bytes() - bytes) return kOutOfMemory;
  *pointer = reinterpret_cast<DevicePtr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  allocations[*pointer] = bytes;
  allocated += bytes;
  return kSuccess;
}
int cuMemFree_v2(DevicePtr pointer) {
  const auto it = allocations.find(pointer);
  if (it == allocations.end()) return kInvalidValue;
  allocated -= it->second;
  allocations.erase(it);
  std::free(host(pointer));
  return sticky;
}
int cuMemcpyHtoD_v2(DevicePtr to, const void* from, size_t bytes) {
  if (wait() != 0) return sticky;
  note_copy("to device", bytes);
  std::memcpy(host(to), from, bytes);
  return moved(to, bytes);
}
int cuMemcpyDtoH_v2(void* to, DevicePtr from, size_t bytes) {
  if (wait() != 0) return sticky;
  note_copy("to host", bytes);
  std::memcpy(to, host(from), bytes);
  return sticky;
}
int cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, size_t bytes, Stream) {
  note_copy("to device", bytes);
  return queue([=] {
    std::memcpy(host(to), from, bytes);
    return moved(to, bytes);
  });
}
int cuMemcpyDtoHAsync_v2(void* to, DevicePtr from, size_t bytes, Stream) {
  note_copy("to host", bytes);
  return queue([=] {
    if (sticky == 0) std::memcpy(to, host(from), bytes);
    return static_cast<int>(kSuccess);
  });
}
int cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, size_t bytes, Stream) {
  return queue([=] {
    std::memcpy(host(to), host(from), bytes);
    return moved(to, bytes);
  });
}
int cuMemsetD8Async(DevicePtr to, unsigned char value, size_t count, Stream) {
  return queue([=] {
    std::memset(host(to), value, count);
    return moved(to, count);
  });
}

// --- modules ---

int cuModuleLoadData(Module* module, const void* image) {
  const auto* text = static_cast<const char*>(image);
  if (std::strncmp(text, "FAKEABORT", 9) == 0) std::abort();
  if (left_behind != 0) sticky = left_behind;
  if (sticky != 0) return sticky;
  std::unique_ptr<LoadedModule> parsed = with_source(text);
  if (parsed == nullptr) parsed = parse(text);
  if (parsed == nullptr) return kInvalidImage;
  if (parsed->refusal != 0 && setting("TUNER_FAKE_CUDA_LAZY") == nullptr) return parsed->refusal;
  for (auto& [name, kernel] : parsed->kernels) kernel.refusal = parsed->refusal;
  *module = reinterpret_cast<Module>(parsed.release());
  return sticky;
}
int cuModuleUnload(Module module) {
  delete reinterpret_cast<LoadedModule*>(module);
  return sticky;
}
int cuModuleGetFunction(Function* function, Module module, const char* name) {
  auto& kernels = reinterpret_cast<LoadedModule*>(module)->kernels;
  const std::shared_ptr<SourceModule>& source = reinterpret_cast<LoadedModule*>(module)->source;
  const std::string check = check_behaviour(name);
  if (source != nullptr && source->parameters(name) != nullptr && !kernels.contains(name))
    kernels[name] = {.name = name,
                     .behaviour = check.empty() ? "source" : check,
                     .source = check.empty() ? source : nullptr,
                     .refusal = reinterpret_cast<LoadedModule*>(module)->refusal};
  const auto it = kernels.find(name);
  if (it == kernels.end()) return kNotFound;
  *function = reinterpret_cast<Function>(&it->second);
  return sticky;
}
int cuFuncSetAttribute(Function function, int attribute, int value) {
  if (attribute != kMaxDynamicSharedBytes || value > (227 << 10)) return kInvalidValue;
  reinterpret_cast<Kernel*>(function)->allowed_shared = value;
  return sticky;
}
int cuTensorMapEncodeTiled(TensorMapBytes* map, int type, uint32_t rank, void* address,
                           const uint64_t* extents, const uint64_t* strides, const uint32_t* box,
                           const uint32_t* steps, int interleave, int swizzle, int l2, int fill) {
  const char* why = "";
  const int code = software_map::encode_tiled(map, type, rank, address, extents, strides, box, steps,
                                              interleave, swizzle, l2, fill, &why);
  return encoded(code, why);
}
int cuTensorMapEncodeIm2col(TensorMapBytes* map, int type, uint32_t rank, void* address,
                            const uint64_t* extents, const uint64_t* strides, const int* lower,
                            const int* upper, uint32_t channels, uint32_t pixels, const uint32_t* steps,
                            int interleave, int swizzle, int l2, int fill) {
  const char* why = "";
  const int code = software_map::encode_im2col(map, type, rank, address, extents, strides, lower, upper,
                                               channels, pixels, steps, interleave, swizzle, l2, fill, &why);
  return encoded(code, why);
}
int cuStreamBeginCapture_v2(Stream, int) {
  if (setting("TUNER_FAKE_CUDA_NO_GRAPHS") != nullptr) return kNotSupported;
  capture = std::make_unique<Recorded>();
  return sticky;
}
int cuStreamEndCapture(Stream, Graph* graph) {
  *graph = reinterpret_cast<Graph>(capture.release());
  return sticky;
}
int cuGraphInstantiateWithFlags(GraphExec* made, Graph graph, unsigned long long) {
  *made = reinterpret_cast<GraphExec>(new Recorded(*reinterpret_cast<Recorded*>(graph)));
  return sticky;
}
int cuGraphDestroy(Graph graph) {
  delete reinterpret_cast<Recorded*>(graph);
  return sticky;
}
int cuGraphExecDestroy(GraphExec graph) {
  delete reinterpret_cast<Recorded*>(graph);
  return sticky;
}
int cuGraphLaunch(GraphExec graph, Stream) {
  note("TUNER_FAKE_CUDA_QUEUED", "graph");
  auto& recorded = *reinterpret_cast<Recorded*>(graph);
  if (!std::exchange(recorded.is_uploaded, true)) clock_ns += 1e6;
  for (const auto& launch : recorded.launches) {
    if (sticky != 0) return sticky;
    if (const int code = launch(); code != kSuccess) return code;
  }
  return sticky;
}
int cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream, void** params, void**) {
  if (sticky != 0) return sticky;
  auto& kernel = *reinterpret_cast<Kernel*>(function);
  if (kernel.refusal != 0) return kernel.refusal;
  if (shared_bytes > kernel.allowed_shared || shared_bytes < kernel.shared) return kInvalidValue;
  if (capture == nullptr) note("TUNER_FAKE_CUDA_QUEUED", "kernel");
  if (kernel.behaviour.starts_with("check_") || kernel.behaviour.starts_with("probe_"))
    return clock_ns += 1000, run_check(kernel, params);
  if (kernel.behaviour == "pulse") return pulse();
  if (kernel.source != nullptr) {
    SourceRun launch{.symbol = kernel.name,
                     .grid = {grid_x, grid_y, grid_z},
                     .block = {block_x, block_y, block_z},
                     .shared_bytes = shared_bytes,
                     .parameters = {}};
    size_t i = 0;
    for (const int bytes : *kernel.source->parameters(kernel.name))
      launch.parameters.emplace_back(static_cast<const char*>(params[i++]), static_cast<size_t>(bytes));
    return queue([&kernel, launch] { return run_source(kernel, launch); });
  }
  // Out of the parameters now: who records a launch may change them.
  const bool is_product = kernel.behaviour == "matmul" || kernel.behaviour == "conv";
  const int n = !is_product ? 2 : kernel.bias != 0 ? 4 : 3;
  const auto maps = static_cast<int>(kernel.maps);
  std::vector<float*> operands;
  std::vector<std::vector<unsigned char>> arrays;
  for (int i = 0; i < maps; ++i) {
    const auto map = parameter<software_map::Map>(params, n - maps + i);
    if (map.magic != software_map::kMagic) return kInvalidValue;
    arrays.push_back(gathered(map));
    if (arrays.back().empty()) return sticky = 700;
    operands.push_back(reinterpret_cast<float*>(arrays.back().data()));
  }
  for (int i = maps; i < n; ++i)
    operands.push_back(static_cast<float*>(host(parameter<DevicePtr>(params, i - maps))));
  const auto work = [&kernel, operands, is_product, n, held = std::move(arrays)] {
    if (!is_product) return run(kernel, operands[0], operands[1]);
    (kernel.behaviour == "conv" ? convolve : multiply)(
        kernel, operands[0], operands[1], kernel.bias != 0 ? operands[2] : nullptr, operands[n - 1]);
    clock_ns += static_cast<double>(kernel.ns);
    return static_cast<int>(kSuccess);
  };
  return queue(work);
}

int fake_cuda_queue(const std::function<int()>& work) { return queue(work); }
bool fake_cuda_records() { return capture != nullptr; }
void fake_cuda_advance(double ns) { clock_ns += ns; }
bool fake_cuda_owns(const void* begin, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(begin);
  const auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return false;
  const auto& [start, held] = *std::prev(after);
  return address + bytes <= start + held;
}

}  // extern "C"
