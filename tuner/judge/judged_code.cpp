#include "tuner/judge/judged_code.h"

#include "compiler_core/backend.h"
#include "compiler_core/foreign/compile_foreign.h"
#include "compiler_core/ir/foreign_code.h"
#include "tuner/judge/code_check.h"
#include "tuner/judge/ptx_check.h"

namespace tuner {
namespace {

// A text for a host's compiler is read before it is assembled.
Result<JudgedCode> function_of_host(const Program& program, const Target& target) {
  const CodeRules rules{.cxx = program.foreign->cxx, .threads = target.threads, .entry = program.name};
  ASSIGN_OR_RETURN(const ForeignListing listing, list_foreign(program));
  if (std::string why = why_code_is_refused(listing.assembly, rules); !why.empty())
    return JudgedCode{.refused = std::move(why)};
  JudgedCode code;
  ASSIGN_OR_RETURN(code.artifact, assemble_foreign(listing, program, target.name(), target.threads));
  code.refused = why_symbols_are_refused(dynamic_symbols(code.artifact.binary), rules);
  return code;
}

Result<JudgedCode> kernel_of_device(const Program& program, const Target& target) {
  ASSIGN_OR_RETURN(ListedCode listed, backend_of(target).compile_listed(program, target));
  PtxRules rules{.kernel = listed.artifact.manifest.launches.front().kernel};
  for (const ForeignCode::Parameter& p : program.foreign->parameters)
    rules.is_buffer.push_back(p.operand >= 0);
  return JudgedCode{.refused = why_ptx_is_refused(listed.text, rules),
                    .artifact = std::move(listed.artifact)};
}

}  // namespace

Result<JudgedCode> compile_and_read(const Program& program, const Target& target) {
  if (program.foreign != nullptr)
    return program.foreign->launch ? kernel_of_device(program, target) : function_of_host(program, target);
  JudgedCode ours;
  ASSIGN_OR_RETURN(ours.artifact, backend_of(target).compile(program, target));
  return ours;
}

}  // namespace tuner
