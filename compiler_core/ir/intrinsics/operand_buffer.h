// The argument that stands for an operand in the Program an intrinsic means. Private to this folder.
#pragma once

#include "compiler_core/ir/intrinsic.h"

namespace tuner {

inline Buffer operand_buffer(const IntrinsicOperand& o) {
  return make_buffer(o.name, o.dtype, o.shape, MemoryScope::kGlobal,
                     o.access == IntrinsicOperand::Access::kRead ? BufferRole::kInput : BufferRole::kOutput);
}

}  // namespace tuner
