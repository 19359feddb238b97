// What a user's source or program needs of a worker, by the names in Work::compiler: a compiler ("cc"), those
// of a kernel of a GPU and of its reference ("nvcc,cc"), or the programs that a job runs, with commas
// ("command:make,command:python3"; compiler_core/foreign/commands.h).
#pragma once

#include <string>
#include <vector>

namespace tuner {

std::vector<std::string> compiler_names(const std::string& compiler);
// True if they are programs, which who runs the job must allow, not only who builds it.
bool are_commands(const std::string& compiler);
// What a worker without it has not, for people: "the compiler clang", "the compilers nvcc, cc", "permission
// to run users' programs (make)".
std::string compiler_text(const std::string& compiler);

}  // namespace tuner
