// Stands in for read_model.cpp where the build found no libonnx-dev.
#include "tuner/model/read_model.h"

namespace tuner {
namespace {

Status missing() {
  return failed(
      "this build cannot read ONNX models. Install libonnx-dev (deploy/install.sh --onnx) and build again");
}

}  // namespace

Result<graph::Graph> read_model(std::string_view /*bytes*/, const std::shared_ptr<const void>& /*owner*/,
                                const ModelOptions& /*options*/, const graph::Evaluator& /*evaluate*/) {
  return missing();
}

Result<graph::Value> read_tensor(std::string_view /*bytes*/) { return missing(); }

}  // namespace tuner
