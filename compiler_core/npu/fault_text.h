// The lines of faults: the instruction by its number and text, what happened, what was expected.
#pragma once

#include <string>

#include "compiler_core/npu/ledger.h"

namespace tuner::npu {

// "#7 add source=4 ...: WHAT".
std::string fault_text(const Code& code, uint32_t index, const std::string& what);
std::string bad_cell_text(const BadCell& bad);
// Of two instructions in no order the one that stands later in the code lacks a token. `writes` and
// `other_writes` say what each does with the cell.
struct Unordered {
  uint32_t instruction = 0, other = 0;
  bool writes = false, other_writes = false;
};
Unordered unordered(const Conflict& conflict, uint32_t index);
std::string conflict_text(const Code& code, const Conflict& conflict, const Unordered& pair);
std::string no_token_text(Queue from);
std::string unused_token_text(Queue to);

}  // namespace tuner::npu
