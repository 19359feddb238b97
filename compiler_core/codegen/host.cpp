// The CPU this runs on, as a target.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <utility>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/cpu_features.h"
#include "compiler_core/runtime/cuda_driver.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/TargetParser/Host.h"

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

}  // namespace

Target host_target(int threads) {
  Target t;
  t.threads = threads;
  const std::string guess = llvm::sys::getHostCPUName().str();
  const CpuFeatures& features = host_cpu_features();
#if defined(__x86_64__)
  CpuName name = name_of_x86(guess, features);
  t.mcpu = std::move(name.mcpu);
  t.mattr = std::move(name.mattr);
  const auto has = [&](std::string_view feature) { return features.contains(feature); };
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
  t.mcpu = guess;
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

int cpus_here() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

Result<Target> native_cuda_target() {
  const Result<std::vector<CudaDevice>> devices = cuda_devices();
  if (!devices.is_ok())
    return invalid_argument("target \"cuda -arch=native\": ", devices.message(),
                            ". Or name an architecture: \"cuda -arch=sm_80\"");
  return parse_target("cuda -arch=" + native_archs(devices->front()).back());
}

}  // namespace

namespace {

// "", "-threads=N" or "-threads=all", behind "cpu".
Result<int> threads_of_cpu(std::string_view text, std::string_view option) {
  if (option.empty()) return 1;
  if (option == "-threads=all") return cpus_here();
  // What is wrong with a number, the parser of full names says.
  const Result<Target> read = parse_target(str("llvm -mcpu=x86-64 ", option));
  if (!option.starts_with("-threads=") || option.find(' ') != std::string_view::npos || !read)
    return invalid_argument("target '", text, "': found '", option,
                            "' after cpu, expected nothing, -threads=N (1..4096) or -threads=all");
  return read->threads;
}

}  // namespace

Result<Target> resolve_target(std::string_view text) {
  if (text == "cuda -arch=native") return native_cuda_target();
  if (text == "cpu" || text.starts_with("cpu ")) {
    std::string_view option = text.substr(3);
    while (option.starts_with(' ')) option.remove_prefix(1);
    while (option.ends_with(' ')) option.remove_suffix(1);
    ASSIGN_OR_RETURN(const int threads, threads_of_cpu(text, option));
    // As everybody else reads the name: the caches decide about config spaces, which must be the same in the
    // daemon and on the worker.
    return parse_target(host_target(threads).name());
  }
  ASSIGN_OR_RETURN(Target target, parse_target(text));
  if (const Status known = check_cpu_words(target); !known)
    return known.with_context(str("target '", text, "': "));
  return target;
}

Status runs_here(const Target& target) {
  const int cpus = cpus_here();
  if (target.threads > cpus)
    return invalid_argument("it wants ", target.threads, " threads, this process may use ", cpus,
                            cpus == 1 ? " CPU" : " CPUs");
  return runs_on(target, host_target(), host_cpu_features(), "this CPU");
}

}  // namespace tuner
