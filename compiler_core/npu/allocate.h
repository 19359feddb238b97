// Places buffers in the scratchpad by their lifetimes.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/npu/instruction.h"
#include "compiler_core/npu/machine.h"

namespace tuner::npu {

// A range of words that instructions name as if the scratchpad had 2^20 of them. Ranges do not overlap.
struct ScratchpadBuffer {
  uint32_t begin = 0, words = 0;
};

struct Allocation {
  Code code;                    // with the words of the machine's scratchpad
  std::vector<uint32_t> begin;  // by buffer; of one that nobody touches 0
};

// Gives each buffer words of the machine's scratchpad. Two buffers share words only if all instructions
// that touch the one stand before all that touch the other. Of the free places a buffer takes the one whose
// banks are least used by what is touched at the same time; of those the lowest. Words that were in use
// until now are taken again soon: this keeps loads from running ahead into banks that the array reads.
// Spreading over banks can leave gaps that are too small: if a buffer finds no place, all are placed once
// more, each at the lowest free place.
//
// Requires   no tokens yet: place_tokens() comes afterwards, and orders the buffers that share words.
// Otherwise  InvalidConfig, naming the instruction at which buffers do not fit, or InvalidArgument, naming one that
//            touches words of no buffer, or of two by one address.
Result<Allocation> allocate_scratchpad(const Machine& machine, const Code& code,
                                       const std::vector<ScratchpadBuffer>& buffers);

}  // namespace tuner::npu
