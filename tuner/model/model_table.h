// The table of steps that a model's library holds: tuner_model.h's structs as an object.
#pragma once

#include <string>

#include "compiler_core/codegen/library.h"
#include "tuner/model/placed_model.h"

namespace tuner {

// "tuner_NAME_model".
std::string table_symbol(const std::string& model);
ConstantTable model_table(const ModelToPack& model, const PlacedModel& placed);

}  // namespace tuner
