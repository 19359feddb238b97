// The table of steps that a model's library holds: tuner_model.h's structs as an object.
#pragma once

#include <span>
#include <string>

#include "compiler_core/codegen/library.h"
#include "compiler_core/runtime/model_library.h"
#include "tuner/model/placed_model.h"

namespace tuner {

// One per CPU of the library, those with more instruction sets first. Of one: a tuner_model; of several: a
// tuner_model_cpus.
ConstantTable model_table(std::span<const ModelToPack> models, std::span<const PlacedModel> placed);

}  // namespace tuner
