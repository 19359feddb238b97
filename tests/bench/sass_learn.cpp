// sass_learn: which opcodes a construct becomes. Needs NVRTC, no GPU.
//
//   sass_learn [sm_80|sm_90a]...
//
// Compiles each snippet of tests/compiler_core/sass_snippets.h with 4 and with 12 copies and prints the
// opcodes that grow with them, by their numbers and by what the table calls them: "?" is not in the table.
// Whoever adds an opcode adds a snippet first.
#include <algorithm>
#include <cstdio>
#include <map>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/sass/opcodes.h"
#include "tests/compiler_core/sass_snippets.h"

namespace tuner {
namespace {

std::map<int, int> opcode_counts(const sass::KernelCode& code) {
  std::map<int, int> counts;
  for (const sass::Instruction& i : code.instructions) ++counts[i.opcode()];
  return counts;
}

Status learn(const std::string& arch) {
  for (const testing::SassSnippet& snippet : testing::sass_snippets(arch)) {
    ASSIGN_OR_RETURN(const sass::KernelCode few, testing::compile_snippet(snippet, 4, arch));
    ASSIGN_OR_RETURN(const sass::KernelCode many, testing::compile_snippet(snippet, 12, arch));
    std::map<int, int> before = opcode_counts(few);
    std::printf("%-7s %-26s", arch.c_str(), snippet.name.c_str());
    for (const auto& [opcode, count] : opcode_counts(many)) {
      if (count <= before[opcode]) continue;
      const sass::Opcode* known = sass::find_opcode(opcode);
      std::printf(" %03x %s +%d", static_cast<unsigned>(opcode),
                  known == nullptr ? "?" : std::string(known->name).c_str(), count - before[opcode]);
    }
    std::printf("\n");
  }
  return Status::ok();
}

Status run(std::vector<std::string> archs) {
  RETURN_IF_ERROR(nvrtc_available());
  if (archs.empty()) archs = {"sm_80", "sm_90a"};
  for (const std::string& arch : archs) RETURN_IF_ERROR(learn(arch));
  return Status::ok();
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  const tuner::Status status = tuner::run({argv + 1, argv + argc});
  if (!status.is_ok()) std::fprintf(stderr, "sass_learn: %s\n", status.message().c_str());
  return status.is_ok() ? 0 : 1;
}
