#include "compiler_core/codegen_npu/npu_family.h"

namespace tuner {
namespace {

// Numbers that differ from the default are in Target::numbers, by the names of Machine's members.
void keep(const npu::Machine& machine, Target& t) {
  const npu::Machine defaults;
  for (const npu::MachineNumber& n : npu::machine_numbers())
    if (machine.*n.number != defaults.*n.number)
      t.numbers[std::string(n.name)] = machine.*n.number;
    else
      t.numbers.erase(std::string(n.name));
}

class NpuFamily final : public TargetFamily {
 public:
  std::string_view word() const override { return "npu"; }
  std::string_view usage() const override { return "\"npu\""; }
  std::span<const std::string_view> options() const override {
    static const std::vector<std::string_view> options = npu::machine_options();
    return options;
  }
  Status set_option(std::string_view key, std::string_view value, Target& t) const override {
    npu::Machine machine = machine_of(t);
    RETURN_IF_ERROR(npu::set_option(key, value, machine).with_context("target: "));
    keep(machine, t);
    return Status::ok();
  }
  Status complete(Target& t) const override { return npu::check(machine_of(t)).with_context("target: "); }
  std::string name(const Target& t) const override { return machine_of(t).name(); }

  std::string_view toolchain_word() const override { return "npu"; }
  bool races() const override { return true; }  // its simulator runs in the runner's processes
  std::string_view peak_owner() const override { return "array's"; }
  bool explains_device_state() const override { return true; }  // "simulated at 1 GHz"
  // Cycles are the same on every host.
  std::string device_of(std::string_view) const override { return "NPU, simulated"; }

  // Every cycle the array multiplies and adds once in each of its places.
  std::optional<DeviceLimits> limits(const Target& t, DType) const override {
    const npu::Machine m = machine_of(t);
    const auto per_cycle = static_cast<double>(2 * m.array_rows * m.array_columns);
    // What all units move per cycle: a word of each bank, and rows of the accumulators.
    const auto bytes = static_cast<double>(m.banks * m.bank_bytes + 12 * m.array_columns + 2 * m.dram_bytes);
    return DeviceLimits{.ops_per_ns = per_cycle * npu::Machine::kClockGhz,
                        .bytes_per_ns = bytes * npu::Machine::kClockGhz,
                        .call_ns = 1 / npu::Machine::kClockGhz};
  }

  // A schedule for other sizes may not fit, but is worth a try.
  bool near(const Target&, const Target&) const override { return true; }
  bool same_processor(const Target& a, const Target& b) const override { return a.numbers == b.numbers; }
  std::string difference(const Target& asked, const Target& there) const override {
    return asked.numbers == there.numbers ? "" : str("tuned for \"", name(there), "\"");
  }
};

}  // namespace

const TargetFamily& npu_family() {
  static const NpuFamily instance;
  return instance;
}

npu::Machine machine_of(const Target& t) {
  npu::Machine machine;
  for (const npu::MachineNumber& n : npu::machine_numbers())
    if (const auto found = t.numbers.find(std::string(n.name)); found != t.numbers.end())
      machine.*n.number = found->second;
  return machine;
}

}  // namespace tuner
