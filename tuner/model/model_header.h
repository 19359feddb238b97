// The C header of a compiled model: tuner_model.h's functions by the model's name, with the types of its
// inputs and outputs.
#pragma once

#include <string>

#include "tuner/model/placed_model.h"

namespace tuner {

// Valid C11 and C++. It has
//   int32_t NAME_create(const char* weights_path, const tuner_runtime* runtime, tuner_context** context)
//   int32_t NAME_share(const tuner_context* other, const tuner_runtime* runtime, tuner_context** context)
//   int32_t NAME_run(tuner_context* context, const float* input..., float* output...)
//   void NAME_destroy(tuner_context* context)
//   int32_t NAME_runs_here(void)
// and the size of each input and output in bytes.
std::string model_header(const ModelToPack& model, const PlacedModel& placed);

}  // namespace tuner
