// One kernel of a bundle: resolved, compiled under its own name, and held against the code that was measured.
#include <algorithm>

#include "tuner/bundle/bundle.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/time_words.h"

namespace tuner {
namespace {

using nlohmann::ordered_json;

// How the config is known. Of a locked one nothing else: what a database knows of it is not in the lock file,
// and two builds from one lock file are the same byte for byte.
ordered_json answer_json(const Answer& answer) {
  ordered_json out{{"kind", answer_kind_name(answer.kind)}};
  if (answer.kind == AnswerKind::kLocked) return out;
  if (answer.known)
    out.update({{"percent_of_optimum", 100 * answer.predicted},
                {"percent_low", 100 * answer.low},
                {"percent_high", 100 * answer.high}});
  out["stale"] = answer.stale;
  if (answer.stale) out["stale_reason"] = answer.stale_reason;
  if (!answer.note.empty()) out["note"] = answer.note;
  out["rests_on"] = ordered_json::array();
  for (const Basis& b : answer.rests_on)
    out["rests_on"].push_back({{"trial", b.trial_name},
                               {"workload", b.workload_key},
                               {"target", b.target},
                               {"time_ns", b.time_ns},
                               {"when", iso_utc(b.finished_at_us)}});
  return out;
}

ordered_json facts_of(const BundleTask& t, const Answer& answer, const ShippedKernel& code) {
  const Manifest& manifest = code.manifest;
  ordered_json out{{"function", t.function}};
  if (!t.of.empty()) out["variant_of"] = t.of;
  out.update(ordered_json::parse(manifest.to_json()));
  out.erase("digest");  // of the library, which is linked later
  if (code.object.empty()) out["digest"] = manifest.digest;
  for (const ShippedKernel::File& file : code.files) out[file.role] = file.path;
  out["alignment_bytes"] = code.alignment_bytes;
  int64_t packed_bytes = 0;
  for (const ArgInfo& arg : manifest.pack_args)
    if (arg.role == BufferRole::kPacked) packed_bytes += arg.bytes;
  out["packed_bytes"] = packed_bytes;
  out["workload"] = t.task.key;
  if (t.task.constants == Constants::kCold && t.task.workload.has_constants())
    out["constants"] = constants_name(t.task.constants);
  if (!t.task.algorithms.empty()) out["algorithms"] = t.task.algorithms;
  out["flops"] = t.task.workload.flops();
  out["template"] = answer.template_name;
  out["template_version"] = answer.template_version;
  out["algorithm"] = algorithm_of(answer.template_name);
  out["config"] = config_json(answer.config);
  out["tuned"] = is_choice(answer.kind);
  out["answer"] = answer_json(answer);
  return out;
}

// Lines for the header.
std::string origin_of(const Answer& answer) {
  std::string origin;
  if (answer.kind == AnswerKind::kExact && answer.tuned)
    origin = str("tuned: ", time_words(*answer.tuned).time, ", trial ", answer.tuned->trial_name);
  else if (answer.kind == AnswerKind::kLocked)
    origin = "locked";
  else if (answer.kind == AnswerKind::kDefault)
    origin = "not tuned: default config";
  else
    origin = str("not tuned itself: ", answer_kind_name(answer.kind), " of what was",
                 answer.rests_on.empty() ? ""
                                         : str(", trial ", answer.rests_on[0].trial_name, " of ",
                                               answer.rests_on[0].workload_key));
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
  ASSIGN_OR_RETURN(const Artifact measured, backend_of(task.target).compile(program, task.target));
  const bool same = measured.manifest.digest == answer.tuned->artifact_digest;
  out.facts["measured"] = tuned_json(*answer.tuned, task.workload.flops());
  out.facts["same_code_as_measured"] = same;
  if (!same && out.note.empty())
    out.note = str("this program generates other code for the config than was measured (by ",
                   answer.tuned->environment.toolchain, "; here ", measured.manifest.toolchain,
                   "), so the stated time is that of the measured code. To measure this code: tuner rerun ",
                   answer.tuned->trial_name);
  return Status::ok();
}

// The kernel of the default config, under a symbol that no C name can be.
Status add_default(const BundleTask& t, const std::string& library, const Answer& answer, BundleKernel& out) {
  const CliTask& task = t.task;
  if (out.stands_alone())
    return invalid_argument("--with-default: ", task.key, " is for \"", task.target_name,
                            "\", whose kernels the runtime library does not race; leave the option out");
  // Of the target by its name: it is the same on every machine of the kind, whatever its caches.
  const Result<Target> named = parse_target(task.target_name);
  const Target& target = named ? *named : task.target;
  ASSIGN_OR_RETURN(const Answer plain, Resolver(nullptr).resolve(task.workload, target, task.algorithms));
  if (answer.kind == AnswerKind::kDefault || is_config_of(plain, answer)) {
    out.facts["default_kernel"] = "same";
    return Status::ok();
  }
  ASSIGN_OR_RETURN(const ResolvedKernel kernel, kernel_of(plain, task.workload, target));
  ASSIGN_OR_RETURN(const Program program, kernel.instance->instantiate(kernel.config));
  const ShipRequest request{.function = t.function + ".default", .library = library, .about = task.key};
  ASSIGN_OR_RETURN(ShippedKernel code, backend_of(task.target).ship(program, task.target, request));
  ordered_json facts = ordered_json::parse(code.manifest.to_json());
  facts.erase("digest");
  facts.update({{"template", plain.template_name},
                {"template_version", plain.template_version},
                {"algorithm", algorithm_of(plain.template_name)},
                {"config", config_json(plain.config)},
                {"instruction_sets", code.instruction_sets}});
  out.facts["default_kernel"] = std::move(facts);
  out.default_object = std::move(code.object);
  return Status::ok();
}

// The texts that were asked for. They are of the Program under its name in the bundle, as the library has it.
Status add_texts(const BundleTask& t, const Program& named, const Emit& emit, BundleKernel& out) {
  const Backend& backend = backend_of(t.task.target);
  for (const CodeForm& form : backend.forms()) {
    if (std::ranges::find(emit.texts, form.name) == emit.texts.end()) continue;
    ASSIGN_OR_RETURN(std::string text, backend.text(form.name, named, t.task.target));
    out.texts.push_back({str(form.name, "/", t.function, form.ending), std::move(text)});
  }
  return Status::ok();
}

// What --emit asks for and this back end does not have.
Status check_emit(const CliTask& task, const Emit& emit) {
  for (const std::string& word : emit.texts)
    if (std::ranges::none_of(backend_of(task.target).forms(),
                             [&](const CodeForm& form) { return form.name == word && !form.ending.empty(); }))
      return invalid_argument("--emit ", word, ": ", task.key, " is for \"", task.target_name,
                              "\", which has no such text; leave the word out");
  return Status::ok();
}

Status check_target(const CliTask& task) {
  // A CPU under an emulator has the code that the CPU itself has.
  if (task.target.emulated && backend_of(task.target).emulates())
    return invalid_argument(
        "\"", task.target_name,
        "\" stands for the emulator's CPU Programs: nothing is shipped for it. Build for \"",
        task.target_name.substr(0, task.target_name.find(" -emulated")), "\"");
  return Status::ok();
}

}  // namespace

Result<BundleKernel> build_kernel(const BundleTask& t, const std::string& library, const Resolver& resolver,
                                  const Emit& emit) {
  RETURN_IF_ERROR(check_target(t.task));
  RETURN_IF_ERROR(check_emit(t.task, emit));
  ASSIGN_OR_RETURN(const Answer answer,
                   resolver.resolve(t.task.workload, t.task.target, t.task.algorithms, t.task.constants));
  ASSIGN_OR_RETURN(const ResolvedKernel resolved, kernel_of(answer, t.task.workload, t.task.target));
  BundleKernel out{.function = t.function,
                   .of = t.of,
                   .task = t.task,
                   .kind = answer.kind,
                   .time_ns = answer.tuned && is_choice(answer.kind) ? answer.tuned->time_ns : 0,
                   .certified = answer.tuned && answer.tuned->certified,
                   .origin = origin_of(answer),
                   .note = answer.note};
  ASSIGN_OR_RETURN(const Program program, resolved.instance->instantiate(resolved.config));
  const ShipRequest request{
      .function = t.function, .library = library, .about = str(t.task.key, "\n * ", out.origin)};
  ASSIGN_OR_RETURN(out.code, backend_of(t.task.target).ship(program, t.task.target, request));
  if (out.code.object.empty() && out.code.files.empty() && (emit.library() || emit.object))
    return invalid_argument(t.task.key,
                            " is a program of a user's, and has no function that could be linked; its knobs "
                            "are written by --emit defines");
  if (emit.object && out.stands_alone())
    return invalid_argument("--emit obj: ", t.task.key, " is for \"", t.task.target_name,
                            "\", whose kernels are not linked: their files are always written");
  out.packing = program.packing;
  out.scheduled = std::make_shared<const Program>(program);
  out.facts = facts_of(t, answer, out.code);
  if (!out.stands_alone() || !out.code.instruction_sets.empty())
    out.facts["instruction_sets"] = out.code.instruction_sets;
  if (emit.defaults) RETURN_IF_ERROR(add_default(t, library, answer, out));
  RETURN_IF_ERROR(add_texts(t, under_name(program, out.code.manifest.entry), emit, out));
  RETURN_IF_ERROR(add_measurement(t.task, answer, program, out));
  if (emit.schedule) {
    ASSIGN_OR_RETURN(out.schedule, resolved.instance->schedule_text(resolved.config));
  }
  return out;
}

}  // namespace tuner
