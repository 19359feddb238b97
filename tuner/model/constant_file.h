// Inputs that are the same in every run, as a person gives them: NAME=FILE.
#pragma once

#include <map>
#include <span>
#include <string>

#include "compiler_core/graph/graph.h"

namespace tuner {

// "NAME=FILE" each: .npy of NumPy, else an onnx.TensorProto, as ONNX's test data have it (.pb). The values
// have memory of their own. Whether a value fits its input is read_model()'s to say. InvalidArgument: another
// form, a name twice, a file that cannot be read or is neither.
Result<std::map<std::string, graph::Value>> model_constants(std::span<const std::string> texts);

}  // namespace tuner
