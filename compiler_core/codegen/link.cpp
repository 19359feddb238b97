// Linking in process with LLD, through memory files.
#include <mutex>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/codegen/machine.h"
#include "lld/Common/Driver.h"

LLD_HAS_DRIVER(elf)

namespace tuner::codegen {

Result<std::string> link_shared(const std::vector<std::string>& objects, const Target& target,
                                std::string_view soname, std::string_view exported,
                                const std::vector<std::string>& needed) {
  static std::mutex mutex;  // LLD keeps its state in globals
  const std::lock_guard lock(mutex);
  // In memory, where there is some.
  ASSIGN_OR_RETURN(const auto scratch, ScratchFolder::make("tuner-link", {"/dev/shm", "/tmp"}));
  std::vector<std::string> inputs;
  for (size_t i = 0; i < objects.size(); ++i) {
    inputs.push_back(scratch->file(str("kernel", i, ".o")));
    RETURN_IF_ERROR(replace_file(inputs.back(), objects[i]));
  }
  for (size_t i = 0; i < needed.size(); ++i) {
    inputs.push_back(scratch->file(str("needed", i, ".so")));
    RETURN_IF_ERROR(replace_file(inputs.back(), needed[i]));
  }
  const std::string out = scratch->file("kernel.so"), soname_option = str("--soname=", soname);
  const char* emulation = target.is_x86() ? "elf_x86_64" : "aarch64linux";
  // Nothing in the output may depend on where it was linked: no build id, no paths.
  std::vector<const char*> args = {"ld.lld",      "-m",          emulation, "--shared", "--hash-style=gnu",
                                   "-z",          "noexecstack", "-z",      "now",      "--build-id=none",
                                   "--strip-all", "--threads=1", "-o",      out.c_str()};
  if (!soname.empty()) args.push_back(soname_option.c_str());
  const std::string script = scratch->file("exports"), script_option = "--version-script=" + script;
  if (!exported.empty()) {
    RETURN_IF_ERROR(replace_file(script, str("{ global: ", exported, "; local: *; };\n")));
    args.push_back(script_option.c_str());
  }
  if (!needed.empty()) args.push_back("--rpath=$ORIGIN");
  for (const std::string& input : inputs) args.push_back(input.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  static bool broken = false;
  if (broken)
    return Status(StatusCode::kInternal,
                  "the linker failed earlier in this process and cannot run again; restart it");
  const lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  broken = !result.canRunAgain;
  if (messages.find("duplicate symbol") != std::string::npos)
    return invalid_argument("kernels that cannot be in one library: ", messages);
  if (result.retCode != 0) return Status(StatusCode::kInternal, str("linking a kernel failed: ", messages));
  return read_whole(out);
}

}  // namespace tuner::codegen
