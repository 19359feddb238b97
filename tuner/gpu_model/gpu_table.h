// The table that a GPU model's library holds: tuner_gpu_model.h's structs as an object.
#pragma once

#include <span>

#include "compiler_core/codegen/library.h"
#include "tuner/model/placed_model.h"

namespace tuner {

// `placed`: one per variant. InvalidArgument: a kernel has launches that the table cannot say (tensor maps,
// scalars), or a cubin that is for no architecture.
Result<ConstantTable> gpu_table(std::span<const ModelToPack> variants, std::span<const PlacedModel> placed);

// Bytes of a kernel's workspaces, each begun at a multiple of 256.
int64_t gpu_workspace_bytes(const Manifest& manifest);

}  // namespace tuner
