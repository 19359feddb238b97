#include "tests/bench/model/onnx_session.h"

#include "tests/models/onnx_model.h"

namespace tuner {

Result<std::unique_ptr<OnnxSession>> OnnxSession::open(const OnnxRuntimeApi& api, const std::string& model,
                                                       const graph::Graph& graph,
                                                       const OnnxRuntimeApi::SessionOptions& options) {
  std::unique_ptr<OnnxSession> out(new OnnxSession(api));
  ASSIGN_OR_RETURN(out->session_, api.session(model, options));
  for (const graph::ValueId v : graph.inputs)
    RETURN_IF_ERROR(out->add(out->inputs_, graph[v].name, graph[v].type));
  for (size_t o = 0; o < graph.outputs.size(); ++o)
    RETURN_IF_ERROR(out->add(out->outputs_, graph.output_names[o], graph[graph.outputs[o]].type));
  return out;
}

OnnxSession::~OnnxSession() {
  for (const auto* tensors : {&inputs_, &outputs_})
    for (const Tensor& t : *tensors)
      if (t.value != nullptr) api_.release_value(t.value);
  if (session_ != nullptr) api_.release_session(session_);
}

Status OnnxSession::add(std::vector<Tensor>& to, const std::string& name, const graph::TensorType& type) {
  Tensor& t = to.emplace_back();
  t.name = name;
  t.memory = AlignedBuffer(type.bytes());
  return api_.ok(api_.create_tensor(api_.memory, t.memory.data(), static_cast<size_t>(type.bytes()),
                                    type.shape.data(), type.shape.size(), onnx_type(type.dtype), &t.value),
                 "tensor");
}

Status OnnxSession::run() {
  std::vector<const char*> input_names, output_names;
  std::vector<const OrtValue*> in;
  std::vector<OrtValue*> out;
  for (const Tensor& t : inputs_) {
    input_names.push_back(t.name.c_str());
    in.push_back(t.value);
  }
  for (const Tensor& t : outputs_) {
    output_names.push_back(t.name.c_str());
    out.push_back(t.value);
  }
  return api_.ok(api_.run(session_, nullptr, input_names.data(), in.data(), in.size(), output_names.data(),
                          out.size(), out.data()),
                 "run");
}

}  // namespace tuner
