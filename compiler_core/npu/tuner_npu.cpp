#include "compiler_core/npu/tuner_npu.h"

#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "compiler_core/npu/device.h"
#include "compiler_core/npu/energy.h"
#include "compiler_core/npu/timeline.h"

namespace tuner::npu {
namespace {

// Kernels that were read already, by their bytes: a caller may give others at the same place.
struct ReadKernel {
  std::string bytes;
  std::mutex calls;
  std::unique_ptr<Device> device;
};
constexpr size_t kMostRead = 256;

std::mutex read_mutex;
std::list<std::shared_ptr<ReadKernel>> read_kernels;  // the latest first

thread_local std::string latest_error;
thread_local tuner_npu_counts latest_counts;
thread_local bool keeps_timeline = false;
thread_local std::string latest_timeline;

Result<std::shared_ptr<ReadKernel>> kernel_of(std::string_view bytes) {
  const std::lock_guard lock(read_mutex);
  for (auto at = read_kernels.begin(); at != read_kernels.end(); ++at)
    if ((*at)->bytes == bytes) {
      read_kernels.splice(read_kernels.begin(), read_kernels, at);
      return read_kernels.front();
    }
  Result<Device> device = Device::load(bytes);
  if (!device.is_ok()) return device.status();
  auto made = std::make_shared<ReadKernel>();
  made->bytes = bytes;
  made->device = std::make_unique<Device>(*std::move(device));
  if (read_kernels.size() == kMostRead) read_kernels.pop_back();
  read_kernels.push_front(made);
  return made;
}

int32_t failed_call(int32_t code, const std::string& why) {
  latest_error = why;
  return code;
}

tuner_npu_counts counts_of(const Simulated& run, const Machine& machine) {
  return {.cycles = run.cycles,
          .macs = run.macs,
          .vector_values = run.accesses.vector_values,
          .scratchpad_words = run.accesses.scratchpad_words,
          .accumulator_rows = run.accesses.accumulator_rows,
          .dram_bytes = run.accesses.dram_bytes,
          .energy_nj = energy_nj(run, machine)};
}

std::string_view view_of(const void* kernel, int64_t bytes) {
  return kernel == nullptr || bytes < 0
             ? std::string_view()
             : std::string_view(static_cast<const char*>(kernel), static_cast<size_t>(bytes));
}

}  // namespace
}  // namespace tuner::npu

using namespace tuner;       // NOLINT(google-build-using-namespace): functions of C have no namespace
using namespace tuner::npu;  // NOLINT(google-build-using-namespace)

int32_t tuner_npu_run(const void* kernel, int64_t bytes, void* const* operands, tuner_npu_counts* counts) {
  latest_error.clear();
  latest_counts = {};
  const Result<std::shared_ptr<ReadKernel>> known = kernel_of(view_of(kernel, bytes));
  if (!known.is_ok()) return failed_call(-1, known.message());
  const std::lock_guard lock((*known)->calls);
  Device& device = *(*known)->device;
  std::vector<Span> spans;
  const Simulated run = device.run(operands, keeps_timeline ? &spans : nullptr);
  latest_timeline =
      keeps_timeline ? trace_json(device.machine(), device.kernel().code, spans) : std::string();
  latest_counts = counts_of(run, device.machine());
  if (counts != nullptr) *counts = latest_counts;
  return run.fault ? failed_call(-2, run.fault->message) : 0;
}

int32_t tuner_npu_pack(const void* kernel, int64_t bytes, void* const* args) {
  latest_error.clear();
  const Result<std::shared_ptr<ReadKernel>> known = kernel_of(view_of(kernel, bytes));
  if (!known.is_ok()) return failed_call(-1, known.message());
  const KernelFile& file = (*known)->device->kernel();
  if (file.packing.empty()) return failed_call(-2, "the kernel packs no constants");
  return run_packing(file, args) ? 0 : failed_call(-2, "the packing reaches outside of an argument");
}

int32_t tuner_npu_step(void* const* args, const void* /*runtime*/) {
  int64_t bytes = 0;
  std::memcpy(&bytes, args[0], sizeof bytes);
  return tuner_npu_run(static_cast<const char*>(args[0]) + sizeof bytes, bytes, args + 1, nullptr);
}

void tuner_npu_costs(double* cycles, double* nanojoules) {
  *cycles = static_cast<double>(latest_counts.cycles);
  *nanojoules = latest_counts.energy_nj;
}

const char* tuner_npu_timeline(int32_t keep) {
  keeps_timeline = keep != 0;
  return latest_timeline.c_str();
}

void tuner_npu_latest(tuner_npu_counts* counts) { *counts = latest_counts; }

const char* tuner_npu_error(void) { return latest_error.c_str(); }
