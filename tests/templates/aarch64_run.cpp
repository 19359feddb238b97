#include "tests/templates/aarch64_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/compile.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

// The program around a kernel. `serial_for` is the ABI's parallel_for on one thread; the kernel's arguments
// are data of the program, the output is written to standard output.
constexpr char kStart[] = R"(
  .text
  .globl _start
_start:
  .if HAS_PACK
  ldr x0, =pack_args
  ldr x1, =runtime
  bl PACK_ENTRY
  cbnz w0, exit
  .endif
  ldr x0, =args
  ldr x1, =runtime
  bl ENTRY
  cbnz w0, exit
  ldr x19, =OUT
  ldr x20, =OUT_BYTES
write_more:
  mov x0, #1
  mov x1, x19
  mov x2, x20
  mov x8, #64              // write
  svc #0
  cmp x0, #0
  b.le exit
  add x19, x19, x0
  subs x20, x20, x0
  b.ne write_more
  mov x0, #0
exit:
  and x0, x0, #0xff
  mov x8, #93              // exit
  svc #0
)";

std::string read_whole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Status write_whole(const fs::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.close();
  return out ? Status::ok() : failed(path.string(), ": cannot be written");
}

// Runs `command` in a shell, at most 60 s.
Status shell(const std::string& command, const fs::path& log) {
  const int state = std::system(("timeout 60 " + command + " 2> '" + log.string() + "'").c_str());
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return Status::ok();
  return failed(command, ": ",
                WIFEXITED(state) ? str("exit status ", WEXITSTATUS(state)) : str("ended by a signal"), ": ",
                read_whole(log));
}

std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }

// Every argument by its name: a label in front of its bytes, or of room.
Result<std::string> assembly(const Artifact& artifact, const Program& math,
                             const std::vector<std::vector<double>>& args, const TemporaryFolder& folder) {
  const Manifest& m = artifact.manifest;
  std::ostringstream text;
  text << ".set HAS_PACK, " << (m.pack_entry.empty() ? 0 : 1) << "\n";
  std::string start = str(kStart, kAarch64Runtime);
  const auto replace = [&](const std::string& word, const std::string& by) {
    for (size_t at = start.find(word); at != std::string::npos; at = start.find(word, at + by.size()))
      start.replace(at, word.size(), by);
  };
  replace("PACK_ENTRY", m.pack_entry.empty() ? m.entry : m.pack_entry);
  replace("bl ENTRY", "bl " + m.entry);
  replace("OUT_BYTES", std::to_string(math.args.back()->bytes()));
  replace("=OUT", "=arg_" + math.args.back()->name);
  text << start;
  const auto pointers = [&](const char* label, const std::vector<ArgInfo>& infos) {
    text << "  .balign 64\n" << label << ":\n";
    for (const ArgInfo& info : infos) text << "  .quad arg_" << info.name << "\n";
  };
  pointers("args", m.args);
  pointers("pack_args", m.pack_args);
  for (size_t i = 0; i < math.args.size(); ++i) {
    const Buffer& arg = math.args[i];
    text << "  .balign 64\narg_" << arg->name << ":\n";
    if (arg->role == BufferRole::kOutput) {
      text << "  .fill " << arg->bytes() << ", 1, 0xff\n";
      continue;
    }
    std::string bytes(static_cast<size_t>(arg->bytes()), '\0');
    store_elements(args[i].data(), static_cast<int64_t>(args[i].size()), arg->dtype, bytes.data());
    const fs::path file = folder.path() / (arg->name + ".bin").c_str();
    RETURN_IF_ERROR(write_whole(file, bytes));
    text << "  .incbin \"" << file.string() << "\"\n";
  }
  text << "  .bss\n  .balign 64\nworkspace:\n  .zero "
       << std::max<int64_t>(m.workspace_bytes + m.workspace_bytes_per_thread, 64) << "\n";
  for (const ArgInfo& info : m.pack_args)
    if (info.role == "packed")
      text << "  .balign 64\narg_" << info.name << ":\n  .zero " << info.bytes << "\n";
  return text.str();
}

}  // namespace

Status aarch64_tools() {
  for (const char* tool : {TUNER_LLVM_TOOLS "/llvm-mc", TUNER_LLVM_TOOLS "/ld.lld"})
    if (::access(tool, X_OK) != 0) return not_found(tool, " is not here");
  if (std::system("command -v qemu-aarch64 > /dev/null 2>&1") != 0)
    return not_found("qemu-aarch64 is not here (package qemu-user)");
  return Status::ok();
}

Result<std::vector<double>> run_on_aarch64(const Program& scheduled, const Target& target,
                                           const Program& math,
                                           const std::vector<std::vector<double>>& args) {
  ASSIGN_OR_RETURN(const Artifact artifact, compile(scheduled, target));
  ASSIGN_OR_RETURN(const std::string object, emit_object(scheduled, target));
  const TemporaryFolder folder;
  ASSIGN_OR_RETURN(const std::string start, assembly(artifact, math, args, folder));
  RETURN_IF_ERROR(write_whole(folder.path() / "kernel.o", object));
  RETURN_IF_ERROR(write_whole(folder.path() / "start.s", start));
  const fs::path log = folder.path() / "log", out = folder.path() / "out.bin",
                 program = folder.path() / "program";
  RETURN_IF_ERROR(shell(str(TUNER_LLVM_TOOLS, "/llvm-mc --triple=aarch64-linux-gnu --filetype=obj -o ",
                            quoted(folder.path() / "start.o"), " ", quoted(folder.path() / "start.s")),
                        log));
  RETURN_IF_ERROR(shell(str(TUNER_LLVM_TOOLS, "/ld.lld -m aarch64linux -static -o ", quoted(program), " ",
                            quoted(folder.path() / "start.o"), " ", quoted(folder.path() / "kernel.o")),
                        log));
  RETURN_IF_ERROR(shell(str("qemu-aarch64 -cpu max ", quoted(program), " > ", quoted(out)), log));
  const std::string bytes = read_whole(out);
  const Buffer& output = math.args.back();
  if (static_cast<int64_t>(bytes.size()) != output->bytes())
    return failed("expected ", output->bytes(), " bytes of output, found ", bytes.size());
  return load_elements(bytes.data(), output->elements(), output->dtype);
}

}  // namespace tuner
