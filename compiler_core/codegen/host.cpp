// The CPU this runs on, as a target.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "compiler_core/base/process_emulator.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/cpu_features.h"
#include "compiler_core/runtime/cpu_hardware.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/TargetParser/Host.h"

namespace tuner {
namespace {

int64_t cache_bytes(int64_t found, int name, int64_t fallback) {
  if (found > 0) return found;
  const int64_t bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

}  // namespace

Target host_target(int threads) {
  Target t;
  t.threads = threads;
  t.emulated = is_emulated_process();
  const std::string guess = llvm::sys::getHostCPUName().str();
#if defined(__x86_64__)
  const CpuFeatures& features = host_cpu_features();
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
  CpuName name = host_cpu_name();
  if (name.mcpu == "generic") name.mcpu = guess;  // LLVM may know more of them
  t.mcpu = std::move(name.mcpu);
  t.mattr = std::move(name.mattr);
  t.mtriple = "aarch64-linux-gnu";
  t.vector_bits = 128;
  t.vector_registers_n = 32;
#endif
  const CpuCaches caches = cpu_caches();
  t.l1d_bytes = cache_bytes(caches.l1d_bytes, _SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  t.l2_bytes = cache_bytes(caches.l2_bytes, _SC_LEVEL2_CACHE_SIZE, 1 << 20);
  t.l3_bytes = cache_bytes(caches.l3_bytes, _SC_LEVEL3_CACHE_SIZE, 8 << 20);
  return t;
}

}  // namespace tuner
