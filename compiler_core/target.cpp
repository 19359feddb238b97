#include "compiler_core/target.h"

#include <algorithm>
#include <charconv>

namespace tuner {
namespace {

// CPUs by their LLVM name: what a template asks when it is tuned for a machine other than this one. Caches
// are those of one core (L3: of one socket slice that a core sees); a server part's L3 is larger, which only
// shifts what is tried first.
struct CpuRow {
  std::string_view name;
  int vector_bits, vector_registers;
  int64_t l1d_kb, l2_kb, l3_kb;
};
constexpr CpuRow kCpus[] = {
    {"x86-64", 128, 16, 32, 256, 8192},
    {"x86-64-v2", 128, 16, 32, 256, 8192},
    {"x86-64-v3", 256, 16, 32, 512, 8192},
    {"x86-64-v4", 512, 32, 32, 1024, 16384},
    {"nehalem", 128, 16, 32, 256, 8192},
    {"sandybridge", 256, 16, 32, 256, 8192},
    {"ivybridge", 256, 16, 32, 256, 8192},
    {"haswell", 256, 16, 32, 256, 8192},
    {"broadwell", 256, 16, 32, 256, 8192},
    {"skylake", 256, 16, 32, 256, 8192},
    {"skylake-avx512", 512, 32, 32, 1024, 16384},
    {"cascadelake", 512, 32, 32, 1024, 16384},
    {"cooperlake", 512, 32, 32, 1024, 16384},
    {"icelake-client", 512, 32, 48, 512, 8192},
    {"cannonlake", 512, 32, 32, 256, 8192},
    {"rocketlake", 512, 32, 48, 512, 16384},
    {"icelake-server", 512, 32, 48, 1280, 24576},
    {"tigerlake", 512, 32, 48, 1280, 12288},
    {"sapphirerapids", 512, 32, 48, 2048, 30720},
    {"emeraldrapids", 512, 32, 48, 2048, 32768},
    {"graniterapids", 512, 32, 48, 2048, 32768},
    {"alderlake", 256, 16, 48, 1280, 30720},
    {"raptorlake", 256, 16, 48, 2048, 36864},
    {"znver1", 256, 16, 32, 512, 8192},
    {"znver2", 256, 16, 32, 512, 16384},
    {"znver3", 256, 16, 32, 512, 32768},
    {"znver4", 512, 32, 32, 1024, 32768},
    {"znver5", 512, 32, 48, 1024, 32768},
    {"skx", 512, 32, 32, 1024, 16384},
    {"knl", 512, 32, 32, 512, 0},
    {"knm", 512, 32, 32, 512, 0},
    {"corei7-avx", 256, 16, 32, 256, 8192},
    {"core-avx-i", 256, 16, 32, 256, 8192},
    {"core-avx2", 256, 16, 32, 256, 8192},
    {"gracemont", 256, 16, 32, 2048, 30720},
    {"meteorlake", 256, 16, 48, 2048, 24576},
    {"arrowlake", 256, 16, 48, 3072, 36864},
    {"arrowlake-s", 256, 16, 48, 3072, 36864},
    {"lunarlake", 256, 16, 48, 2560, 12288},
    {"pantherlake", 256, 16, 48, 3072, 18432},
    {"wildcatlake", 256, 16, 48, 2560, 12288},
    {"novalake", 512, 32, 48, 4096, 36864},
    {"sierraforest", 256, 16, 32, 4096, 98304},
    {"grandridge", 256, 16, 32, 4096, 0},
    {"clearwaterforest", 256, 16, 32, 4096, 98304},
    {"graniterapids-d", 512, 32, 48, 2048, 32768},
    {"diamondrapids", 512, 32, 48, 2048, 32768},
    {"btver2", 256, 16, 32, 2048, 0},
    {"bdver1", 256, 16, 16, 2048, 8192},
    {"bdver2", 256, 16, 16, 2048, 8192},
    {"bdver3", 256, 16, 16, 2048, 8192},
    {"bdver4", 256, 16, 32, 1024, 4096},
    {"generic", 128, 32, 32, 512, 2048},  // of its -mtriple: AArch64 has 32 registers
    {"cortex-a53", 128, 32, 32, 512, 0},
    {"cortex-a72", 128, 32, 32, 1024, 0},
    {"cortex-a76", 128, 32, 64, 512, 4096},
    {"cortex-a78", 128, 32, 64, 512, 4096},
    {"neoverse-n1", 128, 32, 64, 1024, 32768},
    {"neoverse-n2", 128, 32, 64, 1024, 32768},
    {"neoverse-v1", 256, 32, 64, 1024, 32768},
    {"neoverse-v2", 128, 32, 64, 2048, 65536},
    {"apple-m1", 128, 32, 128, 12288, 8192},
    {"apple-m2", 128, 32, 128, 16384, 8192},
};

// GPUs by architecture, from the tables "Technical Specifications per Compute Capability" of the CUDA C++
// Programming Guide. An architecture with a suffix (sm_90a) has the limits of the one without.
struct GpuRow {
  std::string_view arch;
  int64_t shared_kb_block, shared_kb_sm, reserved_bytes, threads, blocks;
};
constexpr GpuRow kGpus[] = {
    {"sm_70", 96, 96, 0, 2048, 32},       {"sm_75", 64, 64, 0, 1024, 16},
    {"sm_80", 163, 164, 1024, 2048, 32},  {"sm_86", 99, 100, 1024, 1536, 16},
    {"sm_87", 163, 164, 1024, 1536, 16},  {"sm_89", 99, 100, 1024, 1536, 24},
    {"sm_90", 227, 228, 1024, 2048, 32},  {"sm_100", 227, 228, 1024, 2048, 32},
    {"sm_103", 227, 228, 1024, 2048, 32}, {"sm_120", 99, 100, 1024, 1536, 24},
};

constexpr std::string_view kDefaultTriple = "x86_64-linux-gnu";
constexpr std::string_view kUsage =
    "expected \"cpu\", \"cpu -threads=N\", \"llvm -mcpu=NAME [-mtriple=T] [-mattr=+a,-b] [-threads=N]\" or "
    "\"cuda -arch=sm_NN\"";

bool is_word(std::string_view text, std::string_view also) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           also.find(c) != std::string_view::npos;
  });
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Features that change what a template asks, over what the CPU's row says.
void apply_features(Target& t) {
  for (const std::string& feature : t.mattr) {
    if (feature == "+avx2" || feature == "+avx") t.vector_bits = std::max(t.vector_bits, 256);
    if (feature == "+avx512f") t.vector_bits = 512, t.vector_registers_n = 32;
    if (feature == "-avx512f" && t.is_x86() && t.vector_bits > 256)
      t.vector_bits = 256, t.vector_registers_n = 16;
    if (feature == "-avx" && t.is_x86()) t.vector_bits = 128, t.vector_registers_n = 16;
  }
}

