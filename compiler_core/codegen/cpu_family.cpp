// Targets of CPUs: "llvm -mcpu=haswell -threads=2".
#include <algorithm>

#include "compiler_core/target.h"

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
    // Arm's reference manuals leave sizes of caches to who builds the chip: these are common ones.
    {"cortex-a53", 128, 32, 32, 512, 0},
    {"cortex-a55", 128, 32, 32, 128, 1024},
    {"cortex-a57", 128, 32, 32, 2048, 0},
    {"cortex-a72", 128, 32, 32, 1024, 0},
    {"cortex-a73", 128, 32, 64, 1024, 0},
    {"cortex-a75", 128, 32, 64, 512, 2048},
    {"cortex-a76", 128, 32, 64, 512, 4096},
    {"cortex-a77", 128, 32, 64, 512, 4096},
    {"cortex-a78", 128, 32, 64, 512, 4096},
    {"cortex-x1", 128, 32, 64, 1024, 8192},
    {"neoverse-n1", 128, 32, 64, 1024, 32768},
    {"neoverse-n2", 128, 32, 64, 1024, 32768},
    {"neoverse-v1", 128, 32, 64, 1024, 32768},  // 256 are SVE's: no code for it
    {"neoverse-v2", 128, 32, 64, 2048, 65536},
    {"apple-m1", 128, 32, 128, 12288, 8192},
    {"apple-m2", 128, 32, 128, 16384, 8192},
};

// CPUs whose name says that they have tiles (AMX), in the words of -mattr.
// tests/compiler_core/cpu_features_test holds it against LLVM.
struct TileRow {
  std::string_view name;
  bool has_float16;
};
constexpr TileRow kTileCpus[] = {{"sapphirerapids", false},
                                 {"emeraldrapids", false},
                                 {"graniterapids", true},
                                 {"graniterapids-d", true},
                                 {"diamondrapids", true}};

// CPUs whose name says that they have dot products of bfloat16, held against LLVM by the same test.
constexpr std::string_view kBfloat16DotCpus[] = {"cooperlake",    "sapphirerapids",  "emeraldrapids",
                                                 "graniterapids", "graniterapids-d", "diamondrapids",
                                                 "znver4",        "znver5",          "novalake"};

// CPUs of AArch64 whose name says that they multiply small matrices in vectors (i8mm, bf16), held against
// LLVM by the same test.
constexpr std::string_view kMatrixArmCpus[] = {
    "cortex-a510",   "cortex-a520", "cortex-a520ae", "cortex-a710",   "cortex-a715", "cortex-a720",
    "cortex-a720ae", "cortex-a725", "cortex-x2",     "cortex-x3",     "cortex-x4",   "cortex-x925",
    "gb10",          "grace",       "cobalt-100",    "neoverse-n2",   "neoverse-n3", "neoverse-512tvb",
    "neoverse-v1",   "neoverse-v2", "neoverse-v3",   "neoverse-v3ae", "apple-a15",   "apple-a16",
    "apple-a17",     "apple-a18",   "apple-a19",     "apple-m2",      "apple-m3",    "apple-m4",
    "apple-m5",      "apple-s9",    "apple-s10",     "ampere1",       "ampere1a",    "ampere1b",
    "oryon-1"};

constexpr std::string_view kDefaultTriple = "x86_64-linux-gnu";

bool is_feature(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
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
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find(',', begin), value.size());
    const std::string_view feature = value.substr(begin, end - begin);
    begin = end + 1;
    if (feature.empty()) continue;
    if ((feature[0] != '+' && feature[0] != '-') || !is_feature(feature.substr(1)))
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

// Bounds of one hardware thread, above every CPU that there is.
//   clock   the highest that any x86 or ARM server or desktop CPU is sold with is 6.2 GHz (Intel Core
//           i9-14900KS)
//   pipes   the most arithmetic instructions on whole vectors a cycle: two multiply-adds and two additions
//           (AMD Zen 5 optimization guide), four multiply-adds of 128 bits (Arm Neoverse V1 and V2, Apple M1)
//   ports   the most loads and stores a cycle: three loads and two stores (Intel Golden Cove optimization
//           manual)
constexpr double kClockGhz = 6.5, kPipes = 4, kPorts = 6;
// AMX: a tile product of 16 x 16 x 64 bytes every 16 cycles, 2048 operations a cycle on int8 (Intel
// optimization manual, chapter on AMX); a later one may have twice that.
constexpr double kTileOpsOfInt8 = 4096;
// Products of small matrices in one vector instruction do this much more than lanes alone (Arm i8mm, bf16).
constexpr double kMatrixInVector = 2;

