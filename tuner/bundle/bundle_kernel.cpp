// One kernel of a bundle: resolved, compiled under its own name, and held against the code that was measured.
#include "compiler_core/codegen_cuda/cuda.h"
#include "tuner/bundle/bundle.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"

namespace tuner {
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

// How the config is known.
ordered_json answer_json(const Answer& answer) {
  ordered_json out{{"kind", answer_kind_name(answer.kind)}};
  if (answer.known)
    out.update({{"percent_of_optimum", 100 * answer.predicted},
                {"percent_low", 100 * answer.low},
                {"percent_high", 100 * answer.high}});
  out["stale"] = answer.stale;
  if (answer.stale) out["stale_reason"] = answer.stale_reason;
  if (!answer.note.empty()) out["note"] = answer.note;
  out["rests_on"] = ordered_json::array();
  for (const Basis& b : answer.rests_on)
    out["rests_on"].push_back({{"trial", b.trial_id},
                               {"workload", b.workload_key},
                               {"target", b.target},
                               {"time_ns", b.time_ns},
                               {"when", iso_utc(b.finished_at_us)}});
  return out;
}

ordered_json facts_of(const BundleTask& t, const Answer& answer, const Manifest& manifest) {
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
  out["template"] = answer.template_name;
  out["template_version"] = answer.template_version;
  out["algorithm"] = algorithm_of(answer.template_name);
  out["config"] = config_json(answer.config);
  out["tuned"] = answer.kind == AnswerKind::kExact;
  out["answer"] = answer_json(answer);
  return out;
}

// Lines for the header.
std::string origin_of(const Answer& answer) {
  std::string origin;
  if (answer.kind == AnswerKind::kExact && answer.tuned)
    origin = str(
        "tuned: ", format_time(answer.tuned->time_ns, answer.tuned->time_low_ns, answer.tuned->time_high_ns),
        " in trial ", answer.tuned->trial_id);
  else if (answer.kind == AnswerKind::kDefault)
    origin = "not tuned: default config";
  else
    origin = str("not tuned itself: ", answer_kind_name(answer.kind), " of what was",
                 answer.rests_on.empty()
                     ? ""
                     : str(", trial ", answer.rests_on[0].trial_id, " of ", answer.rests_on[0].workload_key));
  origin += "; config " + answer.config;
  if (const std::string mark = algorithm_mark(answer.template_name); !mark.empty())
    origin += "\n * algorithm " + mark;
  return origin;
}

// Every kernel gets an entry symbol of its own, so that several can be linked into one program. The measured
// artifact has the template's symbol instead; whether the code is otherwise the measured one is checked by
// building that too and comparing digests.
Status add_measurement(const CliTask& task, const Answer& answer, const Program& program, BundleKernel& out) {
  if (answer.kind != AnswerKind::kExact || !answer.tuned) return Status::ok();
  ASSIGN_OR_RETURN(const Artifact measured, task.target.is_cuda() ? compile_cuda(program, task.target)
                                                                  : compile(program, task.target));
  const bool same = measured.manifest.digest == answer.tuned->artifact_digest;
  out.facts["measured"] = tuned_json(*answer.tuned, task.workload.flops());
  out.facts["same_code_as_measured"] = same;
  if (!same && out.note.empty())
    out.note = str("this program generates other code for the config than was measured (by ",
                   answer.tuned->environment.toolchain, "; here ", measured.manifest.toolchain,
                   "), so the stated time is that of the measured code. To measure this code: tuner rerun ",
                   answer.tuned->trial_id);
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

Result<BundleKernel> build_kernel(const BundleTask& t, const std::string& library, const Resolver& resolver,
                                  const Emit& emit) {
  RETURN_IF_ERROR(check_target(t.task, emit));
  ASSIGN_OR_RETURN(const Answer answer,
                   resolver.resolve(t.task.workload, t.task.target, t.task.algorithms, t.task.constants));
  ASSIGN_OR_RETURN(const ResolvedKernel resolved, kernel_of(answer, t.task.workload, t.task.target));
  BundleKernel out{.function = t.function,
                   .task = t.task,
                   .kind = answer.kind,
                   .origin = origin_of(answer),
                   .note = answer.note};
  ASSIGN_OR_RETURN(const Program program, resolved.instance->instantiate(resolved.config));
  if (t.task.target.is_cuda()) {
    const Program named = renamed(program, "tuner_" + t.function);
    ASSIGN_OR_RETURN(out.cubin, compile_cuda(named, t.task.target));
    ASSIGN_OR_RETURN(out.cuda_source, emit_cuda(named, t.task.target));
  } else {
    RETURN_IF_ERROR(
        add_cpu_code(t.task, renamed(program, str("tuner_", library, "_", t.function)), emit, out));
  }
  const Manifest& manifest = t.task.target.is_cuda() ? out.cubin.manifest : out.code.manifest;
  out.facts = facts_of(t, answer, manifest);
  if (t.task.target.is_cpu()) out.facts["instruction_sets"] = out.instruction_sets;
  RETURN_IF_ERROR(add_measurement(t.task, answer, program, out));
  if (emit.schedule) {
    ASSIGN_OR_RETURN(out.schedule, resolved.instance->schedule_text(resolved.config));
  }
  return out;
}

}  // namespace tuner
