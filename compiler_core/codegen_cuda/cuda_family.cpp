// Targets of NVIDIA GPUs: "cuda -arch=sm_90a", "cuda -arch=sm_90a -device=h200".
#include <charconv>
#include <cstdlib>

#include "compiler_core/base/gpu_class.h"
#include "compiler_core/target.h"

namespace tuner {
namespace {

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

// Peaks of the fastest GPU of each architecture, in TFLOP/s without sparsity, at boost clock; from NVIDIA's
// data sheets and architecture papers. `wide`: float32, with tensor cores where they take it as TF32; `half`:
// 16 bits; `byte`: int8.
struct PeakRow {
  std::string_view arch;
  double wide, half, byte;
};
constexpr PeakRow kPeaks[] = {
    {"sm_70", 16.4, 130, 65.6},    // V100S
    {"sm_75", 16.3, 130.5, 261},   // Quadro RTX 8000
    {"sm_80", 156, 312, 624},      // A100
    {"sm_86", 80, 160, 320},       // RTX 3090 Ti
    {"sm_87", 21.6, 43, 138},      // Jetson AGX Orin
    {"sm_89", 183, 366, 733},      // L40S
    {"sm_90", 495, 990, 1979},     // H100, H200
    {"sm_100", 1250, 2500, 5000},  // B200
    {"sm_103", 1250, 2500, 5000},  // B300
    {"sm_120", 252, 504, 1008},    // RTX PRO 6000
};
// The architectures of classes that people name (base/gpu_class.h), so that a slip is told at once and not by
// a job that waits for ever. A form of a card has its card's: h100-pcie. A class that is not here may be any.
struct ClassRow {
  std::string_view device_class;
  int number;
};
constexpr ClassRow kClasses[] = {
    {"v100", 70},    {"t4", 75},     {"a100", 80},     {"a30", 80},   {"a10", 86},   {"a40", 86},
    {"rtx3090", 86}, {"orin", 87},   {"l4", 89},       {"l40", 89},   {"l40s", 89},  {"rtx4090", 89},
    {"h20", 90},     {"h100", 90},   {"h200", 90},     {"gh200", 90}, {"b200", 100}, {"gb200", 100},
    {"b300", 103},   {"gb300", 103}, {"rtx5090", 120},
};
// Room above a data sheet: cards are sold, and set, to higher clocks.
constexpr double kAboveDataSheet = 1.5;
// What all multiprocessors read from their own caches: 192 of them, 128 bytes a cycle each, at 2.7 GHz.
constexpr double kBytesPerNs = 66'000;
// An empty kernel takes about a microsecond from start to start, also in a graph.
constexpr double kLeastCallNs = 100;

// "sm_103a" -> 103.
int number_of(std::string_view arch) {
  int number = 0;
  const size_t begin = arch.find_first_of("0123456789");
  if (begin != std::string_view::npos)
    std::from_chars(arch.data() + begin, arch.data() + arch.size(), number);
  return number;
}
int generation(std::string_view arch) { return number_of(arch) / 10; }

class CudaFamily final : public TargetFamily {
 public:
  std::string_view word() const override { return "cuda"; }
  std::string_view usage() const override { return "\"cuda -arch=sm_NN [-device=CLASS]\""; }
  std::span<const std::string_view> options() const override {
    static constexpr std::string_view kOptions[] = {"-arch=", "-device=", "-emulated"};
    return kOptions;
  }

  Status set_option(std::string_view key, std::string_view value, Target& t) const override {
    if (key == "-emulated") {
      t.emulated = true;
      return Status::ok();
    }
    RETURN_IF_ERROR(check_target_word(key, value));
    if (key == "-device") return set_device(value, t);
    if (value == "native")
      return invalid_argument(
          "target: -arch: expected sm_NN, found \"native\", which is the GPU of the host that resolves it: a "
          "tuner command, not a daemon or a record");
    if (!value.starts_with("sm_"))
      return invalid_argument("target: -arch: expected sm_NN, found \"", value, "\"");
    t.arch = value;
    return Status::ok();
  }

