#include "deploy/runtime/builder.h"

namespace tuner::runtime {

bool can_compile() { return false; }
std::string toolchain() { return {}; }
Result<Target> resolve(std::string_view text) {
  if (text == "cpu" || text.starts_with("cpu "))
    return invalid_argument(
        "target \"", text,
        "\": this library has no code generator, which knows the name of this CPU. Expected the "
        "name itself: \"llvm -mcpu=... -threads=1\", as `tuner query --json` prints it there");
  return parse_target(text);
}
Result<Artifact> build(const Program& program, const Target&) {
  return not_found(program.name, ": there is no compiled kernel, and this library has no code generator");
}

}  // namespace tuner::runtime
