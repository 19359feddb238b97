// A model as text: what `tuner show MODEL.onnx` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct ModelView {
  std::string as = "graph";
  std::string after;  // a pass, or "all"; empty: as it was read
  int64_t batch = 0;  // 0: not given
  std::vector<std::string> dims;

  bool is_default() const { return after.empty() && batch == 0 && dims.empty(); }
};

struct ModelText {
  std::string text;
  std::string note;  // one line for people, beside it; may be empty
};

// The names of all passes, for help and messages.
std::string pass_names();
// InvalidArgument: the file, an option, or an operator that is not served.
Result<ModelText> model_text(const std::string& path, const ModelView& view);

}  // namespace tuner