const CpuRow* find_cpu(std::string_view mcpu) {
  const CpuRow* const found = std::ranges::find(kCpus, mcpu, &CpuRow::name);
  return found == std::end(kCpus) ? nullptr : found;
}

std::optional<DeviceLimits> cpu_limits(const Target& t, DType dtype) {
  const bool x86 = t.is_x86(), listed = find_cpu(t.mcpu) != nullptr;
  const bool has_tiles_of_its_own = std::ranges::any_of(
      t.mattr, [](std::string_view f) { return f.starts_with("+sm") || f.starts_with("+sve"); });
  if (!x86 && (!t.mtriple.starts_with("aarch64") || !listed || has_tiles_of_its_own)) return std::nullopt;
  // A CPU that the table does not list may have the widest vectors of its kind.
  const double vector_bytes = (listed ? t.vector_bits : std::max(t.vector_bits, 512)) / 8.0;
  const auto element = static_cast<double>(dtype_bytes(dtype));
  double ops = 2 * kPipes * vector_bytes / element * (element < 4 ? kMatrixInVector : 1);
  if (x86 && vector_bytes >= 64 && element < 4) ops = std::max(ops, kTileOpsOfInt8 / element);
  return DeviceLimits{.ops_per_ns = ops * kClockGhz * t.threads,
                      .bytes_per_ns = kPorts * vector_bytes * kClockGhz * t.threads,
                      .call_ns = 1 / kClockGhz};
}

bool is_caches(std::string_view part) { return part.starts_with("L1") || part.starts_with("L2"); }

class CpuFamily final : public TargetFamily {
 public:
  std::string_view word() const override { return "llvm"; }
  std::string_view usage() const override {
    return R"("llvm -mcpu=NAME [-mtriple=T] [-mattr=+a,-b] [-threads=N] [-emulated]")";
  }
  std::span<const std::string_view> options() const override {
    static constexpr std::string_view kOptions[] = {
        "-mcpu=", "-mtriple=", "-mattr=", "-threads=", "-emulated"};
    return kOptions;
  }

  Status set_option(std::string_view key, std::string_view value, Target& t) const override {
    if (key == "-mattr") return parse_mattr(value, t);
    if (key == "-emulated") {
      t.emulated = true;
      return Status::ok();
    }
    if (key == "-threads") {
      ASSIGN_OR_RETURN(const int64_t threads, target_number(key, value, 1, 4096));
      t.threads = static_cast<int>(threads);
      return Status::ok();
    }
    RETURN_IF_ERROR(check_target_word(key, value));
    if (key == "-mcpu") t.mcpu = value;
    if (key == "-mtriple") t.mtriple = value == kDefaultTriple ? std::string_view() : value;
    return Status::ok();
  }

  Status complete(Target& t) const override {
    if (t.mcpu.empty())
      return invalid_argument("target: llvm needs -mcpu=NAME, e.g. llvm -mcpu=haswell -threads=2");
    for (const CpuRow& row : kCpus) {
      if (row.name != t.mcpu) continue;
      t.vector_bits = row.vector_bits;
      t.vector_registers_n = row.name == "generic" && t.is_x86() ? 16 : row.vector_registers;
      t.l1d_bytes = row.l1d_kb << 10, t.l2_bytes = row.l2_kb << 10, t.l3_bytes = row.l3_kb << 10;
    }
    if (!t.is_x86() && t.vector_registers_n < 32 && t.mtriple.starts_with("aarch64"))
      t.vector_registers_n = 32;
    apply_features(t);
    return Status::ok();
  }

  std::string name(const Target& t) const override {
    std::string text = str("llvm -mcpu=", t.mcpu);
    if (!t.mtriple.empty()) text += str(" -mtriple=", t.mtriple);
    if (!t.mattr.empty()) {
      text += " -mattr=";
      for (size_t i = 0; i < t.mattr.size(); ++i) text += (i == 0 ? "" : ",") + t.mattr[i];
    }
    return text + str(" -threads=", t.threads, t.emulated ? " -emulated" : "");
  }

