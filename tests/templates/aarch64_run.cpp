#include "tests/templates/aarch64_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/library.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

// What is behind an output, and must be there afterwards.
constexpr int64_t kGuardBytes = 64;
constexpr char kGuard = 0x7f;

// The program around the kernels: it goes through `table`, calls what packs and the kernel, and writes its
// output and the guard behind it to standard output. A row of the table:
//
//   packing entry or 0, its arguments, entry or 0 at the end, its arguments, output, bytes to write
constexpr char kStart[] = R"(
  .text
  .globl _start
_start:
  ldr x19, =table
next_kernel:
  ldr x9, [x19, #16]
  cbz x9, done
  ldr x9, [x19]
  cbz x9, packed
  ldr x0, [x19, #8]
  ldr x1, =runtime
  blr x9
  cbnz w0, exit
packed:
  ldp x9, x0, [x19, #16]
  ldr x1, =runtime
  blr x9
  cbnz w0, exit
  ldp x20, x21, [x19, #32]
write_more:
  mov x0, #1
  mov x1, x20
  mov x2, x21
  mov x8, #64              // write
  svc #0
  cmp x0, #0
  b.le exit
  add x20, x20, x0
  subs x21, x21, x0
  b.ne write_more
  add x19, x19, #48
  b next_kernel
done:
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

// The CPU that qemu takes for the target's: itself where qemu knows it, else one that has everything.
std::string_view qemu_cpu(const Target& target) {
  for (const std::string_view known : {"cortex-a53", "cortex-a57", "cortex-a72", "cortex-a76", "neoverse-n1"})
    if (target.mcpu == known && target.mattr.empty()) return known;
  return "max";
}

}  // namespace

Status aarch64_tools() {
  for (const char* tool : {TUNER_LLVM_TOOLS "/llvm-mc", TUNER_LLVM_TOOLS "/ld.lld"})
    if (::access(tool, X_OK) != 0) return not_found(tool, " is not here");
  if (std::system("command -v qemu-aarch64 > /dev/null 2>&1") != 0)
    return not_found("qemu-aarch64 is not here: deploy/install.sh --emulator");
  return Status::ok();
}

std::string Aarch64Batch::label_of(const std::string& bytes) {
  return data_.try_emplace(bytes, str("data", data_.size())).first->second;
}

Status Aarch64Batch::add(const Program& scheduled, const Program& math,
                         const std::vector<std::vector<double>>& args, const std::vector<double>& before,
                         std::string what) {
  // Each kernel has symbols of its own.
  Program named = scheduled;
  named.name = str("kernel", kernels_.size());
  ASSIGN_OR_RETURN(CompiledObject compiled, compile_object(named, target_));
  Kernel kernel{.what = std::move(what),
                .object = std::move(compiled.object),
                .manifest = std::move(compiled.manifest),
                .labels = {},
                .out = math.args.back(),
                .before = {}};
  const auto bytes_of = [](const Buffer& b, const std::vector<double>& values) {
    std::string bytes(static_cast<size_t>(b->bytes()), '\xff');
    store_elements(values.data(), static_cast<int64_t>(values.size()), b->dtype, bytes.data());
    return bytes;
  };
  for (size_t i = 0; i + 1 < math.args.size(); ++i)
    kernel.labels[math.args[i]->name] = label_of(bytes_of(math.args[i], args[i]));
  const bool is_read = math.args.back()->role == BufferRole::kInOut;
  kernel.before = bytes_of(kernel.out, is_read ? before : std::vector<double>());
  kernels_.push_back(std::move(kernel));
  return Status::ok();
}

// The table and all data. Bytes are in files of the folder.
Result<std::string> Aarch64Batch::program_text(const std::string& folder) const {
  std::ostringstream text, table, data, room;
  int64_t workspace = 64;
  int files = 0;
  const auto place = [&](const std::string& label, const std::string& bytes) {
    const std::string file = str(folder, "/", files++, ".bin");
    data << "  .balign 64\n" << label << ":\n  .incbin \"" << file << "\"\n";
    return write_whole(file, bytes);
  };
  for (const auto& [bytes, label] : data_) RETURN_IF_ERROR(place(label, bytes));
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const Manifest& m = kernels_[k].manifest;
    const std::string out = str("out", k);
    RETURN_IF_ERROR(place(out, kernels_[k].before + std::string(kGuardBytes, kGuard)));
    std::map<std::string, std::string> labels = kernels_[k].labels;
    labels[kernels_[k].out->name] = out;
    const auto pointers = [&](const std::string& label, const std::vector<ArgInfo>& infos) {
      data << "  .balign 8\n" << label << ":\n";
      for (const ArgInfo& info : infos) {
        const auto [at, fresh] = labels.try_emplace(info.name, str("packed", k, "_", info.name));
        if (fresh) room << "  .balign 64\n" << at->second << ":\n  .zero " << info.bytes << "\n";
        data << "  .quad " << at->second << "\n";
      }
    };
    pointers(str("args", k), m.args);
    pointers(str("pack_args", k), m.pack_args);
    table << "  .quad " << (m.pack_entry.empty() ? "0" : m.pack_entry) << ", pack_args" << k << ", "
          << m.entry << ", args" << k << ", " << out << ", " << kernels_[k].before.size() + kGuardBytes
          << "\n";
    workspace = std::max(workspace, m.workspace_bytes + m.workspace_bytes_per_thread);
  }
  text << kStart << kAarch64Runtime << "table:\n"
       << table.str() << "  .quad 0, 0, 0\n"
       << data.str() << "  .bss\n  .balign 64\nworkspace:\n  .zero " << workspace << "\n"
       << room.str();
  return text.str();
}

Result<std::vector<std::vector<double>>> Aarch64Batch::run() const {
  const TemporaryFolder folder;
  ASSIGN_OR_RETURN(const std::string text, program_text(folder.path().string()));
  RETURN_IF_ERROR(write_whole(folder.path() / "start.s", text));
  std::string objects;
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const fs::path object = folder.path() / str("kernel", k, ".o");
    RETURN_IF_ERROR(write_whole(object, kernels_[k].object));
    objects += quoted(object) + "\n";
  }
  RETURN_IF_ERROR(write_whole(folder.path() / "objects", objects));
  const fs::path log = folder.path() / "log", out = folder.path() / "out.bin",
                 program = folder.path() / "program", start = folder.path() / "start.o";
  RETURN_IF_ERROR(shell(str(TUNER_LLVM_TOOLS, "/llvm-mc --triple=aarch64-linux-gnu --filetype=obj -o ",
                            quoted(start), " ", quoted(folder.path() / "start.s")),
                        log));
  RETURN_IF_ERROR(shell(str(TUNER_LLVM_TOOLS, "/ld.lld -m aarch64linux -static -o ", quoted(program), " ",
                            quoted(start), " ", quoted("@" + (folder.path() / "objects").string())),
                        log));
  const Status ran =
      shell(str("qemu-aarch64 -cpu ", qemu_cpu(target_), " ", quoted(program), " > ", quoted(out)), log);
  const std::string bytes = read_whole(out);
  std::vector<std::vector<double>> outputs;
  size_t at = 0;
  for (const Kernel& kernel : kernels_) {
    const size_t guard = at + kernel.before.size(), end = guard + kGuardBytes;
    if (end > bytes.size()) return failed(kernel.what, ": ", ran ? "wrote no output" : ran.message());
    if (bytes.find_first_not_of(kGuard, guard) < end)
      return failed(kernel.what, ": writes behind its output");
    outputs.push_back(load_elements(bytes.data() + at, kernel.out->elements(), kernel.out->dtype));
    at = end;
  }
  RETURN_IF_ERROR(ran);
  return outputs;
}

}  // namespace tuner
