// A whole model in ONNX Runtime, with inputs and outputs in memory that stays.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "compiler_core/runtime/kernel.h"
#include "tests/bench/cpu/onnxruntime_api.h"

namespace tuner {

class OnnxSession {
 public:
  // `graph`: the model as it was read, for names and types; `api` must outlive the session.
  static Result<std::unique_ptr<OnnxSession>> open(const OnnxRuntimeApi& api, const std::string& model,
                                                   const graph::Graph& graph,
                                                   const OnnxRuntimeApi::SessionOptions& options);
  ~OnnxSession();
  OnnxSession(const OnnxSession&) = delete;
  OnnxSession& operator=(const OnnxSession&) = delete;

  void* input(size_t i) const { return inputs_[i].memory.data(); }
  const void* output(size_t i) const { return outputs_[i].memory.data(); }
  Status run();

 private:
  struct Tensor {
    std::string name;
    AlignedBuffer memory;
    OrtValue* value = nullptr;
  };
  explicit OnnxSession(const OnnxRuntimeApi& api) : api_(api) {}
  Status add(std::vector<Tensor>& to, const std::string& name, const graph::TensorType& type);

  const OnnxRuntimeApi& api_;
  OrtSession* session_ = nullptr;
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace tuner
