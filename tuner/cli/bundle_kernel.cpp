// One kernel of a bundle: chosen, compiled under its own name, and held against the code that was measured.
#include "compiler_core/codegen_cuda/cuda.h"
#include "tuner/cli/bundle.h"
#include "tuner/cli/facts.h"
#include "tuner/cli/format.h"

namespace tuner::cli {
namespace {

using nlohmann::ordered_json;

// The same Program under another entry symbol.
Program renamed(Program program, const std::string& name) {
  if (program.packing != nullptr) {
    Program packing = *program.packing;
    packing.name = name + "_pack";
    program.packing = std::make_shared<const Program>(std::move(packing));
  }
  program.name = name;
  return program;
}

ordered_json facts_of(const BundleTask& t, const ChosenKernel& kernel, const Manifest& manifest) {
  ordered_json out{{"function", t.function}};
  out.update(ordered_json::parse(manifest.to_json()));
  out.erase("digest");  // of the library, which is linked later
  if (t.task.target.is_cuda()) {
    out["digest"] = manifest.digest;
    const std::string base = "cuda/" + t.function;
    out["cubin"] = base + ".cubin";
    out["source"] = base + ".cu";
    out["launcher"] = base + ".c";
    out["header"] = base + ".h";
  }
  out["alignment_bytes"] = t.task.target.is_cuda() ? 16 : 64;
  int64_t packed_bytes = 0;
  for (const ArgInfo& arg : manifest.pack_args)
    if (arg.role == "packed") packed_bytes += arg.bytes;
  out["packed_bytes"] = packed_bytes;
  out["workload"] = t.task.key;
  out["flops"] = t.task.workload.flops();
  out["template"] = kernel.schedule_template->name();
  out["template_version"] = kernel.schedule_template->version();
  out["algorithm"] = kernel.schedule_template->algorithm();
  out["config"] = config_json(kernel.config.to_text());
  out["tuned"] = kernel.tuned.has_value();
  out["answer"] = {{"kind", kernel.tuned ? "exact" : "default"}, {"note", kernel.note}};
  return out;
}

// Lines for the header.
std::string origin_of(const ChosenKernel& kernel) {
  std::string origin =
      kernel.tuned
          ? str("tuned: ",
                format_time(kernel.tuned->time_ns, kernel.tuned->time_low_ns, kernel.tuned->time_high_ns),
                " in trial ", kernel.tuned->trial_id, "; config ", kernel.config.to_text())
          : "not tuned: default config " + kernel.config.to_text();
  if (const std::string mark = algorithm_mark(kernel.schedule_template->name()); !mark.empty())
    origin += "\n * algorithm " + mark;
  return origin;
}

// Every kernel gets an entry symbol of its own, so that several can be linked into one program. The measured
// artifact has the template's symbol instead; whether the code is otherwise the measured one is checked by
// building that too and comparing digests.
Status add_measurement(const CliTask& task, const ChosenKernel& kernel, const Program& program,
                       BundleKernel& out) {
  if (!kernel.tuned) return Status::ok();
  ASSIGN_OR_RETURN(const Artifact measured, task.target.is_cuda() ? compile_cuda(program, task.target)
                                                                  : compile(program, task.target));
  const bool same = measured.manifest.digest == kernel.tuned->artifact_digest;
  out.facts["measured"] = tuned_json(*kernel.tuned, task.workload.flops());
  out.facts["same_code_as_measured"] = same;
  if (!same)
    out.note += str(out.note.empty() ? "" : "; ",
                    "this program generates other code for the config than was measured (by ",
                    kernel.tuned->environment.toolchain, "; here ", measured.manifest.toolchain,
                    "), so the stated time is that of the measured code. To measure this code: tuner rerun ",
                    kernel.tuned->trial_id);
  return Status::ok();
}

Status add_cpu_code(const CliTask& task, const Program& named, const Emit& emit, BundleKernel& out) {
  ASSIGN_OR_RETURN(out.code, compile_object(named, task.target));
  ASSIGN_OR_RETURN(out.instruction_sets, instruction_sets(task.target));
  if (emit.llvm) {
    ASSIGN_OR_RETURN(out.llvm, emit_llvm(named, task.target));
  }
  if (emit.assembly) {
    ASSIGN_OR_RETURN(out.assembly, emit_asm(named, task.target));
  }
  return Status::ok();
}

Status check_target(const CliTask& task, const Emit& emit) {
  if (task.target.emulated)
    return invalid_argument(
        "\"", task.target_name,
        "\" stands for the emulator's CPU Programs: nothing is shipped for it. Build for \"",
        task.target_name.substr(0, task.target_name.find(" -emulated")), "\"");
  if (task.target.is_cuda() && (emit.object || emit.assembly || emit.llvm))
    return invalid_argument("--emit obj, asm and llvm are for CPUs, and ", task.key, " is for \"",
                            task.target_name, "\", whose source (.cu) is always written");
  return Status::ok();
}

}  // namespace

Result<BundleKernel> build_kernel(const BundleTask& t, const std::string& library, const Store* store,
                                  const Emit& emit) {
  RETURN_IF_ERROR(check_target(t.task, emit));
  ASSIGN_OR_RETURN(const ChosenKernel chosen, choose_kernel(t.task, store));
  BundleKernel out{.function = t.function,
                   .task = t.task,
                   .tuned = chosen.tuned.has_value(),
                   .origin = origin_of(chosen),
                   .note = chosen.note};
  ASSIGN_OR_RETURN(const Program program, chosen.instance->instantiate(chosen.config));
  if (t.task.target.is_cuda()) {
    const Program named = renamed(program, "tuner_" + t.function);
    ASSIGN_OR_RETURN(out.cubin, compile_cuda(named, t.task.target));
    ASSIGN_OR_RETURN(out.cuda_source, emit_cuda(named, t.task.target));
  } else {
    RETURN_IF_ERROR(
        add_cpu_code(t.task, renamed(program, str("tuner_", library, "_", t.function)), emit, out));
  }
  const Manifest& manifest = t.task.target.is_cuda() ? out.cubin.manifest : out.code.manifest;
  out.facts = facts_of(t, chosen, manifest);
  if (t.task.target.is_cpu()) out.facts["instruction_sets"] = out.instruction_sets;
  RETURN_IF_ERROR(add_measurement(t.task, chosen, program, out));
  if (emit.schedule) {
    ASSIGN_OR_RETURN(out.schedule, chosen.instance->schedule_text(chosen.config));
  }
  return out;
}

}  // namespace tuner::cli
