// Packing entries: constants are put into the order that the program wants, by the host, once.
#pragma once

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/npu/kernel_file.h"

namespace tuner {

// Fills in KernelFile::packing and pack_bytes. InvalidConfig: more than copies is packed.
Status pack_constants(const Program& program, npu::KernelFile& kernel);

}  // namespace tuner
