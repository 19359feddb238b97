// The table of steps that a model's library holds: tuner_model.h's structs as an object.
#pragma once

#include <string>

#include "compiler_core/codegen/library.h"
#include "compiler_core/runtime/model_library.h"
#include "tuner/model/placed_model.h"

namespace tuner {

ConstantTable model_table(const ModelToPack& model, const PlacedModel& placed);

}  // namespace tuner
