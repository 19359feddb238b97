// The C header of a compiled model: tuner_model.h's functions by the model's name, with the types of its
// inputs and outputs.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/placed_model.h"

namespace tuner {

// Valid C11 and C++. It has
//   int32_t NAME_create(const char* weights_path, const tuner_runtime* runtime, tuner_context** context)
//   int32_t NAME_share(const tuner_context* other, const tuner_runtime* runtime, tuner_context** context)
//   int32_t NAME_run(tuner_context* context, const float* input..., float* output...)
//   void NAME_destroy(tuner_context* context)
//   int32_t NAME_runs_here(void)
// and the size of each input and output in bytes.
// `targets`: the CPUs that the library is for, for people.
std::string model_header(const ModelToPack& model, const PlacedModel& placed, const std::string& targets);

// What headers of models for other devices have in its place.
struct HeaderForm {
  std::string targets;       // that the model is for
  std::string_view runtime;  // header that it includes: "tuner_model.h"
  std::string_view rules;    // lines of the comment at its beginning
  void (*functions)(std::ostream& out, const std::string& name, const std::vector<ArgInfo>& tensors);
};
std::string model_header_as(const HeaderForm& form, const ModelToPack& model, const PlacedModel& placed);
// Parameters and names of a call with one argument per input and output: ", const float* x, float* y"; "x";
// "y".
struct HeaderArguments {
  std::string parameters, inputs, outputs;
};
HeaderArguments header_arguments(const std::vector<ArgInfo>& tensors);

}  // namespace tuner
