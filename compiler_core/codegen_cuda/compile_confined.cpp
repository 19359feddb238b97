#include "compiler_core/codegen_cuda/compile_confined.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/process_emulator.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/foreign/source_build.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;
using cuda::Compiled;

constexpr size_t kMostCubin = size_t{64} << 20, kMostLog = size_t{1} << 20;

// $TUNER_CUDA_COMPILER, or `cuda_compiler` beside this program.
Result<std::string> compiler_program() {
  if (const char* given = std::getenv("TUNER_CUDA_COMPILER"); given != nullptr && *given != '\0')
    return std::string(given);
  const fs::path here = fs::path(path_of_this_program()).parent_path() / "cuda_compiler";
  if (::access(here.c_str(), X_OK) == 0) return here.string();
  return unavailable(
      "no executable `cuda_compiler` beside this program; set TUNER_CUDA_COMPILER to its path");
}

// Where the toolkit that has this NVRTC keeps its headers; empty: it has none.
std::string headers_beside(const std::string& nvrtc) {
  std::error_code error;
  const fs::path library = fs::weakly_canonical(nvrtc, error);
  for (const char* way : {"../include", "../../include", "../../../include"}) {
    const fs::path folder = (library.parent_path() / way).lexically_normal();
    if (fs::exists(folder / "cuda_fp16.h", error)) return folder.string();
  }
  return {};
}

Result<Compiled> read_made(const ScratchFolder& folder) {
  Compiled made;
  ASSIGN_OR_RETURN(made.cubin, read_whole(folder.file(kCubinFile), kMostCubin));
  ASSIGN_OR_RETURN(made.log, read_whole(folder.file(kLogFile), kMostLog));
  ASSIGN_OR_RETURN(made.symbol, read_whole(folder.file(kSymbolFile), kMostLog));
  ASSIGN_OR_RETURN(made.ptx, read_whole(folder.file(kPtxFile), kMostCubin));
  return made;
}

}  // namespace

Status can_compile_confined() {
  RETURN_IF_ERROR(cuda::nvrtc_version().status());
  RETURN_IF_ERROR(compiler_program().status());
  return can_confine();
}

Result<Compiled> compile_confined(const ForeignCode& code, const std::vector<std::string>& options) {
  ASSIGN_OR_RETURN(const std::string nvrtc, cuda::nvrtc_file());
  ASSIGN_OR_RETURN(const std::string program, compiler_program());
  ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make("tuner-cuda"));
  RETURN_IF_ERROR(write_source_files(*folder, code));
  std::error_code error;
  const std::string library = fs::weakly_canonical(nvrtc, error).string(), headers = headers_beside(nvrtc);
  ConfinedProgram run{.path = program,
                      .words = {"cuda_compiler", code.source, code.function},
                      .folder = folder->path(),
                      .readable = {program, fs::path(library).parent_path().string()},
                      .environment = {"TUNER_NVRTC=" + nvrtc}};
  run.words.insert(run.words.end(), options.begin(), options.end());
  run.words.emplace_back("-I.");
  if (!headers.empty()) {
    run.words.push_back("-I" + headers);
    run.readable.push_back(headers);
  }
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(run));
  const std::string said = said_by(end.output, folder->path());
  if (end.timed_out) return invalid_config("nvrtc did not end within ", run.deadline.count() / 1000, " s");
  if (end.status == kCompiledCode) return read_made(*folder);
  if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == kUnableCode)
    return unavailable(code.source, ": ", said);
  if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == kRefusedCode)
    return invalid_config("nvrtc refuses it:\n", said);
  return invalid_config("nvrtc did not end well: ", ending_text(end.status),
                        said.empty() ? "" : "; it printed: ", said);
}

}  // namespace tuner
