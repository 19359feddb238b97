#include "compiler_core/foreign/ship_foreign.h"

#include <utility>

#include "compiler_core/artifact/instruction_sets.h"
#include "compiler_core/base/c_names.h"
#include "compiler_core/foreign/build_command.h"
#include "compiler_core/foreign/compile_foreign.h"
#include "compiler_core/foreign/source_build.h"
#include "compiler_core/ir/foreign_code.h"

namespace tuner {
namespace {

std::string prototype(const ForeignCode& code, const std::string& name) {
  std::string parameters;
  for (const ForeignCode::Parameter& p : code.parameters)
    parameters += str(parameters.empty() ? "" : ", ", p.type, " ", p.name);
  return str("void ", name, "(", parameters, ")");
}

// The user's text, in which a function of the name that is wanted for the wrapper gets another one.
std::string shipped_entry(const ForeignCode& code, const std::string& name) {
  const std::string inner = "tuner_inner_" + name;
  const bool same = code.function == name;
  std::string call = (same ? inner : code.function) + "(";
  for (size_t i = 0; i < code.parameters.size(); ++i) call += (i == 0 ? "" : ", ") + code.parameters[i].name;
  return str(same ? str("#define ", name, " ", inner, "\n") : "", "#include \"", code.source,
             "\"\n#include <stdint.h>\n#undef ", name, "\n", code.cxx ? "extern \"C\" " : "",
             "__attribute__((visibility(\"default\"))) ", prototype(code, name), " { ", call, "); }\n");
}

std::string shipped_header(const ForeignCode& code, const ShipRequest& request) {
  const std::string& name = request.function;
  const std::string guard = as_macro(name) + "_H_";
  std::string macros;
  for (const std::string& word : code.words) macros += " " + word;
  return str(
      "/* ", name, "(): ", request.about, "\n * Compiled by ", code.compiler, " with", macros,
      ".\n * Link with lib", name, ".so, or with lib", name,
      ".a and what its compiler needs to link such code", " (-fopenmp, -lm, -lstdc++).\n */\n#ifndef ", guard,
      "\n#define ", guard,
      "\n\n#include <stdbool.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
      prototype(code, name), ";\n\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n#endif\n");
}

// What the user's flags, such as -march=native, let the compiler use: it defines a macro for each.
Result<std::vector<std::string>> used_instruction_sets(const SourceBuild& build) {
  RETURN_IF_ERROR(build.compile({"-E", "-dM"}, "macros.i"));
  ASSIGN_OR_RETURN(const std::string macros, build.file("macros.i"));
  std::vector<std::string> used;
  for (const InstructionSet& set : kInstructionSets)
    if (macros.find(str("#define ", set.macro, " ")) != std::string::npos) used.emplace_back(set.name);
  return used;
}

}  // namespace

Result<ShippedKernel> ship_foreign(const Program& program, const Target& target, const ShipRequest& request) {
  const ForeignCode& code = *program.foreign;
  if (code.command != nullptr) {  // nothing of it can be linked
    ASSIGN_OR_RETURN(Artifact built, build_command(program, target.name(), target.threads));
    return ShippedKernel{.manifest = std::move(built.manifest)};
  }
  const std::string& name = request.function;
  ASSIGN_OR_RETURN(Artifact artifact, compile_foreign(program, target.name(), target.threads));
  ASSIGN_OR_RETURN(const SourceBuild build, SourceBuild::make(program, shipped_entry(code, name)));
  RETURN_IF_ERROR(build.compile({"-c"}, "kernel.o"));
  // Groups that other objects have, too, and names of helpers would meet those of another kernel in the same
  // program.
  RETURN_IF_ERROR(build.run("/usr/bin/ld", {"-r", "--force-group-allocation", "kernel.o", "-o", "whole.o"}));
  RETURN_IF_ERROR(build.run("/usr/bin/objcopy", {"--localize-hidden", "whole.o", name + ".o"}));
  const std::string shared = str("lib", name, ".so"), archive = str("lib", name, ".a");
  RETURN_IF_ERROR(build.link({name + ".o"}, shared, shared));
  RETURN_IF_ERROR(build.run("/usr/bin/ar", {"Drcs", archive, name + ".o"}));
  ShippedKernel shipped{.manifest = std::move(artifact.manifest)};
  ASSIGN_OR_RETURN(shipped.instruction_sets, used_instruction_sets(build));
  const std::pair<const char*, std::string> made[] = {{"library", "lib/" + shared},
                                                      {"static_library", "lib/" + archive},
                                                      {"object", str("obj/", name, ".o")}};
  for (const auto& [role, path] : made) {
    ASSIGN_OR_RETURN(std::string bytes, build.file(path.substr(path.find('/') + 1)));
    if (role == made[0].first) RETURN_IF_ERROR(check_needed_libraries(bytes));
    shipped.files.push_back({role, path, std::move(bytes)});
  }
  // The very code that was measured, which the runtime library loads by its entry of the kernels' ABI.
  shipped.files.push_back({"artifact", str("artifact/", name, ".so"), std::move(artifact.binary)});
  shipped.files.push_back({"header", str("include/", name, ".h"), shipped_header(code, request)});
  return shipped;
}

}  // namespace tuner
