// The CPU this runs on, as a target.
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/runtime/cuda_driver.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

namespace tuner {
namespace {

// "48K", "2048K", "32M" of sysfs in bytes; 0 when unreadable.
int64_t sysfs_bytes(const std::string& path) {
  std::ifstream in(path);
  int64_t value = 0;
  char unit = 0;
  if (!(in >> value)) return 0;
  in >> unit;
  return value << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
}

// Data or unified cache of a level as sysfs describes it for the first CPU; `fallback` when it does not.
int64_t cache_bytes(int level, int64_t fallback) {
  const std::string base = "/sys/devices/system/cpu/cpu0/cache/index";
  for (int i = 0; i < 8; ++i) {
    const std::string folder = base + std::to_string(i);
    std::ifstream level_in(folder + "/level"), type_in(folder + "/type");
    int found = 0;
    std::string type;
    if (!(level_in >> found) || !(type_in >> type)) break;
    if (found != level || type == "Instruction") continue;
    const int64_t bytes = sysfs_bytes(folder + "/size");
    if (bytes > 0) return bytes;
  }
  const int name = level == 1   ? _SC_LEVEL1_DCACHE_SIZE
                   : level == 2 ? _SC_LEVEL2_CACHE_SIZE
                                : _SC_LEVEL3_CACHE_SIZE;
  const int64_t bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

// Vector extensions whose presence changes what we generate. A virtual machine may hide some of the named
// CPU's (then "-x" is written) or show more than the name has ("+x").
constexpr const char* kDecisive[] = {"avx",      "avx2",       "fma",        "f16c",
                                     "avx512f",  "avx512bw",   "avx512dq",   "avx512vl",
                                     "avx512cd", "avx512vnni", "avx512bf16", "avxvnni"};

}  // namespace

Target host_target(int threads) {
  Target t;
  t.mcpu = llvm::sys::getHostCPUName().str();
  t.threads = threads;
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  const auto has = [&](llvm::StringRef name) { return features.lookup(name); };
#if defined(__x86_64__)
  llvm::SmallVector<llvm::StringRef, 64> of_name;
  llvm::X86::getFeaturesForCPU(t.mcpu, of_name);
  for (const char* feature : kDecisive) {
    const bool named = std::find_if(of_name.begin(), of_name.end(), [&](llvm::StringRef f) {
                         return f.trim('+') == feature;
                       }) != of_name.end();
    if (named != has(feature)) t.mattr.push_back(str(has(feature) ? "+" : "-", feature));
  }
  t.vector_bits = has("avx512f") ? 512 : has("avx") ? 256 : 128;
  t.vector_registers_n = has("avx512f") ? 32 : 16;
  // The name alone must tell everybody the vector width: a CPU that the table of targets does not know says
  // it by a feature.
  if (const Result<Target> named = parse_target(t.name());
      named.is_ok() && named->vector_bits < t.vector_bits)
    t.mattr.push_back(t.vector_bits == 512 ? "+avx512f" : "+avx");
  std::sort(t.mattr.begin(), t.mattr.end(),
            [](const std::string& a, const std::string& b) { return a.substr(1) < b.substr(1); });
#elif defined(__aarch64__)
  t.mtriple = "aarch64-linux-gnu";
  t.vector_bits = 128;
  t.vector_registers_n = 32;
#endif
  t.l1d_bytes = cache_bytes(1, 32 << 10);
  t.l2_bytes = cache_bytes(2, 1 << 20);
  t.l3_bytes = cache_bytes(3, 8 << 20);
  return t;
}

namespace {

Result<Target> native_cuda_target() {
  const Result<std::vector<CudaDevice>> devices = cuda_devices();
  if (!devices.is_ok())
    return invalid_argument("target \"cuda -arch=native\": ", devices.message(),
                            ". Or name an architecture: \"cuda -arch=sm_80\"");
  return parse_target("cuda -arch=" + native_archs(devices->front()).back());
}

}  // namespace

Result<Target> resolve_target(std::string_view text) {
  if (text == "cuda -arch=native") return native_cuda_target();
  const std::string_view threads_option = "-threads=";
  if (text != "cpu" && !text.starts_with("cpu ")) return parse_target(text);
  std::string_view rest = text.substr(3);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  if (rest.empty()) return host_target(1);
  int64_t threads = 0;
  const bool is_option = rest.starts_with(threads_option);
  const std::string_view digits = is_option ? rest.substr(threads_option.size()) : "";
  const bool is_number = !digits.empty() && digits.size() <= 4 &&
                         digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (is_number) threads = std::stoll(std::string(digits));
  if (threads < 1)
    return invalid_argument("target '", text, "': found '", rest,
                            "' after cpu, expected nothing or -threads=N with N >= 1");
  return host_target(static_cast<int>(threads));
}

}  // namespace tuner
