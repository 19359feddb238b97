// Places tokens: from a straight list of instructions and what each touches, not from how they came about.
#pragma once

#include <cstdint>

#include "compiler_core/base/status.h"
#include "compiler_core/npu/instruction.h"
#include "compiler_core/npu/machine.h"

namespace tuner::npu {

// Returns the code with waits and gives that order every two instructions of different queues that touch
// one cell, one of them writing, as they stand in the code. Tokens that it has are dropped first.
//
// Ensures    no token is redundant: without any one of them two such instructions are in no order. No token orders
//            what need not be, so the queues run as far apart as the data allow.
// Otherwise  InvalidArgument, naming the first instruction that touches what is outside, or reads what none before
//            it has written.
Result<Code> place_tokens(const Machine& machine, Code code, uint64_t dram_bytes);

}  // namespace tuner::npu
