#include "compiler_core/runtime/host_cpu.h"

#include <algorithm>
#include <iterator>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/process_emulator.h"
#include "compiler_core/base/status.h"
#include "compiler_core/runtime/tuner_runtime.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tuner {
namespace {

// The units that follow from one another in CPUs that are sold; a set of them as bits.
enum ArmUnits : unsigned {
  kBase = 0,
  kFp16 = 1,
  kDotprod = 2,
  kI8mm = 4,
  kBf16 = 8,
  kSve = 16,
  kSve2 = 32,
  kArm82 = kFp16 | kDotprod,
  kArm86 = kArm82 | kI8mm | kBf16,
  kArmV1 = kArm86 | kSve,
  kArm9 = kArmV1 | kSve2
};
struct UnitWord {
  unsigned unit;
  std::string_view word;
};
constexpr UnitWord kUnitWords[] = {{kBf16, "bf16"}, {kDotprod, "dotprod"}, {kFp16, "fullfp16"},
                                   {kI8mm, "i8mm"}, {kSve, "sve"},         {kSve2, "sve2"}};

// Cores by implementer and part (MIDR_EL1), with LLVM's name. tests/compiler_core/host_cpu_test holds it
// against LLVM.
struct ArmRow {
  unsigned implementer, part;
  std::string_view name;
  unsigned units;
};
constexpr unsigned kArm = 0x41, kFujitsu = 0x46, kQualcomm = 0x51, kApple = 0x61, kMicrosoft = 0x6d,
                   kAmpere = 0xc0;
constexpr ArmRow kArmCores[] = {
    {kArm, 0xd03, "cortex-a53", kBase},
    {kArm, 0xd04, "cortex-a35", kBase},
    {kArm, 0xd05, "cortex-a55", kArm82},
    {kArm, 0xd07, "cortex-a57", kBase},
    {kArm, 0xd08, "cortex-a72", kBase},
    {kArm, 0xd09, "cortex-a73", kBase},
    {kArm, 0xd0a, "cortex-a75", kArm82},
    {kArm, 0xd0b, "cortex-a76", kArm82},
    {kArm, 0xd0c, "neoverse-n1", kArm82},
    {kArm, 0xd0d, "cortex-a77", kArm82},
    {kArm, 0xd0e, "cortex-a76ae", kArm82},
    {kArm, 0xd40, "neoverse-v1", kArmV1},
    {kArm, 0xd41, "cortex-a78", kArm82},
    {kArm, 0xd44, "cortex-x1", kArm82},
    {kArm, 0xd46, "cortex-a510", kArm9},
    {kArm, 0xd47, "cortex-a710", kArm9},
    {kArm, 0xd48, "cortex-x2", kArm9},
    {kArm, 0xd49, "neoverse-n2", kArm9},
    {kArm, 0xd4a, "neoverse-e1", kArm82},
    {kArm, 0xd4b, "cortex-a78c", kArm82},
    {kArm, 0xd4c, "cortex-x1c", kArm82},
    {kArm, 0xd4d, "cortex-a715", kArm9},
    {kArm, 0xd4e, "cortex-x3", kArm9},
    {kArm, 0xd4f, "neoverse-v2", kArm9},
    {kArm, 0xd80, "cortex-a520", kArm9},
    {kArm, 0xd81, "cortex-a720", kArm9},
    {kArm, 0xd82, "cortex-x4", kArm9},
    {kArm, 0xd84, "neoverse-v3", kArm9},
    {kArm, 0xd85, "cortex-x925", kArm9},
    {kArm, 0xd87, "cortex-a725", kArm9},
    {kArm, 0xd8e, "neoverse-n3", kArm9},
    {kFujitsu, 0x001, "a64fx", kFp16 | kSve},
    {kQualcomm, 0x001, "oryon-1", kArm86},
    {kQualcomm, 0x800, "cortex-a73", kBase},  // Kryo 2xx to 4xx, gold cores
    {kQualcomm, 0x802, "cortex-a75", kArm82},
    {kQualcomm, 0x804, "cortex-a76", kArm82},
    {kApple, 0x022, "apple-m1", kArm82},
    {kApple, 0x023, "apple-m1", kArm82},
    {kApple, 0x024, "apple-m1", kArm82},
    {kApple, 0x028, "apple-m1", kArm82},
    {kApple, 0x032, "apple-m2", kArm86},
    {kApple, 0x038, "apple-m2", kArm86},
    {kMicrosoft, 0xd49, "neoverse-n2", kArm9},
    {kAmpere, 0xac3, "ampere1", kArm86},
    {kAmpere, 0xac4, "ampere1a", kArm86},
};

unsigned units_of(const ArmCore& core) {
  const auto has = [](uint64_t word, int bit) { return (word >> bit & 1) != 0; };
  // HWCAP_FPHP, HWCAP_ASIMDHP, HWCAP_ASIMDDP...: bits of Linux's interface (asm/hwcap.h).
  return (has(core.hwcap, 9) && has(core.hwcap, 10) ? kFp16 : 0U) | (has(core.hwcap, 20) ? kDotprod : 0U) |
         (has(core.hwcap, 22) ? kSve : 0U) | (has(core.hwcap2, 1) ? kSve2 : 0U) |
         (has(core.hwcap2, 13) ? kI8mm : 0U) | (has(core.hwcap2, 14) ? kBf16 : 0U);
}

#if defined(__x86_64__)
// Registers of a CPUID leaf.
enum Register { kEax, kEbx, kEcx, kEdx };
// What the system must save and restore for the unit.
enum class State { kNone, kAvx, kAvx512 };
struct X86Unit {
  std::string_view word;
  unsigned leaf, subleaf;
  Register in;
  int bit;
  State state;
};
constexpr unsigned kExtended = 0x80000001;
constexpr X86Unit kX86Units[] = {
    {"avx", 1, 0, kEcx, 28, State::kAvx},
    {"avx2", 7, 0, kEbx, 5, State::kAvx},
    {"avx512bf16", 7, 1, kEax, 5, State::kAvx512},
    {"avx512bitalg", 7, 0, kEcx, 12, State::kAvx512},
    {"avx512bw", 7, 0, kEbx, 30, State::kAvx512},
    {"avx512cd", 7, 0, kEbx, 28, State::kAvx512},
    {"avx512dq", 7, 0, kEbx, 17, State::kAvx512},
    {"avx512f", 7, 0, kEbx, 16, State::kAvx512},
    {"avx512fp16", 7, 0, kEdx, 23, State::kAvx512},
    {"avx512ifma", 7, 0, kEbx, 21, State::kAvx512},
    {"avx512vbmi", 7, 0, kEcx, 1, State::kAvx512},
    {"avx512vbmi2", 7, 0, kEcx, 6, State::kAvx512},
    {"avx512vl", 7, 0, kEbx, 31, State::kAvx512},
    {"avx512vnni", 7, 0, kEcx, 11, State::kAvx512},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, State::kAvx512},
    {"avxifma", 7, 1, kEax, 23, State::kAvx},
    {"avxneconvert", 7, 1, kEdx, 5, State::kAvx},
    {"avxvnni", 7, 1, kEax, 4, State::kAvx},
    {"avxvnniint8", 7, 1, kEdx, 4, State::kAvx},
    {"bmi", 7, 0, kEbx, 3, State::kNone},
    {"bmi2", 7, 0, kEbx, 8, State::kNone},
    {"f16c", 1, 0, kEcx, 29, State::kAvx},
    {"fma", 1, 0, kEcx, 12, State::kAvx},
    {"fma4", kExtended, 0, kEcx, 16, State::kAvx},
    {"gfni", 7, 0, kEcx, 8, State::kNone},
    {"lzcnt", kExtended, 0, kEcx, 5, State::kNone},
    {"movbe", 1, 0, kEcx, 22, State::kNone},
    {"popcnt", 1, 0, kEcx, 23, State::kNone},
    {"sse3", 1, 0, kEcx, 0, State::kNone},
    {"sse4.1", 1, 0, kEcx, 19, State::kNone},
    {"sse4.2", 1, 0, kEcx, 20, State::kNone},
    {"sse4a", kExtended, 0, kEcx, 6, State::kNone},
    {"ssse3", 1, 0, kEcx, 9, State::kNone},
    {"tbm", kExtended, 0, kEcx, 21, State::kNone},
    {"xop", kExtended, 0, kEcx, 11, State::kAvx},
};

