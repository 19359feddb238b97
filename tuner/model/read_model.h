// Reads ONNX models into graphs: names become numbers, types are inferred, and what follows from shapes is
// known (compiler_core/graph/builder.h). Only this folder knows the messages of the file (onnx.proto).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/graph.h"
#include "tuner/model/model_extents.h"

namespace tuner {

struct ModelOptions {
  ModelExtents extents;  // for what a model leaves open
  // Inputs that are the same in every run: they become constants, and what depends on them has a shape.
  std::map<std::string, graph::Value> constants;
  // Where external files of weights lie: the folder of the model. Empty: nowhere.
  std::string folder;
  // External files need not be there: zeros stand for them. For who only asks what a model computes.
  bool weights_may_miss = false;
};

// Reads the bytes of a .onnx file, which `owner` keeps alive: constants of the graph view them. `evaluate`
// computes what is known ahead. InvalidArgument, one line: not a model, damaged, an operator set that is not
// 7 to 23, an operator or a form of it that is not served (with the node), a type that is not, an extent
// still open (with the option that closes it), a value declared with another shape or type than it has, an
// attribute stored as another type than its operator's, external data missing, short or outside of `folder`.
Result<graph::Graph> read_model(std::string_view bytes, const std::shared_ptr<const void>& owner,
                                const ModelOptions& options, const graph::Evaluator& evaluate);

// Reads a TensorProto as ONNX's test data have it: a value without a producer. Errors as above.
Result<graph::Value> read_tensor(std::string_view bytes);

}  // namespace tuner