  std::string_view toolchain_word() const override { return "llvm"; }
  // "AMD EPYC 26.2.1 microcode 0x1 | 2 cpus | L1d 48K L2 1024K | avx2" -> "AMD EPYC 26.2.1, L1d 48K L2
  // 1024K".
  std::string device_of(std::string_view hardware) const override {
    const std::string_view model = hardware.substr(0, hardware.find(" | "));
    std::string out(model.substr(0, model.find(" microcode ")));
    for (size_t from = 0; from <= hardware.size();) {
      const size_t bar = std::min(hardware.find(" | ", from), hardware.size());
      if (const std::string_view part = hardware.substr(from, bar - from); is_caches(part))
        out += str(", ", part);
      from = bar + 3;
    }
    return out;
  }
  bool races() const override { return true; }
  bool in_process() const override { return true; }
  bool bound_by_host() const override { return true; }
  bool explains_device_state() const override { return true; }  // "code for ... measured on ..."
  std::string_view peak_owner() const override { return "vector unit's"; }

  // CPUs of one triple whose vectors and registers are alike, with any number of threads. What is fast under
  // an emulator says nothing of a device.
  bool near(const Target& a, const Target& b) const override {
    return a.emulated == b.emulated && a.mtriple == b.mtriple && a.vector_bits == b.vector_bits &&
           a.vector_registers_n == b.vector_registers_n;
  }
  bool same_processor(const Target& a, const Target& b) const override {
    return a.mcpu == b.mcpu && a.mattr == b.mattr && a.emulated == b.emulated;
  }
  std::string difference(const Target& asked, const Target& there) const override {
    std::string text;
    if (!same_processor(asked, there)) text = "tuned for " + there.mcpu;
    if (there.threads != asked.threads)
      text +=
          str(text.empty() ? "" : ", ", there.threads, there.threads == 1 ? " thread" : " threads", " there");
    return text;
  }
  std::optional<DeviceLimits> limits(const Target& t, DType dtype) const override {
    return cpu_limits(t, dtype);
  }
  bool name_depends_on_compiler() const override { return true; }  // LLVM's list of CPUs grows
};

// Whether -mattr adds the feature or takes it away; where it says neither, what the CPU's name says.
bool has_feature(const Target& t, std::string_view feature, bool by_name) {
  const auto word =
      std::ranges::find_if(t.mattr, [&](std::string_view w) { return !w.empty() && w.substr(1) == feature; });
  return word == t.mattr.end() ? by_name : word->front() == '+';
}

}  // namespace

bool Target::has_tiles(DType dtype) const {
  if (mtriple.starts_with("aarch64")) {
    const std::string_view unit = dtype == DType::kBFloat16                         ? "bf16"
                                  : dtype == DType::kInt8 || dtype == DType::kUInt8 ? "i8mm"
                                                                                    : "";
    return !unit.empty() &&
           has_feature(*this, unit, std::ranges::find(kMatrixArmCpus, mcpu) != std::end(kMatrixArmCpus));
  }
  const std::string_view wanted = dtype == DType::kBFloat16                         ? "amx-bf16"
                                  : dtype == DType::kFloat16                        ? "amx-fp16"
                                  : dtype == DType::kInt8 || dtype == DType::kUInt8 ? "amx-int8"
                                                                                    : "";
  if (!is_x86() || wanted.empty()) return false;
  const auto* const named = std::ranges::find(kTileCpus, mcpu, &TileRow::name);
  const bool is_listed = named != std::end(kTileCpus);
  return has_feature(*this, "amx-tile", is_listed) &&
         has_feature(*this, wanted, is_listed && (dtype != DType::kFloat16 || named->has_float16));
}

bool Target::has_bfloat16_dots() const {
  if (mtriple.starts_with("aarch64")) return has_tiles(DType::kBFloat16);
  const bool is_listed = std::ranges::find(kBfloat16DotCpus, mcpu) != std::end(kBfloat16DotCpus);
  return is_x86() && has_feature(*this, "avx512bf16", is_listed);
}

const TargetFamily& cpu_family() {
  static const CpuFamily family;
  return family;
}

}  // namespace tuner
