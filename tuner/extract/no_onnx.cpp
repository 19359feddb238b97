// read_onnx() where the build found no ONNX library.
#include "tuner/extract/model_graph.h"

namespace tuner {

bool onnx_is_built_in() { return false; }

Result<ModelGraph> read_onnx(std::string_view, const ModelExtents&) {
  return invalid_argument(
      "this program was built without an ONNX library. Install libonnx-dev (deploy/install.sh --onnx) and "
      "build again (deploy/run.sh; or configure and build with CMake)");
}

}  // namespace tuner
