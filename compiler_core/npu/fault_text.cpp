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
  if (!bad.outside) return str("reads ", cell_text(bad.space, bad.cell), ", which nothing has written");
  if (bad.space == Space::kDram)
    return str("touches DRAM at byte ", bad.cell, ", outside of its ", bad.cells, " bytes");
  return str("touches ", cell_text(bad.space, bad.cell), ", outside: there are ", bad.cells);
}

std::string conflict_text(const Code& code, const Conflict& conflict, Queue queue) {
  const Queue other = queue_of(code[conflict.earlier - 1].op);
  const std::string order = str("; no token orders ", name_of(queue), " behind ", name_of(other), " here");
  return str(conflict.is_write ? "overwrites " : "reads ", cell_text(conflict.space, conflict.cell),
             conflict.was_write ? ", which may still be written by " : ", which may still be read by ",
             numbered(code, conflict.earlier - 1), order);
}

std::string no_token_text(Queue from) {
  return str("waits for a token that ", name_of(from), " never gives; all queues stand still");
}

std::string unused_token_text(Queue to) {
  return str("a token that it or its queue gave ", name_of(to), " was never taken");
}

}  // namespace tuner::npu
