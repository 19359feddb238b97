#include "deploy/onnxruntime/part_kernel.h"

#include <algorithm>
#include <exception>
#include <string>

#include "compiler_core/base/printable.h"

namespace tuner::ort {
namespace {

// The names of a node's operands, in order.
template <class Count, class Get>
Result<std::vector<std::string>> names_of(const Api& api, Count count, Get get, const OrtNode* node) {
  size_t number = 0;
  RETURN_IF_ERROR(api.ok(count(node, &number), "count operands"));
  std::vector<const OrtValueInfo*> infos(number);
  if (number > 0) RETURN_IF_ERROR(api.ok(get(node, infos.data(), number), "read operands"));
  std::vector<std::string> names;
  for (const OrtValueInfo* info : infos) {
    const char* name = "";
    if (info != nullptr) RETURN_IF_ERROR(api.ok(api.value_name(info, &name), "read a name"));
    names.emplace_back(name);
  }
  return names;
}

Result<std::vector<size_t>> places_of(const std::vector<size_t>& values, const NodeGraph& graph,
                                      const std::vector<std::string>& names) {
  std::vector<size_t> places;
  for (const size_t v : values) {
    const auto found = std::ranges::find(names, graph.values[v].name);
    if (found == names.end()) return failed("the fused node lacks \"", printable(graph.values[v].name), "\"");
    places.push_back(static_cast<size_t>(found - names.begin()));
  }
  return places;
}

}  // namespace

PartKernel::PartKernel(const Api& api, std::shared_ptr<PartLibrary> library)
    : OrtNodeComputeInfo{.version = kApiVersion,
                         .create_state = create,
                         .compute = run,
                         .release_state = release},
      api_(api),
      library_(std::move(library)) {}

Result<OrtNodeComputeInfo*> PartKernel::make(const Api& api, std::shared_ptr<PartLibrary> library,
                                             const NodeGraph& graph, const Part& part, const OrtNode* fused) {
  std::unique_ptr<PartKernel> made(new PartKernel(api, std::move(library)));
  ASSIGN_OR_RETURN(const auto inputs, names_of(api, api.count_node_inputs, api.node_inputs, fused));
  ASSIGN_OR_RETURN(const auto outputs, names_of(api, api.count_node_outputs, api.node_outputs, fused));
  ASSIGN_OR_RETURN(made->input_places_, places_of(part.inputs, graph, inputs));
  ASSIGN_OR_RETURN(made->output_places_, places_of(part.outputs, graph, outputs));
  if (outputs.size() != part.outputs.size())
    return failed("the fused node has ", outputs.size(), " outputs, its library ", part.outputs.size());
  for (const size_t v : part.outputs) made->output_shapes_.push_back(graph.values[v].shape);
  return made.release();
}

OrtStatus* PartKernel::create(OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) {
  *state = self;  // memory of runs is the library's
  return nullptr;
}

OrtStatus* PartKernel::run(OrtNodeComputeInfo* self, void*, OrtKernelContext* context) {
  const auto& kernel = *static_cast<const PartKernel*>(self);
  try {
    return kernel.api_.to_library(kernel.run_part(context));
  } catch (const std::exception& error) {
    return kernel.api_.to_library(failed("running a part: ", error.what()));
  }
}

Status PartKernel::run_part(OrtKernelContext* context) const {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (size_t k = 0; k < input_places_.size(); ++k) {
    ASSIGN_OR_RETURN(const void* data, input(context, k));
    inputs.push_back(data);
  }
  for (size_t k = 0; k < output_places_.size(); ++k) {
    ASSIGN_OR_RETURN(void* data, output(context, k));
    outputs.push_back(data);
  }
  return library_->run(inputs, outputs);
}

Result<const void*> PartKernel::input(const OrtKernelContext* context, size_t k) const {
  const OrtValue* value = nullptr;
  RETURN_IF_ERROR(api_.ok(api_.kernel_input(context, input_places_[k], &value), "take an input"));
  if (value == nullptr) return failed("input ", k, " of a part is missing");
  size_t bytes = 0;
  RETURN_IF_ERROR(api_.ok(api_.value_bytes(value, &bytes), "take an input"));
  const int64_t expected = library_->operands().inputs[k];
  if (static_cast<int64_t>(bytes) != expected)
    return invalid_argument("input ", k, " of a part has ", bytes, " bytes, expected ", expected);
  const void* data = nullptr;
  RETURN_IF_ERROR(api_.ok(api_.data(value, &data), "take an input"));
  return data;
}

Result<void*> PartKernel::output(OrtKernelContext* context, size_t k) const {
  const std::vector<int64_t>& shape = output_shapes_[k];
  OrtValue* value = nullptr;
  RETURN_IF_ERROR(api_.ok(api_.kernel_output(context, output_places_[k], shape.data(), shape.size(), &value),
                          "make an output"));
  if (value == nullptr) return failed("output ", k, " of a part is missing");
  void* data = nullptr;
  RETURN_IF_ERROR(api_.ok(api_.mutable_data(value, &data), "make an output"));
  return data;
}

}  // namespace tuner::ort
