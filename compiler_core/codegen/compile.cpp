// The page behind compile.h: lower, emit, optimise, write, link.
#include "compiler_core/codegen/compile.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/backend.h"
#include "compiler_core/codegen/cpu_features.h"
#include "compiler_core/codegen/emitter.h"
#include "compiler_core/codegen/library.h"
#include "compiler_core/codegen/machine.h"
#include "compiler_core/lower/lower.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Config/llvm-config.h"

namespace tuner {
namespace {

using codegen::Emitter;
using codegen::IrWriter;
using codegen::Machine;
using codegen::Workspace;

// Grows when generated code changes for the same Program.
constexpr int kCodegenVersion = 12;

struct Compiled {
  // The context must outlive the module.
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  Machine* machine = nullptr;
  Workspace workspace;
};

// A C identifier, or one with ".default" behind it, which no C name can be (tuner/bundle).
Status check_name(const std::string& name) {
  std::string_view identifier = name;
  if (constexpr std::string_view kDefault = ".default"; identifier.ends_with(kDefault))
    identifier.remove_suffix(kDefault.size());
  const bool is_identifier =
      !identifier.empty() && (identifier[0] < '0' || identifier[0] > '9') &&
      identifier.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
          std::string_view::npos;
  if (is_identifier) return Status::ok();
  return invalid_argument("program name '", name,
                          "': expected a C identifier, because it becomes the entry's symbol");
}

// Intrinsics that the machine has no instruction for become the loops that they mean.
Result<Program> lowered_for(const Program& program, const Machine& machine, const CompileOptions& options,
                            std::string_view last = {}) {
  if (options.as_written) return program;
  const Program own = with_meanings(program, [&](const Intrinsic& i) {
    return std::ranges::all_of(i.features, [&](const auto& f) { return machine.has_feature(f); });
  });
  return lower(own, options.max_unrolled_stores, last);
}

std::string pack_entry_of(const Program& program) { return program.name + "_pack"; }

enum class Part { kAll, kKernel, kPacking };

Result<Workspace> emit_into(const Compiled& c, const Program& lowered, const std::string& entry) {
  IrWriter ir(*c.module, c.machine->traits());
  return Emitter(ir).emit(lowered, entry);
}

// As the emitter leaves it.
Result<Compiled> emitted(const Program& program, Part part, const Target& target,
                         const CompileOptions& options) {
  RETURN_IF_ERROR(check_name(program.name));
  Compiled c;
  ASSIGN_OR_RETURN(c.machine, Machine::of(target));
  c.context = std::make_unique<llvm::LLVMContext>();
  c.module = std::make_unique<llvm::Module>(program.name, *c.context);
  c.machine->prepare(*c.module);
  if (part != Part::kPacking) {
    ASSIGN_OR_RETURN(const Program lowered, lowered_for(program, *c.machine, options));
    ASSIGN_OR_RETURN(c.workspace, emit_into(c, lowered, program.name));
  }
  if (program.packing != nullptr && part != Part::kKernel) {
    ASSIGN_OR_RETURN(const Program packing, lowered_for(*program.packing, *c.machine, options));
    ASSIGN_OR_RETURN(const Workspace w, emit_into(c, packing, pack_entry_of(program)));
    c.workspace.join(w);
  }
  return c;
}

Status optimize(const std::string& name, const Compiled& c) {
  return c.machine->optimize(*c.module).with_context(str(name, ": "));
}

Result<Compiled> to_module(const Program& program, const Target& target, const CompileOptions& options) {
  ASSIGN_OR_RETURN(Compiled c, emitted(program, Part::kAll, target, options));
  RETURN_IF_ERROR(optimize(program.name, c));
  return c;
}

Result<std::string> emit_file(const Program& program, const Target& target, const CompileOptions& options,
                              llvm::CodeGenFileType type) {
  ASSIGN_OR_RETURN(const Compiled c, to_module(program, target, options));
  return c.machine->emit(*c.module, type, options.machine_scheduler);
}

Result<std::string> object_of(const Compiled& c, const CompileOptions& options) {
  return c.machine->emit(*c.module, llvm::CodeGenFileType::ObjectFile, options.machine_scheduler);
}

Manifest manifest_of(const Program& program, const Target& target, const Workspace& workspace) {
  Manifest m;
  m.entry = program.name;
  m.args = argument_infos(program.args);
  if (program.packing != nullptr) {
    m.pack_entry = pack_entry_of(program);
    m.pack_args = argument_infos(program.packing->args);
  }
  m.workspace_bytes = workspace.shared_bytes;
  m.workspace_bytes_per_thread = workspace.per_thread_bytes;
  m.threads = target.threads;
  m.target = target.name();
  m.toolchain = toolchain_fingerprint();
  return m;
}

// Packing entries of the kernels that were compiled last. Candidates of a search differ in their loops more
// often than in how their constants lie: most packing entries were compiled before. Any thread.
class PackingObjects {
 public:
  Result<std::string> object_of(const std::string& name, const Compiled& packing, const Target& target,
                                const CompileOptions& options) {
    std::string key;
    llvm::raw_string_ostream out(key);
    out << target.name() << ' ' << options.machine_scheduler << '\n';
    llvm::WriteBitcodeToFile(*packing.module, out);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = objects_.find(key); known != objects_.end()) return known->second;
    }
    RETURN_IF_ERROR(optimize(name, packing));
    ASSIGN_OR_RETURN(std::string object, tuner::object_of(packing, options));
    const std::lock_guard lock(mutex_);
    if (objects_.size() >= kMost) objects_.clear();
    return objects_[std::move(key)] = std::move(object);
  }

