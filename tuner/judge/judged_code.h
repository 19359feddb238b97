// A judged kernel's code: compiled, and read before it runs.
#pragma once

#include <string>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner {

struct JudgedCode {
  std::string refused;  // why, in a phrase; empty: nothing is wrong with it
  Artifact artifact;    // what was read is what it was made from; not there if the text was refused
};

// InvalidConfig: the compiler refuses the kernel; the message has what it said. Else errors of this host:
// Unavailable where there is no such compiler.
Result<JudgedCode> compile_and_read(const Program& program, const Target& target);

}  // namespace tuner
