// A model's file as a graph: mapped, read, and what is known ahead computed here.
#pragma once

#include <string>

#include "compiler_core/graph/evaluator.h"
#include "tuner/model/read_model.h"

namespace tuner {

// Runs small Programs in the interpreter, which starts at once, and others as machine code.
graph::Evaluator model_evaluator();

// Reads the file; constants of the graph view it. options.folder becomes that of the file. Errors as
// read_model()'s, with the path before them; InvalidArgument also for a file that cannot be read.
Result<graph::Graph> read_model_file(const std::string& path, ModelOptions options);

}  // namespace tuner
