// A fused node of ONNX Runtime: hands its operands to the library of the part.
#pragma once

#include <memory>
#include <vector>

#include "deploy/onnxruntime/ort_api.h"
#include "deploy/onnxruntime/part_library.h"
#include "deploy/onnxruntime/parts.h"

namespace tuner::ort {

class PartKernel : public OrtNodeComputeInfo {
 public:
  // `fused`: the node, whose operands stand in an order of their own. Failed: they are not those of the part.
  static Result<OrtNodeComputeInfo*> make(const Api& api, std::shared_ptr<PartLibrary> library,
                                          const NodeGraph& graph, const Part& part, const OrtNode* fused);

 private:
  PartKernel(const Api& api, std::shared_ptr<PartLibrary> library);
  static OrtStatus* create(OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state);
  static OrtStatus* run(OrtNodeComputeInfo* self, void* state, OrtKernelContext* context);
  static void release(OrtNodeComputeInfo*, void*) {}

  Status run_part(OrtKernelContext* context) const;
  Result<const void*> input(const OrtKernelContext* context, size_t k) const;
  Result<void*> output(OrtKernelContext* context, size_t k) const;

  Api api_;
  std::shared_ptr<PartLibrary> library_;
  std::vector<size_t> input_places_, output_places_;  // of the library's operands, among those of the node
  std::vector<std::vector<int64_t>> output_shapes_;
};

}  // namespace tuner::ort