Status parse_mattr(std::string_view value, Target& t) {
  for (std::string_view feature : split_at(value, ',')) {
    if ((feature[0] != '+' && feature[0] != '-') || !is_word(feature.substr(1), "-._"))
      return invalid_argument("target: -mattr: expected +FEATURE or -FEATURE, found \"", feature, "\"");
    for (const std::string& other : t.mattr)
      if (std::string_view(other).substr(1) == feature.substr(1) && other != feature)
        return invalid_argument("target: -mattr: ", other, " and ", feature, " contradict each other");
    t.mattr.emplace_back(feature);
  }
  if (t.mattr.empty()) return invalid_argument("target: -mattr is empty; expected a list such as +avx2,+fma");
  std::sort(t.mattr.begin(), t.mattr.end(), [](const std::string& a, const std::string& b) {
    return std::string_view(a).substr(1) < std::string_view(b).substr(1);
  });
  t.mattr.erase(std::unique(t.mattr.begin(), t.mattr.end()), t.mattr.end());
  return Status::ok();
}

Status parse_option(std::string_view word, Target& t, std::vector<std::string_view>& seen) {
  const size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
  if (std::find(seen.begin(), seen.end(), key) != seen.end())
    return invalid_argument("target: ", key, " is given twice");
  seen.push_back(key);
  const bool known = t.is_cuda()
                         ? key == "-arch" || word == "-emulated"
                         : key == "-mcpu" || key == "-mtriple" || key == "-mattr" || key == "-threads";
  if (!known) return invalid_argument("target: unknown option \"", word, "\"; ", kUsage);
  if (key == "-emulated") {
    t.emulated = true;
    return Status::ok();
  }
  if (value.empty()) return invalid_argument("target: ", key, " needs a value: ", key, "=...");
  if (key == "-mattr") return parse_mattr(value, t);
  if (key == "-threads") {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), t.threads);
    if (error != std::errc() || end != value.data() + value.size() || t.threads < 1 || t.threads > 4096)
      return invalid_argument("target: -threads: expected a number in 1..4096, found \"", value, "\"");
    return Status::ok();
  }
  if (!is_word(value, "-._+")) return invalid_argument("target: ", key, ": \"", value, "\" is not a name");
  if (key == "-mcpu") t.mcpu = value;
  if (key == "-mtriple") t.mtriple = value == kDefaultTriple ? std::string_view() : value;
  if (key == "-arch") {
    if (!value.starts_with("sm_"))
      return invalid_argument("target: -arch: expected sm_NN, found \"", value, "\"");
    t.arch = value;
  }
  return Status::ok();
}

}  // namespace

