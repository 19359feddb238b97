#include "compiler_core/codegen_npu/npu_backend.h"

#include <cmath>
#include <sstream>

#include "compiler_core/codegen_npu/lower_npu.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "compiler_core/codegen_npu/queue_work.h"
#include "compiler_core/codegen_npu/ship_npu.h"
#include "compiler_core/npu/device.h"
#include "compiler_core/npu/fields.h"
#include "compiler_core/npu/simulator.h"
#include "compiler_core/npu/text.h"
#include "compiler_core/npu/timeline.h"
#include "compiler_core/runtime/cpu_hardware.h"
#include "compiler_core/runtime/npu_loader.h"

namespace tuner {
namespace {

constexpr char kToolchain[] = "npu codegen 2";  // grows when generated code or the simulator's cycles change
constexpr CodeForm kForms[] = {{"npu", "#", ".npu.txt"}, {"trace", "", ".trace.json"}};

// Which operands it has makes no difference to the cycles: these are zeros.
npu::Simulated simulated(const NpuProgram& program, const npu::Machine& machine,
                         std::vector<npu::Span>* timeline = nullptr) {
  std::vector<uint8_t> dram(program.kernel.dram_bytes);
  return npu::simulate(machine, program.kernel.code, dram, timeline);
}

std::string percent(double share) { return str(std::round(1000 * share) / 10, " %"); }

// What a run takes, and what it waits for.
std::string summary(const npu::Simulated& run, const npu::Machine& machine, const npu::Code& code) {
  if (run.fault) return str("# stops at ", run.fault->message, "\n");
  const QueueWork work = queue_work(machine, code);
  std::string text = str("# ", run.cycles, " cycles, ", percent(run.utilization(machine)),
                         " of the array's peak; simulated\n# bound by ", work.bound(), ": at least ",
                         work.least_cycles(), " cycles (array ", work.array, ", vector unit ", work.vector,
                         ", DRAM ", work.dram, ", the busiest bank ", work.bank, ")\n");
  for (int q = 0; q < npu::kQueues; ++q) {
    const npu::QueueCounts& counts = run.queues[static_cast<size_t>(q)];
    text += str("# ", npu::name_of(static_cast<npu::Queue>(q)), ": ", counts.instructions, " instructions, ",
                counts.steps, " steps, ", counts.bank_stalls, " cycles waiting for a bank, ",
                counts.bus_waits, " for DRAM's bus\n");
  }
  return text;
}

// Instructions, and above them what they were in the Program.
std::string listing(const NpuProgram& program, const npu::Machine& machine) {
  std::string text = str("# ", program.kernel.machine, ", ", program.kernel.code.size(), " instructions\n",
                         summary(simulated(program, machine), machine, program.kernel.code));
  for (size_t n = 0; n < program.kernel.operands.size(); ++n) {
    const npu::KernelOperand& o = program.kernel.operands[n];
    text += str("# operand ", n, ": ", o.bytes, " bytes at ", o.dram, o.is_output ? ", written" : "", "\n");
  }
  size_t note = 0;
  for (uint32_t n = 0; n < program.kernel.code.size(); ++n) {
    for (; note < program.notes.size() && program.notes[note].first <= n; ++note)
      text += str("# ", program.notes[note].second, "\n");
    text += npu::text_of(program.kernel.code[n]) + "\n";
  }
  return text;
}

class NpuBackend final : public Backend {
 public:
  const TargetFamily& family() const override { return npu_family(); }

  Status available() const override { return Status::ok(); }
  std::string toolchain() const override { return kToolchain; }
  // The simulator is any machine that a target names; the default one is offered.
  std::vector<std::string> targets_of_host(std::string_view device) const override {
    return device.empty() ? std::vector<std::string>{npu::Machine().name()} : std::vector<std::string>();
  }
  // Cycles are the same on every host (TargetFamily::device_of()); the record says which one it was.
  std::string hardware_here(const Target&) const override { return hardware_fingerprint(); }
  Status runs_here(const Target&) const override { return Status::ok(); }
  bool measures(const Target& code, const Target& there, std::span<const std::string>, int) const override {
    return is_npu(code) && is_npu(there);
  }

