// KernelLoader: how an artifact of one kind becomes a function of this process. Every back end whose kernels
// run in a process of the host has one; the runner's candidates and the runtime library load through it.
// Kernels that run on a device with a driver have none: the runner's device child has them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/runtime/tuner_runtime.h"

namespace tuner {

// A kernel: pointers to its operands in the manifest's order, and threads and workspace. 0, or its refusal.
using KernelEntry = int32_t (*)(void* const* args, const tuner_runtime* rt);

// Of a device that is no part of the host's processor: its own clock, and why it stopped. A call's time is
// what this says of it, not the host's clock. Both are about the latest call of the kernel.
struct DeviceClock {
  double (*ns)() = nullptr;          // null: the host runs the kernel, and its clock counts
  const char* (*fault)() = nullptr;  // one line; empty: it ran to its end
};

struct LoadedKernel {
  KernelEntry entry = nullptr, pack_entry = nullptr;  // the latter is null when nothing is packed
  std::shared_ptr<void> code;                         // the entries are good as long as it lives
  DeviceClock clock;
};

class KernelLoader {
 public:
  virtual ~KernelLoader() = default;
  // Manifest::kind of what it loads.
  virtual std::string_view kind() const = 0;
  // Of kernels that have a DeviceClock: what it is, for the records ("simulated at 1 GHz"). They are data for
  // a simulator or a driver of ours: no code of a candidate runs in the process. So what the clock says is
  // not held against the time of the process. Empty: the host's clock counts.
  virtual std::string_view clock() const { return {}; }
  // The clock says the same of every call of a kernel, in every process, whatever else the host does: a
  // simulator's, which counts cycles. Then one process knows the time, and its interval has no width.
  virtual bool clock_is_exact() const { return false; }
  // `path`: the artifact's binary. Called in the candidate's process after it has entered the jail: it may
  // open `path` and allocate memory, and nothing else. Failed with the reason when the binary cannot be
  // loaded or lacks an entry of the manifest.
  virtual Result<LoadedKernel> load(const std::string& path, const Manifest& manifest) const = 0;
};

// Of the listed loaders (kernel_loader.cpp), then of those that were registered; null: no such kernel runs in
// a process of this program.
const KernelLoader* find_kernel_loader(std::string_view kind);

// Of kernels of that kind; false where there is no loader.
bool has_exact_clock(std::string_view kind);

// Static objects of it add a loader that is made outside the tree, before main(). `loader` lives for ever.
class RegisterKernelLoader {
 public:
  explicit RegisterKernelLoader(const KernelLoader& loader);
};

}  // namespace tuner