  Status complete(Target& t) const override {
    if (t.arch.empty())
      return invalid_argument(
          "target: cuda needs -arch=sm_NN, e.g. cuda -arch=sm_90a, or -arch=native for the GPU of this host");
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
      return check_class(t);
    }
    std::string known;
    for (const GpuRow& row : kGpus) known += str(known.empty() ? "" : ", ", row.arch);
    return invalid_argument("target: -arch: found \"", t.arch, "\", expected one of ", known,
                            " (sm_90a and the like too)");
  }

  std::string name(const Target& t) const override {
    return str("cuda -arch=", t.arch, t.device.empty() ? "" : " -device=" + t.device,
               t.emulated ? " -emulated" : "");
  }
  std::string any_device(const Target& t) const override {
    if (t.device.empty()) return {};
    return str("cuda -arch=", t.arch, t.emulated ? " -emulated" : "");
  }
  std::string device_class(std::string_view hardware) const override {
    return gpu_of_fingerprint(hardware).device_class;
  }

  // Suffixes are for instructions that no later architecture has; of these we use those of sm_90a.
  std::string advice(const Target& t) const override {
    if (t.arch != "sm_90") return {};
    Target with_suffix = t;
    with_suffix.arch += 'a';
    const std::string wanted = with_suffix.name();
    return str("target \"", t.name(),
               "\": without the \"a\" there are no templates with wgmma and TMA, the fastest on "
               "an H100 or H200; use \"",
               wanted, "\"");
  }

  std::string_view toolchain_word() const override { return "nvrtc"; }
  bool races() const override { return true; }
  std::string_view peak_owner() const override { return "data sheet's"; }

  // GPUs of one generation: sm_90 and sm_90a, sm_100 and sm_103. Times of the emulator tell nothing of one.
  bool near(const Target& a, const Target& b) const override {
    return a.emulated == b.emulated && generation(a.arch) == generation(b.arch);
  }
  std::optional<DeviceLimits> limits(const Target& t, DType dtype) const override {
    for (const PeakRow& row : kPeaks) {
      if (!std::string_view(t.arch).starts_with(row.arch)) continue;
      if (t.arch.size() > row.arch.size() && t.arch[row.arch.size()] >= '0' && t.arch[row.arch.size()] <= '9')
        continue;  // sm_10 of sm_100
      const int64_t bytes = dtype_bytes(dtype);
      const double tera = bytes >= 4 ? row.wide : bytes == 2 ? row.half : row.byte;
      return DeviceLimits{.ops_per_ns = kAboveDataSheet * 1000 * tera,
                          .bytes_per_ns = kAboveDataSheet * kBytesPerNs,
                          .call_ns = kLeastCallNs};
    }
    return std::nullopt;
  }
  bool same_processor(const Target& a, const Target& b) const override {
    return a.arch == b.arch && a.device == b.device;
  }
  std::string difference(const Target& asked, const Target& there) const override {
    std::string text;
    if (there.arch != asked.arch) text = there.arch;
    if (there.device != asked.device) {
      text += text.empty() ? "" : ", ";
      text += there.device.empty() ? "a device that is not named" : "the device class " + there.device;
    }
    return text.empty() ? text : "tuned for " + text;
  }

 private:
  static Status set_device(std::string_view value, Target& t) {
    t.device = gpu_class(value);
    if (value == "native")
      return invalid_argument(
          "target: -device=native is the class of this host's GPU; expected beside -arch=native, in a tuner "
          "command");
    if (!t.device.empty()) return Status::ok();
    return invalid_argument("target: -device: found \"", value,
                            "\", expected a class of GPUs, such as h200 of an \"NVIDIA H200\"");
  }
  static Status check_class(const Target& t) {
    for (const ClassRow& row : kClasses) {
      const bool form =
          t.device.starts_with(row.device_class) &&
          (t.device.size() == row.device_class.size() || t.device[row.device_class.size()] == '-');
      if (form && row.number != number_of(t.arch))
        return invalid_argument("target: -device=", t.device, " is an sm_", row.number,
                                ", found -arch=", t.arch);
    }
    return Status::ok();
  }
};

}  // namespace

const TargetFamily& cuda_family() {
  static const CudaFamily family;
  return family;
}

int Target::compute_capability() const { return is_cuda() ? number_of(arch) : 0; }

}  // namespace tuner
