#include "compiler_core/foreign/source_build.h"

#include <sys/wait.h>

#include <filesystem>
#include <utility>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/foreign/confined_program.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSaid = 4096;
constexpr size_t kMostBinary = size_t{256} << 20;

}  // namespace

std::string said_by(std::string output, const std::string& folder) {
  for (size_t at = 0; (at = output.find(folder + "/", at)) != std::string::npos;)
    output.erase(at, folder.size() + 1);
  std::string text = printable_lines(output.substr(0, kMostSaid));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Status write_source_files(const ScratchFolder& folder, const ForeignCode& code) {
  for (const ForeignCode::File& file : *code.files) {
    RETURN_IF_ERROR(make_folders(fs::path(folder.file(file.name)).parent_path()));
    RETURN_IF_ERROR(replace_file(folder.file(file.name), file.text));
  }
  return Status::ok();
}

SourceBuild::SourceBuild(const Program& program, Compiler compiler, std::unique_ptr<ScratchFolder> folder)
    : program_(&program), compiler_(std::move(compiler)), folder_(std::move(folder)) {}

Result<SourceBuild> SourceBuild::make(const Program& program, const std::string& entry) {
  const ForeignCode& code = *program.foreign;
  ASSIGN_OR_RETURN(Compiler compiler, find_compiler(code.compiler));
  ASSIGN_OR_RETURN(auto folder, ScratchFolder::make("tuner-source"));
  SourceBuild build(program, std::move(compiler), std::move(folder));
  RETURN_IF_ERROR(write_source_files(*build.folder_, code));
  RETURN_IF_ERROR(replace_file(build.path(build.entry_name()), entry));
  return build;
}

std::string SourceBuild::entry_name() const {
  return program_->foreign->cxx ? "tuner_entry.cpp" : "tuner_entry.c";
}

Status SourceBuild::compile(const std::vector<std::string>& words, const std::string& made) const {
  const ForeignCode& code = *program_->foreign;
  // Before the user's words, which may say otherwise.
  std::vector<std::string> all = {"-O2", "-fPIC", "-fvisibility=hidden"};
  if (!code.cxx)
    for (const char* word : {"-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types",
                             "-Werror=int-conversion"})
      all.emplace_back(word);
  all.insert(all.end(), code.words.begin(), code.words.end());
  all.insert(all.end(), {"-fdiagnostics-color=never", "-I."});
  all.insert(all.end(), words.begin(), words.end());
  all.insert(all.end(), {entry_name(), "-o", made});
  if (!made.ends_with(".s") && !made.ends_with(".o") && !made.ends_with(".i")) all.emplace_back("-lm");
  return run_compiler(std::move(all));
}

Status SourceBuild::link(const std::vector<std::string>& objects, const std::string& soname,
                         const std::string& made) const {
  std::vector<std::string> all = program_->foreign->words;
  all.insert(all.end(), {"-shared", "-s", "-Wl,--build-id=none", "-Wl,-z,defs"});
  if (!soname.empty()) all.push_back("-Wl,-soname," + soname);
  all.insert(all.end(), objects.begin(), objects.end());
  all.insert(all.end(), {"-o", made, "-lm"});
  return run_compiler(std::move(all));
}

Status SourceBuild::run_compiler(std::vector<std::string> words) const {
  const std::string& name = program_->foreign->compiler;
  words.insert(words.begin(), name);
  const ConfinedProgram run{.path = compiler_.path,
                            .words = std::move(words),
                            .folder = folder_->path(),
                            .readable = {fs::path(compiler_.path).parent_path()}};
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(run));
  const bool silent = end.output.empty();
  if (end.timed_out)
    return invalid_config(name, " did not end within ", run.deadline.count() / 1000, " s", silent ? "" : "\n",
                          said_by(end.output, folder_->path()));
  if (end.status == 0) return Status::ok();
  const bool killed = WIFSIGNALED(end.status);
  return invalid_config(name, killed ? " was ended by " + signal_text(WTERMSIG(end.status)) : " refuses it",
                        silent ? "" : ":\n", said_by(end.output, folder_->path()));
}

Status SourceBuild::run(const std::string& path, const std::vector<std::string>& words) const {
  ConfinedProgram run{.path = path, .words = {path}, .folder = folder_->path()};
  run.words.insert(run.words.end(), words.begin(), words.end());
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(run));
  if (!end.timed_out && end.status == 0) return Status::ok();
  return failed(path, end.timed_out ? " did not end" : " did not end well: " + ending_text(end.status), "; ",
                said_by(end.output, folder_->path()));
}

Result<std::string> SourceBuild::file(const std::string& name) const {
  return read_whole(path(name), kMostBinary);
}

}  // namespace tuner
