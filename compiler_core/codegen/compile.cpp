// The page behind compile.h: lower, emit, optimise, write, link.
#include "compiler_core/codegen/compile.h"

#include <algorithm>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/backend.h"
#include "compiler_core/codegen/cpu_features.h"
#include "compiler_core/codegen/library.h"
#include "compiler_core/codegen/machine.h"
#include "compiler_core/lower/lower.h"
#include "llvm/Config/llvm-config.h"

namespace tuner {
namespace {

using codegen::Emitter;
using codegen::Machine;
using codegen::Workspace;

// Grows when generated code changes for the same Program.
constexpr int kCodegenVersion = 8;

struct Compiled {
  // The context must outlive the module.
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  Machine* machine = nullptr;
  Workspace workspace;
  std::string pack_entry;
};

Status check_name(const std::string& name) {
  const bool is_identifier =
      !name.empty() && (name[0] < '0' || name[0] > '9') &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
          std::string::npos;
  if (is_identifier) return Status::ok();
  return invalid_argument("program name '", name,
                          "': expected a C identifier, because it becomes the entry's symbol");
}

// Intrinsics that the machine has no instruction for become the loops that they mean.
Result<Program> lowered_for(const Program& program, const Machine& machine, const CompileOptions& options) {
  if (options.as_written) return program;
  const Program own = with_meanings(program, [&](const Intrinsic& i) {
    return std::ranges::all_of(i.features, [&](const auto& f) { return machine.has_feature(f); });
  });
  return lower(own, options.max_unrolled_stores);
}

Result<Compiled> to_module(const Program& program, const Target& target, const CompileOptions& options) {
  RETURN_IF_ERROR(check_name(program.name));
  Compiled c;
  ASSIGN_OR_RETURN(c.machine, Machine::of(target));
  c.context = std::make_unique<llvm::LLVMContext>();
  c.module = std::make_unique<llvm::Module>(program.name, *c.context);
  c.machine->prepare(*c.module);
  ASSIGN_OR_RETURN(const Program lowered, lowered_for(program, *c.machine, options));
  ASSIGN_OR_RETURN(c.workspace, Emitter(*c.module, c.machine->traits()).emit(lowered, program.name));
  if (program.packing != nullptr) {
    c.pack_entry = program.name + "_pack";
    ASSIGN_OR_RETURN(const Program packing, lowered_for(*program.packing, *c.machine, options));
    ASSIGN_OR_RETURN(const Workspace w, Emitter(*c.module, c.machine->traits()).emit(packing, c.pack_entry));
    // One workspace serves both entries.
    c.workspace.shared_bytes = std::max(c.workspace.shared_bytes, w.shared_bytes);
    c.workspace.per_thread_bytes = std::max(c.workspace.per_thread_bytes, w.per_thread_bytes);
  }
  RETURN_IF_ERROR(c.machine->optimize(*c.module).with_context(str(program.name, ": ")));
  return c;
}

Result<std::string> emit_file(const Program& program, const Target& target, const CompileOptions& options,
                              llvm::CodeGenFileType type) {
  ASSIGN_OR_RETURN(const Compiled c, to_module(program, target, options));
  return c.machine->emit(*c.module, type, options.machine_scheduler);
}

}  // namespace

Result<CompiledObject> compile_object(const Program& program, const Target& target,
                                      const CompileOptions& options) {
  ASSIGN_OR_RETURN(const Compiled c, to_module(program, target, options));
  CompiledObject result;
  ASSIGN_OR_RETURN(result.object,
                   c.machine->emit(*c.module, llvm::CodeGenFileType::ObjectFile, options.machine_scheduler));
  Manifest& m = result.manifest;
  m.entry = program.name;
  m.args = argument_infos(program.args);
  m.pack_entry = c.pack_entry;
  if (program.packing != nullptr) m.pack_args = argument_infos(program.packing->args);
  m.workspace_bytes = c.workspace.shared_bytes;
  m.workspace_bytes_per_thread = c.workspace.per_thread_bytes;
  m.threads = target.threads;
  m.target = target.name();
  m.toolchain = toolchain_fingerprint();
  return result;
}

Result<Artifact> compile(const Program& program, const Target& target, const CompileOptions& options) {
  ASSIGN_OR_RETURN(CompiledObject compiled, compile_object(program, target, options));
  Artifact artifact{.manifest = std::move(compiled.manifest)};
  // No soname: the file is named after its digest, and who loads it needs it under the name it has then.
  ASSIGN_OR_RETURN(artifact.binary, codegen::link_shared({compiled.object}, target, /*soname=*/""));
  artifact.manifest.digest = sha256_hex(artifact.binary);
  return artifact;
}

Result<std::vector<std::string>> instruction_sets(const Target& target) {
  // LLVM and GCC agree on these names. A CPU that has the second has the first.
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"sse4.2", "avx"},         {"avx", "avx2"},    {"avx2", ""},     {"fma", ""},      {"bmi2", ""},
      {"avxvnni", "avx512vnni"}, {"avx512f", ""},    {"avx512bw", ""}, {"avx512dq", ""}, {"avx512vl", ""},
      {"avx512vnni", ""},        {"avx512bf16", ""}, {"amx-bf16", ""}, {"amx-int8", ""}, {"amx-fp16", ""}};
  std::vector<std::string> used;
  if (!target.is_x86()) {
    ASSIGN_OR_RETURN(const CpuFeatures units, needed_features(target));
    return std::vector<std::string>(units.begin(), units.end());
  }
  ASSIGN_OR_RETURN(const Machine* machine, Machine::of(target));
  for (const auto& [name, implied_by] : kNames)
    if (machine->has_feature(name) && (*implied_by == 0 || !machine->has_feature(implied_by)))
      used.emplace_back(name);
  return used;
}

Result<std::string> link_shared_library(const std::vector<std::string>& objects, const Target& target,
                                        std::string_view soname, std::string_view exported,
                                        const std::vector<std::string>& needed) {
  if (objects.empty()) return invalid_argument("a library of no objects");
  return codegen::link_shared(objects, target, soname, exported, needed);
}

Result<std::string> emit_llvm(const Program& program, const Target& target, const CompileOptions& options) {
  ASSIGN_OR_RETURN(const Compiled c, to_module(program, target, options));
  std::string text;
  llvm::raw_string_ostream out(text);
  c.module->print(out, nullptr);
  return text;
}

Result<std::string> emit_asm(const Program& program, const Target& target, const CompileOptions& options) {
  return emit_file(program, target, options, llvm::CodeGenFileType::AssemblyFile);
}

Result<std::string> emit_object(const Program& program, const Target& target, const CompileOptions& options) {
  return emit_file(program, target, options, llvm::CodeGenFileType::ObjectFile);
}

std::string toolchain_fingerprint() {
  return str("llvm ", LLVM_VERSION_STRING, " codegen ", kCodegenVersion);
}

}  // namespace tuner
