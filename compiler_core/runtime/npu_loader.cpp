#include "compiler_core/runtime/npu_loader.h"

#include <array>
#include <cstdio>
#include <mutex>
#include <optional>
#include <utility>

#include "compiler_core/npu/device.h"

namespace tuner {
namespace {

// A loaded kernel, and what its latest call found. An entry has no argument that says which kernel it is, so
// each loaded one has a place with an entry of its own.
struct LoadedPlace {
  std::optional<npu::Device> device;
  std::mutex calls;
  double ns = 0;
  std::string fault;
};
constexpr size_t kPlaces = 256;

std::mutex places_mutex;
LoadedPlace places[kPlaces];

template <size_t kPlace>
int32_t run_place(void* const* args, const tuner_runtime* /*rt*/) {
  LoadedPlace& place = places[kPlace];
  const std::lock_guard lock(place.calls);
  const npu::Simulated result = place.device->run(args);
  place.ns = npu::ns_of_cycles(result.cycles);
  place.fault = result.fault ? result.fault->message : std::string();
  return result.fault ? 1 : 0;
}
// Once, before all calls: on the host.
template <size_t kPlace>
int32_t run_packing_of(void* const* args, const tuner_runtime* /*rt*/) {
  return npu::run_packing(places[kPlace].device->kernel(), args) ? 0 : 1;
}
template <size_t kPlace>
double latest_ns() {
  return places[kPlace].ns;
}
template <size_t kPlace>
const char* latest_fault() {
  return places[kPlace].fault.c_str();
}

struct PlaceEntries {
  KernelEntry entry, pack_entry;
  DeviceClock clock;
};
template <size_t... kPlace>
constexpr std::array<PlaceEntries, kPlaces> make_entries(std::index_sequence<kPlace...>) {
  return {
      PlaceEntries{run_place<kPlace>, run_packing_of<kPlace>, {latest_ns<kPlace>, latest_fault<kPlace>}}...};
}
constexpr std::array<PlaceEntries, kPlaces> kEntries = make_entries(std::make_index_sequence<kPlaces>());

Result<std::string> kernel_bytes(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return failed(path, ": cannot be read");
  std::string text;
  char part[4096];
  for (size_t n = 0; (n = std::fread(part, 1, sizeof part, file)) > 0;) text.append(part, n);
  std::fclose(file);
  return text;
}

Status check_operands(const npu::KernelFile& kernel, const Manifest& manifest) {
  if (kernel.operands.size() != manifest.args.size())
    return failed("the program has ", kernel.operands.size(), " operands, its manifest ",
                  manifest.args.size());
  for (size_t i = 0; i < manifest.args.size(); ++i)
    if (static_cast<int64_t>(kernel.operands[i].bytes) != manifest.args[i].bytes ||
        (kernel.operands[i].is_output && !manifest.args[i].is_result()))
      return failed("operand ", i, " of the program is not ", manifest.args[i].name, " of its manifest");
  if (kernel.pack_bytes.size() != manifest.pack_args.size() ||
      kernel.packing.empty() != manifest.pack_entry.empty())
    return failed("the packing of the program has ", kernel.pack_bytes.size(),
                  " arguments, that of its manifest ", manifest.pack_args.size());
  for (size_t i = 0; i < manifest.pack_args.size(); ++i)
    if (static_cast<int64_t>(kernel.pack_bytes[i]) != manifest.pack_args[i].bytes)
      return failed("argument ", i, " of the packing is not ", manifest.pack_args[i].name,
                    " of the manifest");
  return Status::ok();
}

class NpuLoader final : public KernelLoader {
 public:
  std::string_view kind() const override { return kNpuKernel; }
  std::string_view clock() const override {
    static const std::string text = str("simulated at ", npu::Machine::kClockGhz, " GHz");
    return text;
  }
  bool clock_is_exact() const override { return true; }

  Result<LoadedKernel> load(const std::string& path, const Manifest& manifest) const override {
    ASSIGN_OR_RETURN(const std::string bytes, kernel_bytes(path));
    Result<npu::Device> device = npu::Device::load(bytes);
    if (!device.is_ok()) return failed(device.message());
    RETURN_IF_ERROR(check_operands(device->kernel(), manifest));
    const std::lock_guard lock(places_mutex);
    for (size_t i = 0; i < kPlaces; ++i) {
      if (places[i].device) continue;
      places[i].device = *std::move(device);
      return LoadedKernel{.entry = kEntries[i].entry,
                          .pack_entry = manifest.pack_entry.empty() ? nullptr : kEntries[i].pack_entry,
                          .code = std::shared_ptr<void>(&places[i],
                                                        [](void* place) {
                                                          const std::lock_guard free(places_mutex);
                                                          static_cast<LoadedPlace*>(place)->device.reset();
                                                        }),
                          .clock = kEntries[i].clock};
    }
    return failed("this process has ", kPlaces, " kernels of the NPU already: free one first");
  }
};

}  // namespace

const KernelLoader& npu_loader() {
  static const NpuLoader loader;
  return loader;
}

}  // namespace tuner
