#include "compiler_core/codegen/cpu_backend.h"

#include <algorithm>
#include <thread>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/process_emulator.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen/cpu_features.h"
#include "compiler_core/codegen/library.h"
#include "compiler_core/foreign/compile_foreign.h"
#include "compiler_core/foreign/ship_foreign.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/lower/lower.h"
#include "compiler_core/runtime/bandwidth.h"
#include "compiler_core/runtime/cpu_hardware.h"
#include "compiler_core/runtime/dot_peak.h"
#include "compiler_core/runtime/peak.h"

namespace tuner {
namespace {

int cpus_here() { return static_cast<int>(usable_cpus().size()); }

// "", "-threads=N" or "-threads=all", behind "cpu".
Result<int> threads_of_cpu(std::string_view text, std::string_view option) {
  if (option.empty()) return 1;
  if (option == "-threads=all") return cpus_here();
  // What is wrong with a number, the parser of full names says.
  const Result<Target> read = parse_target(str("llvm -mcpu=x86-64 ", option));
  if (!option.starts_with("-threads=") || option.find(' ') != std::string_view::npos || !read)
    return invalid_argument("target '", text, "': found '", option,
                            "' after cpu, expected nothing, -threads=N (1..4096) or -threads=all");
  return read->threads;
}

// The sum of what each of `threads` threads gets at the same time.
template <class F>
double on_threads(int threads, const F& rate) {
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  workers.reserve(rates.size());
  for (double& r : rates) workers.emplace_back([&] { r = rate(); });
  double sum = 0;
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i].join();
    sum += rates[i];
  }
  return sum;
}

bool is_this_cpu(const Target& target) {
  return target.is_cpu() && target.name() == host_target(target.threads).name();
}

class CpuBackend final : public Backend {
 public:
  const TargetFamily& family() const override { return cpu_family(); }

  Status available() const override { return Status::ok(); }  // LLVM is linked in
  std::string toolchain() const override { return toolchain_fingerprint(); }
  Result<std::string> toolchain_for(const Program& program) const override {
    return program.foreign != nullptr ? foreign_toolchain(program) : toolchain();
  }

  Result<std::optional<Target>> resolve_here(std::string_view text) const override {
    if (text != "cpu" && !text.starts_with("cpu ")) return std::optional<Target>();
    std::string_view option = text.substr(3);
    while (option.starts_with(' ')) option.remove_prefix(1);
    while (option.ends_with(' ')) option.remove_suffix(1);
    ASSIGN_OR_RETURN(const int threads, threads_of_cpu(text, option));
    // As everybody else reads the name: the caches decide about config spaces, which must be the same in the
    // daemon and on the worker.
    ASSIGN_OR_RETURN(Target target, parse_target(host_target(threads).name()));
    return std::optional(std::move(target));
  }
  Status check_words(const Target& target) const override { return check_cpu_words(target); }

  std::vector<std::string> targets_of_host(std::string_view /*device*/) const override {
    return {host_target().name()};
  }
  std::vector<std::string> host_features() const override {
    const CpuFeatures& features = host_cpu_features();
    return {features.begin(), features.end()};
  }
  std::string hardware_here(const Target& target) const override {
    return is_this_cpu(target) ? hardware_fingerprint() : std::string();
  }
  Status runs_here(const Target& target) const override { return tuner::runs_here(target); }
  // With another number of threads, or for an older CPU. Emulated CPUs and real ones never measure for each
  // other.
  bool measures(const Target& code, const Target& there, std::span<const std::string> features,
                int max_threads) const override {
    if (!code.is_cpu() || !there.is_cpu() || code.threads > max_threads) return false;
    if (code.emulated != there.emulated) return false;
    Target one = code, other = there;
    one.threads = other.threads = 1;
    if (one.name() == other.name()) return true;
    const CpuFeatures of_there(features.begin(), features.end());
    return !of_there.empty() && runs_on(one, other, of_there, "it").is_ok();
  }

