// The compilers that may compile sources of users on this host: the list TUNER_COMPILERS of its operator
// (listed_programs.h). Without the variable it is cc,c++.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/foreign/listed_programs.h"

namespace tuner {

using Compiler = ListedProgram;

// The compiler of that name, with its version. NotFound: it is not listed, or not there; the message names
// those that are listed. Failed: it does not say its version.
Result<Compiler> find_compiler(std::string_view name);
// As records name it: "source:cc (Debian 12.2.0-14) 12.2.0".
std::string toolchain_text(const Compiler& compiler);
// What a record with this toolchain would name today; empty: it is of no compiler and of no command
// (commands.h) of the lists, or that is not there.
std::string toolchain_now(std::string_view toolchain);
// The names of the list, whether or not they are there.
std::vector<std::string> listed_compilers();

}  // namespace tuner