  Result<Artifact> compile(const Program& program, const Target& target, const std::string&) const override {
    ASSIGN_OR_RETURN(const NpuProgram lowered, lower_to_npu(program, machine_of(target)));
    Artifact artifact;
    artifact.binary = npu::write_kernel(lowered.kernel);
    Manifest& m = artifact.manifest;
    m.kind = kNpuKernel;
    m.entry = program.name;
    m.args = argument_infos(program.args);
    m.target = target.name();
    m.toolchain = kToolchain;
    if (program.packing != nullptr) {
      m.pack_entry = program.packing->name;
      m.pack_args = argument_infos(program.packing->args);
    }
    m.digest = artifact_digest(artifact);
    return artifact;
  }
  // Candidates rank by what their units have to do at least: which of array, DRAM and banks is busiest, and
  // how long.
  bool estimates() const override { return true; }
  Result<double> estimate_ns(const Program& program, const Target& target) const override {
    const npu::Machine machine = machine_of(target);
    ASSIGN_OR_RETURN(const NpuProgram lowered, lower_to_npu(program, machine));
    return npu::ns_of_cycles(queue_work(machine, lowered.kernel.code).least_cycles());
  }
  double least_ns(const Program& /*program*/, const Target& target, const Artifact& artifact) const override {
    const Result<npu::KernelFile> kernel = npu::read_kernel(artifact.binary);
    if (!kernel.is_ok()) return 0;
    return npu::ns_of_cycles(queue_work(machine_of(target), kernel->code).least_cycles());
  }
  // The work of each unit, and what is the most of it: as powers of two, as other features are.
  std::vector<float> features(const Program& program, const Target& target) const override {
    const npu::Machine machine = machine_of(target);
    const Result<NpuProgram> lowered = lower_to_npu(program, machine);
    const npu::Code none;
    const npu::Code& code = lowered.is_ok() ? lowered->kernel.code : none;
    const QueueWork work = queue_work(machine, code);
    std::vector<float> out;
    for (const int64_t each : {work.array, work.vector, work.load, work.store, work.dram, work.bank,
                               work.least_cycles(), static_cast<int64_t>(code.size())})
      out.push_back(static_cast<float>(std::log2(1 + static_cast<double>(each))));
    return out;
  }
  std::span<const CodeForm> forms() const override { return kForms; }
  Result<std::string> text(std::string_view form, const Program& program,
                           const Target& target) const override {
    const npu::Machine machine = machine_of(target);
    ASSIGN_OR_RETURN(const NpuProgram lowered, lower_to_npu(program, machine));
    if (form == kForms[0].name) return listing(lowered, machine);
    std::vector<npu::Span> timeline;
    (void)simulated(lowered, machine, &timeline);
    return npu::trace_json(machine, lowered.kernel.code, timeline);
  }

  std::optional<HostLibrary> host_library() const override {
    return HostLibrary{.file = "libtuner_npu.so",
                       .program = "program",
                       .step = "tuner_npu_step",
                       .costs = "tuner_npu_costs",
                       .timeline = "tuner_npu_timeline"};
  }
  Result<ShippedKernel> ship(const Program& program, const Target& target,
                             const ShipRequest& request) const override {
    ASSIGN_OR_RETURN(Artifact artifact,
                     compile(under_name(program, "tuner_" + request.function), target, {}));
    ASSIGN_OR_RETURN(std::string list, text(kForms[0].name, program, target));
    const std::string base = "npu/" + request.function;
    NpuSource code = npu_source(artifact.manifest, request.function, artifact.binary, request.about);
    ShippedKernel shipped{.manifest = std::move(artifact.manifest), .alignment_bytes = 1};
    std::string about;
    std::istringstream lines(request.about);
    for (std::string line; std::getline(lines, line);) about += "# " + line + "\n";
    shipped.files = {{"program", base + ".npu", std::move(artifact.binary)},
                     {"source", base + ".c", std::move(code.source)},
                     {"header", base + ".h", std::move(code.header)},
                     {"library_header", "npu/tuner_npu.h", std::string(npu_library_header())},
                     {"listing", base + ".npu.txt", about + std::move(list)}};
    return shipped;
  }
  std::span<const std::string_view> identifier_endings() const override {
    static constexpr std::string_view kEndings[] = {"", "_pack"};
    return kEndings;
  }
};

}  // namespace

const Backend& npu_backend() {
  static const NpuBackend instance;
  return instance;
}

}  // namespace tuner
