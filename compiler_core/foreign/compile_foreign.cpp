#include "compiler_core/foreign/compile_foreign.h"

#include <sys/wait.h>

#include <algorithm>
#include <filesystem>

#include "compiler_core/backend.h"
#include "compiler_core/base/child_process.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/foreign/compilers.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/ir/foreign_code.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSaid = 4096;
constexpr size_t kMostBinary = size_t{256} << 20;

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

std::string entry_file(const ForeignCode& code) { return code.cxx ? "tuner_entry.cpp" : "tuner_entry.c"; }

// Runs the compiler over the entry, with `behind` after it, in a folder of its own. `made`: the file that it makes there.
Result<std::unique_ptr<ScratchFolder>> compiled(const Program& program, const std::string& behind,
                                                const std::vector<std::string>& mode,
                                                const std::string& made) {
  const ForeignCode& code = *program.foreign;
  ASSIGN_OR_RETURN(const Compiler compiler, find_compiler(code.compiler));
  ASSIGN_OR_RETURN(auto folder, ScratchFolder::make("tuner-source"));
  for (const ForeignCode::File& file : *code.files) {
    RETURN_IF_ERROR(make_folders(fs::path(folder->file(file.name)).parent_path()));
    RETURN_IF_ERROR(replace_file(folder->file(file.name), file.text));
  }
  RETURN_IF_ERROR(replace_file(folder->file(entry_file(code)), foreign_entry(program) + behind));
  ConfinedProgram run{.path = compiler.path,
                      .words = {code.compiler},
                      .folder = folder->path(),
                      .readable = {fs::path(compiler.path).parent_path()}};
  // Before the user's words, which may say otherwise.
  for (const char* word : {"-O2", "-fPIC", "-fvisibility=hidden"}) run.words.emplace_back(word);
  if (!code.cxx)
    for (const char* word : {"-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types",
                             "-Werror=int-conversion"})
      run.words.emplace_back(word);
  run.words.insert(run.words.end(), code.words.begin(), code.words.end());
  for (const char* word : {"-fdiagnostics-color=never", "-I."}) run.words.emplace_back(word);
  run.words.insert(run.words.end(), mode.begin(), mode.end());
  for (const std::string& word : {entry_file(code), std::string("-o"), made}) run.words.push_back(word);
  if (!made.ends_with(".s")) run.words.emplace_back("-lm");
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(run));
  if (end.timed_out)
    return invalid_config(code.compiler, " did not end within ", run.deadline.count() / 1000, " s",
                          end.output.empty() ? "" : "\n", said_by(end.output));
  if (end.status != 0)
    return invalid_config(
        code.compiler,
        WIFSIGNALED(end.status) ? " was ended by " + signal_text(WTERMSIG(end.status)) : " refuses it",
        end.output.empty() ? "" : ":\n", said_by(end.output));
  return folder;
}

// The same, and the file's content.
Result<std::string> compiled_file(const Program& program, const std::vector<std::string>& mode,
                                  const std::string& made) {
  ASSIGN_OR_RETURN(const auto folder, compiled(program, "", mode, made));
  return read_whole(folder->file(made), kMostBinary);
}

}  // namespace

std::string said_by(const std::string& output) {
  std::string text = printable_lines(output.substr(0, kMostSaid));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<ForeignProgram> compile_foreign_program(const Program& program, const std::string& main_text) {
  ASSIGN_OR_RETURN(auto folder, compiled(program, main_text, {}, "program"));
  std::string path = folder->file("program");
  return ForeignProgram{std::move(folder), std::move(path)};
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

Result<Artifact> compile_foreign(const Program& program, const std::string& target_name, int threads) {
  CHECK(program.foreign != nullptr) << program.name << " has loops";
  Artifact artifact;
  ASSIGN_OR_RETURN(artifact.manifest.toolchain, foreign_toolchain(program));
  ASSIGN_OR_RETURN(
      artifact.binary,
      compiled_file(program, {"-shared", "-s", "-Wl,--build-id=none", "-Wl,-z,defs"}, "kernel.so"));
  artifact.manifest.libraries = needed_libraries(artifact.binary);
  for (const std::string& library : artifact.manifest.libraries)
    if (!may_be_needed(library))
      return invalid_config("it needs ", printable(library),
                            "; kernels may need the libraries of C, C++ and OpenMP");
  artifact.manifest.own_threads = threads > 1;
  artifact.manifest.entry = program.name;
  artifact.manifest.args = argument_infos(program.args);
  artifact.manifest.threads = threads;
  artifact.manifest.target = target_name;
  artifact.manifest.digest = sha256_hex(artifact.binary);
  return artifact;
}

Result<std::string> foreign_toolchain(const Program& program) {
  ASSIGN_OR_RETURN(const Compiler compiler, find_compiler(program.foreign->compiler));
  return str("source ", compiler.version);
}

Result<std::string> foreign_assembly(const Program& program) {
  return compiled_file(program, {"-S", "-fno-asynchronous-unwind-tables"}, "kernel.s");
}

}  // namespace tuner