// True if the system keeps the registers (XCR0), which it says only where it uses XSAVE.
bool system_keeps(State state) {
  if (state == State::kNone) return true;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c >> 27 & 1) == 0) return false;
  unsigned low = 0, high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const unsigned wanted = state == State::kAvx ? 0x06 : 0xe6;
  return (low & wanted) == wanted;
}

// The levels, the highest first, by what each adds to the one below, and what makes our kernels faster and is
// no part of a level.
struct X86Level {
  std::string_view name;
  std::vector<std::string_view> adds;
};
const std::vector<X86Level>& x86_levels() {
  static const std::vector<X86Level> levels = {
      {"x86-64-v2", {"popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}},
      {"x86-64-v3", {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}},
      {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}};
  return levels;
}
constexpr std::string_view kBesides[] = {"amx-bf16",   "amx-fp16",   "amx-int8",   "amx-tile", "avx",  "avx2",
                                         "avx512bf16", "avx512fp16", "avx512vnni", "avxvnni",  "f16c", "fma"};

CpuName name_of_x86_units(const std::vector<std::string>& units) {
  const auto has = [&](std::string_view unit) { return std::ranges::find(units, unit) != units.end(); };
  CpuName name{"x86-64", {}};
  std::vector<std::string_view> implied;
  for (const X86Level& level : x86_levels()) {
    if (!std::ranges::all_of(level.adds, has)) break;
    name.mcpu = level.name;
    implied.insert(implied.end(), level.adds.begin(), level.adds.end());
  }
  for (const std::string_view unit : kBesides)
    if (has(unit) && std::ranges::find(implied, unit) == implied.end()) name.mattr.push_back(str("+", unit));
  return name;
}
#elif defined(__aarch64__)
// Reading MIDR_EL1 is an instruction for the kernel, which Linux carries out for programs where it sets
// HWCAP_CPUID.
ArmCore core_of(int cpu) {
  constexpr uint64_t kHwcapCpuid = 1 << 11;
  ArmCore core{0, getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  if ((core.hwcap & kHwcapCpuid) == 0) return core;
  const OnCpus there({cpu});
  asm volatile("mrs %0, midr_el1" : "=r"(core.midr));
  return core;
}
#endif

}  // namespace

CpuName name_of_arm(const ArmCore& core) {
  const unsigned implementer = core.midr >> 24 & 0xff, part = core.midr >> 4 & 0xfff;
  const auto* const row = std::ranges::find_if(
      kArmCores, [&](const ArmRow& r) { return r.implementer == implementer && r.part == part; });
  const bool is_listed = row != std::end(kArmCores);
  const unsigned here = units_of(core), named = is_listed ? row->units : kBase;
  CpuName name{std::string(is_listed ? row->name : "generic"), {}};
  for (const auto& [unit, word] : kUnitWords) {
    if ((here & unit) == (named & unit)) continue;
    // Without sve there is no sve2.
    if (unit == kSve2 && (here & kSve) == 0) continue;
    name.mattr.push_back(str((here & unit) != 0 ? "+" : "-", word));
  }
  return name;
}

std::vector<std::string> units_of_arm(std::string_view mcpu) {
  std::vector<std::string> words;
  const auto* const row = std::ranges::find(kArmCores, mcpu, &ArmRow::name);
  if (row == std::end(kArmCores)) return words;
  for (const auto& [unit, word] : kUnitWords)
    if ((row->units & unit) != 0) words.emplace_back(word);
  return words;
}

std::vector<std::string> arm_cpu_names() {
  std::vector<std::string> names;
  for (const ArmRow& row : kArmCores)
    if (std::ranges::find(names, row.name) == names.end()) names.emplace_back(row.name);
  return names;
}

CpuName host_cpu_name() {
#if defined(__x86_64__)
  static const CpuName name = name_of_x86_units(host_cpu_units());
#elif defined(__aarch64__)
  static const CpuName name = name_of_arm(core_of(usable_cpus().back()));
#endif
  return name;
}

std::vector<std::string> host_arm_units() {
  std::vector<std::string> words;
#if defined(__aarch64__)
  const unsigned here = units_of(core_of(usable_cpus().back()));
  for (const auto& [unit, word] : kUnitWords)
    if ((here & unit) != 0) words.emplace_back(word);
#endif
  return words;
}

std::vector<std::string> host_cpu_units() {
  std::vector<std::string> found;
#if defined(__x86_64__)
  for (const X86Unit& unit : kX86Units) {
    unsigned r[4] = {};
    if (__get_cpuid_count(unit.leaf, unit.subleaf, &r[kEax], &r[kEbx], &r[kEcx], &r[kEdx]) != 0 &&
        (r[unit.in] >> unit.bit & 1) != 0 && system_keeps(unit.state))
      found.emplace_back(unit.word);
  }
  const int tiles = tuner_tiles();
  if (tiles != 0) found.emplace_back("amx-tile");
  if ((tiles & TUNER_TILES_BFLOAT16) != 0) found.emplace_back("amx-bf16");
  if ((tiles & TUNER_TILES_INT8) != 0) found.emplace_back("amx-int8");
  if ((tiles & TUNER_TILES_FLOAT16) != 0) found.emplace_back("amx-fp16");
  std::ranges::sort(found);
#endif
  return found;
}

std::string host_cpu_target(int threads, std::string_view mcpu) {
  const CpuName name = mcpu.empty() ? host_cpu_name() : CpuName{std::string(mcpu), {}};
  std::string text = str("llvm -mcpu=", name.mcpu);
#if defined(__aarch64__)
  text += " -mtriple=aarch64-linux-gnu";
#endif
  for (size_t i = 0; i < name.mattr.size(); ++i) text += (i == 0 ? " -mattr=" : ",") + name.mattr[i];
  return text + str(" -threads=", threads, is_emulated_process() ? " -emulated" : "");
}

}  // namespace tuner
