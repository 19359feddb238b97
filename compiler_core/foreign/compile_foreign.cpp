#include "compiler_core/foreign/compile_foreign.h"

#include <utility>

#include "compiler_core/backend.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/foreign/build_command.h"
#include "compiler_core/foreign/commands.h"
#include "compiler_core/foreign/compilers.h"
#include "compiler_core/ir/foreign_code.h"

namespace tuner {
namespace {

// "{0}" in an argument is the pointer to the Program's first operand.
std::string with_operands(const std::string& argument) {
  std::string out;
  for (size_t at = 0; at < argument.size(); ++at) {
    const size_t end = argument[at] == '{' ? argument.find('}', at) : std::string::npos;
    if (end == std::string::npos) {
      out += argument[at];
    } else {
      out += "tuner_args[" + argument.substr(at + 1, end - at - 1) + "]";
      at = end;
    }
  }
  return out;
}

// Of the folder's kernel.so.
Result<Artifact> artifact_of(const SourceBuild& build, const Program& program, const std::string& target_name,
                             int threads) {
  Artifact artifact;
  ASSIGN_OR_RETURN(artifact.binary, build.file("kernel.so"));
  RETURN_IF_ERROR(check_needed_libraries(artifact.binary));
  artifact.manifest.toolchain = toolchain_text(build.compiler());
  artifact.manifest.libraries = needed_libraries(artifact.binary);
  artifact.manifest.own_threads = threads > 1;
  artifact.manifest.restores_inout = true;
  artifact.manifest.entry = program.name;
  artifact.manifest.args = argument_infos(program.args);
  artifact.manifest.threads = threads;
  artifact.manifest.target = target_name;
  artifact.manifest.digest = sha256_hex(artifact.binary);
  return artifact;
}

}  // namespace

Result<ForeignProgram> compile_foreign_program(const Program& program, const std::string& main_text) {
  ASSIGN_OR_RETURN(SourceBuild build, SourceBuild::make(program, foreign_entry(program) + main_text));
  RETURN_IF_ERROR(build.compile({}, "program"));
  std::string path = build.path("program");
  return ForeignProgram{build.take_folder(), std::move(path)};
}

std::string foreign_entry(const Program& program) {
  const ForeignCode& code = *program.foreign;
  std::string call = code.function + "(";
  for (size_t i = 0; i < code.arguments.size(); ++i)
    call += (i == 0 ? "" : ", ") + with_operands(code.arguments[i]);
  // The user's text comes first, as he wrote it for a file of its own.
  return str("#include \"", code.source, "\"\n#include <stdint.h>\n", code.cxx ? "extern \"C\" " : "",
             "__attribute__((visibility(\"default\"))) int32_t ", program.name,
             "(void* const* tuner_args, const void* tuner_rt) {\n  (void)tuner_rt;\n  ", call,
             ");\n  return 0;\n}\n");
}

Status check_needed_libraries(const std::string& shared) {
  for (const std::string& library : needed_libraries(shared))
    if (!may_be_needed(library))
      return invalid_config("it needs ", printable(library),
                            "; kernels may need the libraries of C, C++ and OpenMP");
  return Status::ok();
}

Result<Artifact> compile_foreign(const Program& program, const std::string& target_name, int threads) {
  CHECK(program.foreign != nullptr) << program.name << " has loops";
  if (program.foreign->command != nullptr) return build_command(program, target_name, threads);
  ASSIGN_OR_RETURN(const SourceBuild build, SourceBuild::make(program, foreign_entry(program)));
  RETURN_IF_ERROR(build.compile({"-shared", "-s", "-Wl,--build-id=none", "-Wl,-z,defs"}, "kernel.so"));
  return artifact_of(build, program, target_name, threads);
}

Result<ForeignListing> list_foreign(const Program& program) {
  CHECK(program.foreign != nullptr && program.foreign->command == nullptr)
      << program.name << " is no function";
  ASSIGN_OR_RETURN(SourceBuild build, SourceBuild::make(program, foreign_entry(program)));
  RETURN_IF_ERROR(build.compile({"-S"}, "kernel.s"));
  ASSIGN_OR_RETURN(std::string assembly, build.file("kernel.s"));
  return ForeignListing{std::move(assembly), std::move(build)};
}

Result<Artifact> assemble_foreign(const ForeignListing& listing, const Program& program,
                                  const std::string& target_name, int threads) {
  RETURN_IF_ERROR(listing.build.link({"kernel.s"}, "", "kernel.so"));
  return artifact_of(listing.build, program, target_name, threads);
}

Result<std::string> foreign_toolchain(const Program& program) {
  if (program.foreign->command != nullptr) return commands_toolchain(program.foreign->compiler);
  ASSIGN_OR_RETURN(const Compiler compiler, find_compiler(program.foreign->compiler));
  return toolchain_text(compiler);
}

Result<std::string> foreign_assembly(const Program& program) {
  if (program.foreign->command != nullptr) return no_function(program);
  ASSIGN_OR_RETURN(const SourceBuild build, SourceBuild::make(program, foreign_entry(program)));
  RETURN_IF_ERROR(build.compile({"-S", "-fno-asynchronous-unwind-tables"}, "kernel.s"));
  return build.file("kernel.s");
}

std::string foreign_definitions(const Program& program) {
  if (program.foreign == nullptr)
    return str("// ", program.name, ": its template is ours, and no macros of a user's decide what it is\n");
  std::string text;
  for (const std::string& word : program.foreign->words) {
    const size_t equals = word.find('=');
    if (!word.starts_with("-D") || equals == std::string::npos) continue;
    const std::string name = word.substr(2, equals - 2);
    text += str("#define ", name, " ", word.substr(equals + 1), "\n");
  }
  return text;
}

}  // namespace tuner