 private:
  static constexpr size_t kMost = 128;
  std::mutex mutex_;
  std::map<std::string, std::string> objects_;  // by the bitcode they are made of
};

}  // namespace

Result<Program> lower_for(const Program& program, const Target& target, std::string_view last,
                          const CompileOptions& options) {
  ASSIGN_OR_RETURN(const Machine* machine, Machine::of(target));
  ASSIGN_OR_RETURN(Program lowered, lowered_for(program, *machine, options, last));
  if (program.packing != nullptr) {
    ASSIGN_OR_RETURN(Program packing, lowered_for(*program.packing, *machine, options, last));
    lowered.packing = std::make_shared<const Program>(std::move(packing));
  }
  return lowered;
}

Result<CompiledObject> compile_object(const Program& program, const Target& target,
                                      const CompileOptions& options) {
  ASSIGN_OR_RETURN(const Compiled c, to_module(program, target, options));
  CompiledObject result{.manifest = manifest_of(program, target, c.workspace)};
  ASSIGN_OR_RETURN(result.object, object_of(c, options));
  return result;
}

Result<Artifact> compile(const Program& program, const Target& target, const CompileOptions& options) {
  static PackingObjects packing_objects;
  ASSIGN_OR_RETURN(Compiled kernel, emitted(program, Part::kKernel, target, options));
  RETURN_IF_ERROR(optimize(program.name, kernel));
  std::vector<std::string> objects(1);
  ASSIGN_OR_RETURN(objects[0], object_of(kernel, options));
  Workspace workspace = kernel.workspace;
  if (program.packing != nullptr) {
    ASSIGN_OR_RETURN(const Compiled packing, emitted(program, Part::kPacking, target, options));
    ASSIGN_OR_RETURN(std::string object, packing_objects.object_of(program.name, packing, target, options));
    objects.push_back(std::move(object));
    workspace.join(packing.workspace);
  }
  Artifact artifact{.manifest = manifest_of(program, target, workspace)};
  // No soname: the file is named after its digest, and who loads it needs it under the name it has then.
  ASSIGN_OR_RETURN(artifact.binary, codegen::link_shared(objects, target, /*soname=*/""));
  artifact.manifest.digest = sha256_hex(artifact.binary);
  return artifact;
}

Result<std::vector<std::string>> instruction_sets(const Target& target) {
  ASSIGN_OR_RETURN(const CpuFeatures needed, needed_features(target));
  return std::vector<std::string>(needed.begin(), needed.end());
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
