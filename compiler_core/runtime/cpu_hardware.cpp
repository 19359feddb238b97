#include "compiler_core/runtime/cpu_hardware.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/process_emulator.h"
#include "compiler_core/base/status.h"
#include "compiler_core/runtime/host_cpu.h"

namespace tuner {

namespace {

// "model name : Intel..." of the first CPU.
std::map<std::string, std::string> first_cpu() {
  std::map<std::string, std::string> found;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line) && (!line.empty() || found.empty());) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t key_end = line.find_last_not_of(" \t", colon - 1);
    if (key_end == std::string::npos) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    found[line.substr(0, key_end + 1)] = value == std::string::npos ? "" : line.substr(value);
  }
  return found;
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string caches() {
  std::string out;
  for (int i = 0; i < 8; ++i) {
    const std::string folder = str("/sys/devices/system/cpu/cpu0/cache/index", i, "/");
    const std::string level = first_line(folder + "level"), type = first_line(folder + "type"),
                      size = first_line(folder + "size");
    if (size.empty() || type == "Instruction") continue;
    out += str(out.empty() ? "" : " ", "L", level, level == "1" ? "d " : " ", size);
  }
  return out;
}

std::string instruction_sets(const std::map<std::string, std::string>& cpu) {
  const auto flags = cpu.find(cpu.contains("flags") ? "flags" : "Features");
  if (flags == cpu.end()) return "";
  std::istringstream words(flags->second);
  std::set<std::string> have;
  for (std::string word; words >> word;) have.insert(word);
  std::string out;
  for (const char* isa :
       {"sse4_2",      "avx",      "avx2",        "fma",         "f16c",     "avx512f",  "avx512vl",
        "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8",
        "asimd",       "asimdhp",  "asimddp",     "bf16",        "i8mm",     "sve",      "sve2"})
    if (have.contains(isa)) out += str(out.empty() ? "" : " ", isa);
  return out;
}

}  // namespace

std::string hardware_fingerprint() {
  const auto cpu = first_cpu();
  const auto value = [&](const char* key) {
    const auto it = cpu.find(key);
    return it == cpu.end() ? std::string() : it->second;
  };
  std::string out = value("model name");
  if (out.empty()) out = str("CPU implementer ", value("CPU implementer"), " part ", value("CPU part"));
  if (!value("cpu family").empty())
    out += str(" ", value("cpu family"), ".", value("model"), ".", value("stepping"));
  if (!value("microcode").empty()) out += str(" microcode ", value("microcode"));
  // /proc and /sys tell of the host's CPU, not of the one that an emulator plays.
  const bool emulated = is_emulated_process();
  if (emulated) out = str(host_cpu_name().mcpu, " emulated on ", out);
  out += str(" | ", usable_cpus().size(), " cpus");
  for (const std::string& part : {caches(), emulated ? std::string() : instruction_sets(cpu)})
    if (!part.empty()) out += " | " + part;
  return out;
}

CpuCaches cpu_caches() {
  static const CpuCaches found = [] {
    CpuCaches c;
    for (int i = 0; i < 8; ++i) {
      const std::string folder = str("/sys/devices/system/cpu/cpu0/cache/index", i, "/");
      const std::string level = first_line(folder + "level"), size = first_line(folder + "size");
      if (size.empty() || first_line(folder + "type") == "Instruction") continue;
      const int64_t unit = size.back() == 'M' ? 1 << 20 : size.back() == 'K' ? 1 << 10 : 1;
      const int64_t bytes = std::atoll(size.c_str()) * unit;
      (level == "1" ? c.l1d_bytes : level == "2" ? c.l2_bytes : c.l3_bytes) = bytes;
    }
    return c;
  }();
  return found;
}

}  // namespace tuner
