#include "compiler_core/foreign/compilers.h"

#include "compiler_core/foreign/commands.h"

namespace tuner {
namespace {

constexpr std::string_view kSource = "source:";
constexpr ProgramList kCompilers{.variable = "TUNER_COMPILERS", .usual = "cc,c++", .what = "compiler"};

}  // namespace

std::string toolchain_text(const Compiler& compiler) {
  // GCC says by which name it was called.
  std::string_view version = compiler.version;
  if (version.starts_with(compiler.name + " ")) version.remove_prefix(compiler.name.size() + 1);
  return str(kSource, compiler.name, " ", version);
}

std::string toolchain_now(std::string_view toolchain) {
  if (toolchain.starts_with(kCommandWord)) return commands_now(toolchain);
  if (!toolchain.starts_with(kSource)) return {};
  toolchain.remove_prefix(kSource.size());
  const Result<Compiler> compiler = find_compiler(toolchain.substr(0, toolchain.find(' ')));
  return compiler ? toolchain_text(*compiler) : std::string();
}

std::vector<std::string> listed_compilers() { return listed_names(kCompilers); }

Result<Compiler> find_compiler(std::string_view name) {
  ASSIGN_OR_RETURN(Compiler found, find_listed(kCompilers, name));
  RETURN_IF_ERROR(ask_version(found));
  return found;
}

}  // namespace tuner
