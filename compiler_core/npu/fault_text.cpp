#include "compiler_core/npu/fault_text.h"

#include "compiler_core/base/status.h"
#include "compiler_core/npu/fields.h"
#include "compiler_core/npu/text.h"

namespace tuner::npu {
namespace {

std::string cell_text(Space space, uint64_t cell) {
  switch (space) {
    case Space::kScratchpad:
      return str("scratchpad word ", cell);
    case Space::kSums:
      return str("accumulator row ", cell);
    case Space::kDram:
      return str("DRAM burst ", cell);
  }
  return {};
}

std::string numbered(const Code& code, uint32_t index) { return str("#", index, " ", text_of(code[index])); }

}  // namespace

std::string fault_text(const Code& code, uint32_t index, const std::string& what) {
  return str(numbered(code, index), ": ", what);
}

std::string bad_cell_text(const BadCell& bad) {
  if (!bad.outside) return str("reads ", cell_text(bad.space, bad.cell), ", which nothing has written yet");
  if (bad.space == Space::kDram)
    return str("touches DRAM at byte ", bad.cell, ", outside of its ", bad.cells, " bytes");
  return str("touches ", cell_text(bad.space, bad.cell), ", outside: there are ", bad.cells);
}

Unordered unordered(const Conflict& conflict, uint32_t index) {
  const uint32_t other = conflict.earlier - 1;
  if (other > index) return {other, index, conflict.was_write, conflict.is_write};
  return {index, other, conflict.is_write, conflict.was_write};
}

std::string conflict_text(const Code& code, const Conflict& conflict, const Unordered& pair) {
  return str(pair.writes ? "overwrites " : "reads ", cell_text(conflict.space, conflict.cell),
             pair.other_writes ? ", which may still be written by " : ", which may still be read by ",
             numbered(code, pair.other), "; no token orders ", name_of(queue_of(code[pair.instruction].op)),
             " behind ", name_of(queue_of(code[pair.other].op)), " here");
}

std::string no_token_text(Queue from) {
  return str("waits for a token that ", name_of(from), " never gives; all queues stand still");
}

std::string unused_token_text(Queue to) {
  return str("a token that it or its queue gave ", name_of(to), " was never taken");
}

}  // namespace tuner::npu
