// A model's file as a graph: mapped, read, and what is known ahead computed here.
#pragma once

#include <map>
#include <span>
#include <string>

#include "compiler_core/graph/evaluator.h"
#include "tuner/model/read_model.h"

namespace tuner {

// Runs small Programs in the interpreter, which starts at once, and others as machine code.
graph::Evaluator model_evaluator();

// Reads the file; constants of the graph view it. options.folder becomes that of the file. Errors as
// read_model()'s, with the path before them; InvalidArgument also for a file that cannot be read.
Result<graph::Graph> read_model_file(const std::string& path, ModelOptions options);

// "NAME=FILE" each: the file holds an onnx.TensorProto, as ONNX's test data do. InvalidArgument: another
// form, a name twice, a file that cannot be read or holds none.
Result<std::map<std::string, graph::Value>> model_constants(std::span<const std::string> texts);

}  // namespace tuner