  Result<Artifact> compile(const Program& program, const Target& target,
                           const std::string& /*cache*/) const override {
    if (program.foreign != nullptr) return compile_foreign(program, target.name(), target.threads);
    return tuner::compile(program, target);
  }
  std::span<const CodeForm> forms() const override {
    static constexpr CodeForm kForms[] = {{"llvm", ";", ".ll"}, {"asm", "#", ".s"}, {"defines", "//", ".h"}};
    return kForms;
  }
  Result<std::string> text(std::string_view form, const Program& program,
                           const Target& target) const override {
    if (form == "defines") return foreign_definitions(program);
    if (program.foreign != nullptr)
      return form == "llvm" && program.foreign->command == nullptr ? foreign_entry(program)
                                                                   : foreign_assembly(program);
    return form == "llvm" ? emit_llvm(program, target) : emit_asm(program, target);
  }
  std::vector<std::string_view> passes() const override {
    std::vector<std::string_view> names;
    for (const LoweringPass& pass : lowering_passes()) names.push_back(pass.name);
    return names;
  }
  Result<std::string> text_after(std::string_view last, const Program& program,
                                 const Target& target) const override {
    if (program.foreign != nullptr)
      return invalid_argument("its code is a user's, which no pass of ours changes; show it as asm");
    ASSIGN_OR_RETURN(const Program lowered, lower_for(program, target, last));
    return to_text(lowered);
  }

  bool has_roofs() const override { return true; }
  std::optional<MachineRoofs> roofs(const Target& target, DType dtype,
                                    double recorded_gflops) const override {
    const bool is_float32 = dtype == DType::kFloat32;
    MachineRoofs roofs{.fma_gflops = is_float32 ? recorded_gflops : 0,
                       .peak_gflops = recorded_gflops,
                       .measured = is_this_cpu(target)};
    if (roofs.measured) {
      roofs.fma_gflops = on_threads(target.threads, [] { return measure_fma_peak_gflops(30); });
      roofs.peak_gflops = is_float32
                              ? roofs.fma_gflops
                              : on_threads(target.threads, [dtype] { return measure_peak_gops(dtype, 30); });
    }
    // The table of targets has caches by the CPU's name; this machine's are its own.
    const Target caches = roofs.measured ? host_target(target.threads) : target;
    for (const MemoryLevel& level : memory_levels(caches.l1d_bytes, caches.l2_bytes, caches.l3_bytes)) {
      roofs.levels.push_back({level.name, level.capacity_bytes, 0});
      if (roofs.measured)
        roofs.levels.back().read_gbps =
            on_threads(target.threads, [&] { return measure_read_gbps(level, 30); });
    }
    return roofs;
  }

  bool ships_objects() const override { return true; }
  Result<ShippedKernel> ship(const Program& program, const Target& target,
                             const ShipRequest& request) const override {
    if (program.foreign != nullptr) return ship_foreign(program, target, request);
    const Program named = under_name(program, str("tuner_", request.library, "_", request.function));
    ASSIGN_OR_RETURN(CompiledObject code, compile_object(named, target));
    ShippedKernel shipped{.manifest = std::move(code.manifest), .object = std::move(code.object)};
    ASSIGN_OR_RETURN(shipped.instruction_sets, instruction_sets(target));
    return shipped;
  }
  std::span<const std::string_view> identifier_endings() const override {
    static constexpr std::string_view kEndings[] = {"", "_with", "_call", "_prepack", "_pack", "_runs_here"};
    return kEndings;
  }
};

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend backend;
  return backend;
}

Result<Target> resolve_cpu_target(std::string_view text) {
  ASSIGN_OR_RETURN(const std::optional<Target> here, cpu_backend().resolve_here(text));
  if (here) return *here;
  ASSIGN_OR_RETURN(Target target, parse_target(text));
  if (!target.is_cpu()) return target;
  if (const Status known = check_cpu_words(target); !known)
    return known.with_context(str("target '", text, "': "));
  return target;
}

Status runs_here(const Target& target) {
  if (target.emulated && !is_emulated_process())
    return invalid_argument("it stands for times under an emulator, and no emulator runs this process");
  const int cpus = cpus_here();
  if (target.threads > cpus)
    return invalid_argument("it wants ", target.threads, " threads, this process may use ", cpus,
                            cpus == 1 ? " CPU" : " CPUs");
  return runs_on(target, host_target(), host_cpu_features(), "this CPU");
}

}  // namespace tuner
