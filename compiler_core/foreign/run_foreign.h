// Runs a user's function once, for its answer: as a program of its own that sees nothing but its operands.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

struct ForeignRun {
  std::chrono::milliseconds deadline{60'000};
  int threads = 1;  // what OpenMP's kernels take
};

// `given`: the bytes of the arguments of role input, constant and inout, in their order. Returns those of the
// outputs (output, inout), in their order; what the function does not write is 0xFF in each byte. Requires
// program.foreign. InvalidConfig: it does not compile, crashes, or does not end; the message says which, with
// what it printed. Errors of this host as run_confined().
Result<std::vector<std::string>> run_foreign(const Program& program, const std::vector<std::string>& given,
                                             const ForeignRun& run = {});

// The answer for an output, by its place among the Program's arguments, where somebody brings it; nothing:
// the function says it.
using BroughtAnswer = std::function<std::optional<Result<std::string>>(size_t argument)>;
// The right answer of each output, in their order: as it was brought, or as `run` gives it, which runs once, if at
// all.
using AnswerRun = std::function<Result<std::vector<std::string>>()>;
Result<std::vector<std::vector<double>>> answers_by(const Program& program, const BroughtAnswer& brought,
                                                    const AnswerRun& run);
// The same with run_foreign().
Result<std::vector<std::vector<double>>> foreign_answers(const Program& program,
                                                         const std::vector<std::string>& given,
                                                         const ForeignRun& run, const BroughtAnswer& brought);

}  // namespace tuner
