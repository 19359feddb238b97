// The lines of faults: the instruction by its number and text, what happened, what was expected.
#pragma once

#include <string>

#include "compiler_core/npu/ledger.h"

namespace tuner::npu {

// "#7 add source=4 ...: WHAT".
std::string fault_text(const Code& code, uint32_t index, const std::string& what);
std::string bad_cell_text(const BadCell& bad);
std::string conflict_text(const Code& code, const Conflict& conflict, Queue queue);
std::string no_token_text(Queue from);
std::string unused_token_text(Queue to);

}  // namespace tuner::npu
