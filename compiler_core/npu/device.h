// Device: the accelerator with its driver, for whoever has operands in the memory of the host. It is the
// simulator: times are its cycles over the clock.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/npu/kernel_file.h"
#include "compiler_core/npu/machine.h"
#include "compiler_core/npu/simulator.h"

namespace tuner::npu {

// One kernel, ready to run. Not for several threads at once.
class Device {
 public:
  // `bytes`: a file of kernel_file.h.
  static Result<Device> load(std::string_view bytes);

  // Copies the operands in, runs the program, copies the results out unless it met a fault. `args`: pointers
  // in the order of the kernel's arguments. `timeline` as in simulate().
  Simulated run(void* const* args, std::vector<Span>* timeline = nullptr);

  const Machine& machine() const { return machine_; }
  const KernelFile& kernel() const { return kernel_; }

 private:
  Device(const Machine& machine, KernelFile kernel) : machine_(machine), kernel_(std::move(kernel)) {}
  void patch(void* const* args);

  Machine machine_;
  KernelFile kernel_;
  std::vector<uint8_t> dram_;
};

// Nanoseconds that so many cycles take.
inline double ns_of_cycles(int64_t cycles) { return static_cast<double>(cycles) / Machine::kClockGhz; }

}  // namespace tuner::npu
