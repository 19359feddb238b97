// The C header of a model for GPUs: tuner_gpu_model.h's functions by the model's name, with the types of its
// inputs and outputs.
#pragma once

#include <span>
#include <string>

#include "tuner/model/placed_model.h"

namespace tuner {

// Valid C11 and C++. It has the functions of model_header(), where a context is a tuner_gpu_context, and
//   int32_t NAME_create_on(const char* weights_path, int32_t device, tuner_gpu_context** context)
//   int32_t NAME_run_on(tuner_gpu_context* context, void* stream, const float* input..., float* output...)
std::string gpu_header(std::span<const ModelToPack> variants, const PlacedModel& placed);

}  // namespace tuner
