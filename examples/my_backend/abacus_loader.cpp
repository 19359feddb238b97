// The runner's side of the device: a program of it as a function of the candidate's process.
#include <cstdio>
#include <memory>
#include <string>

#include "abacus_device.h"
#include "compiler_core/runtime/kernel_loader.h"

namespace {

using namespace tuner;

// A candidate's process has one kernel, and an entry has no argument that could say which: here it is.
abacus_program the_program;

int32_t run(void* const* args, const tuner_runtime* /*rt*/) {
  abacus_run(&the_program, args);
  return 0;
}

class Loader final : public KernelLoader {
 public:
  std::string_view kind() const override { return "abacus"; }

  Result<LoadedKernel> load(const std::string& path, const Manifest& manifest) const override {
    if (!manifest.pack_entry.empty()) return failed("an abacus program packs nothing");
    std::FILE* const file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return failed(path, ": cannot be read");
    std::string text;
    char part[4096];
    for (size_t n = 0; (n = std::fread(part, 1, sizeof part, file)) > 0;) text.append(part, n);
    std::fclose(file);
    if (const int64_t wrong = abacus_parse(text.c_str(), &the_program); wrong != 0)
      return failed("line ", wrong, " is not of an abacus program");
    if (static_cast<size_t>(the_program.args) != manifest.args.size())
      return failed("the program has ", the_program.args, " arguments, its manifest ", manifest.args.size());
    return LoadedKernel{.entry = run};
  }
};

const Loader loader;
const RegisterKernelLoader registered(loader);

}  // namespace