std::string Target::name() const {
  if (is_cuda()) return str("cuda -arch=", arch, emulated ? " -emulated" : "");
  std::string text = str("llvm -mcpu=", mcpu);
  if (!mtriple.empty()) text += str(" -mtriple=", mtriple);
  if (!mattr.empty()) {
    text += " -mattr=";
    for (size_t i = 0; i < mattr.size(); ++i) text += (i == 0 ? "" : ",") + mattr[i];
  }
  return text + str(" -threads=", threads);
}

Result<Target> parse_target(std::string_view text) {
  const std::vector<std::string_view> words = split_at(text, ' ');
  if (words.empty()) return invalid_argument("target: empty; ", kUsage);
  Target t;
  if (words[0] == "cuda")
    t.kind = DeviceKind::kCuda;
  else if (words[0] == "cpu")
    return invalid_argument(
        "target: \"cpu\" means this host and is resolved where kernels are compiled; "
        "here expected \"llvm -mcpu=NAME\" or \"cuda -arch=sm_NN\"");
  else if (words[0] != "llvm")
    return invalid_argument("target: unknown kind \"", words[0], "\"; ", kUsage);
  std::vector<std::string_view> seen;
  for (size_t i = 1; i < words.size(); ++i) RETURN_IF_ERROR(parse_option(words[i], t, seen));
  if (t.is_cuda()) {
    if (t.arch.empty())
      return invalid_argument(
          "target: cuda needs -arch=sm_NN, e.g. cuda -arch=sm_90a, or -arch=native for "
          "the GPU of this host");
    t.vector_bits = 128;         // widest load of a thread
    t.vector_registers_n = 255;  // 32-bit registers of a thread
    t.registers_per_sm = 65536;
    const std::string_view base = std::string_view(t.arch).substr(0, t.arch.find_last_of("0123456789") + 1);
    // A feature set of one architecture (a) or of its family (f): from sm_90 and sm_100 on.
    const std::string_view suffix = std::string_view(t.arch).substr(base.size());
    const int64_t number = std::atoll(t.arch.c_str() + 3);
    const bool known_suffix =
        suffix.empty() || (suffix == "a" && number >= 90) || (suffix == "f" && number >= 100);
    for (const GpuRow& row : kGpus) {
      if (row.arch != base || !known_suffix) continue;
      t.shared_bytes_per_block = row.shared_kb_block << 10, t.shared_bytes_per_sm = row.shared_kb_sm << 10;
      t.shared_bytes_reserved = row.reserved_bytes;
      t.threads_per_sm = row.threads, t.blocks_per_sm = row.blocks;
      return t;
    }
    std::string known;
    for (const GpuRow& row : kGpus) known += str(known.empty() ? "" : ", ", row.arch);
    return invalid_argument("target: -arch: found \"", t.arch, "\", expected one of ", known,
                            " (sm_90a and the like too)");
  }
  if (t.mcpu.empty())
    return invalid_argument("target: llvm needs -mcpu=NAME, e.g. llvm -mcpu=haswell -threads=2");
  for (const CpuRow& row : kCpus) {
    if (row.name != t.mcpu) continue;
    t.vector_bits = row.vector_bits;
    t.vector_registers_n = row.name == "generic" && t.is_x86() ? 16 : row.vector_registers;
    t.l1d_bytes = row.l1d_kb << 10, t.l2_bytes = row.l2_kb << 10, t.l3_bytes = row.l3_kb << 10;
  }
  if (!t.is_x86() && t.vector_registers_n < 32 && t.mtriple.starts_with("aarch64")) t.vector_registers_n = 32;
  apply_features(t);
  return t;
}

}  // namespace tuner
