#include "tuner/daemon/tables/compiler_names.h"

#include <algorithm>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr std::string_view kCommand = "command:";

}  // namespace

std::vector<std::string> compiler_names(const std::string& compiler) {
  std::vector<std::string> names;
  for (size_t at = 0; at < compiler.size();) {
    const size_t end = std::min(compiler.find(',', at), compiler.size());
    names.push_back(compiler.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

bool are_commands(const std::string& compiler) { return compiler.starts_with(kCommand); }

std::string compiler_text(const std::string& compiler) {
  if (!are_commands(compiler)) {
    std::string names;
    for (const std::string& name : compiler_names(compiler)) names += (names.empty() ? "" : ", ") + name;
    return str(compiler.find(',') == std::string::npos ? "the compiler " : "the compilers ", names);
  }
  std::string programs;
  for (const std::string& name : compiler_names(compiler))
    if (const std::string program = name.substr(kCommand.size()); program != "./")
      programs += (programs.empty() ? " (" : ", ") + program;
  return str("permission to run users' programs", programs, programs.empty() ? "" : ")");
}

}  // namespace tuner
