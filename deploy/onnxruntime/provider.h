// The provider of one session: takes the parts of the graph that our libraries run, and leaves the rest.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "deploy/onnxruntime/ort_api.h"
#include "deploy/onnxruntime/part_store.h"

namespace tuner::ort {

class Provider : public OrtEp {
 public:
  // `logger`: the session's, which outlives the provider.
  Provider(const Api& api, ProviderOptions options, const OrtLogger* logger);

 private:
  // What the library calls.
  static const char* name_of(const OrtEp* self);
  static OrtStatus* choose(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  static OrtStatus* compile_parts(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                                  OrtNodeComputeInfo** infos, OrtNode** context_nodes);
  static void release_all(OrtEp* self, OrtNodeComputeInfo** infos, size_t count);

  Status choose_parts(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  bool is_chosen(const NodeGraph& graph, const Part& part);
  Status fuse_part(const NodeGraph& graph, const Part& part, OrtEpGraphSupportInfo* info) const;
  Result<OrtNodeComputeInfo*> computed(const OrtGraph* graph, const OrtNode* fused);
  void say(Severity severity, const std::string& line) const;

  Api api_;
  bool strict_;
  const OrtLogger* logger_;
  PartStore store_;
  // By the names of what a part computes: its library, or, if that is strict, why there is none.
  std::map<std::string, std::shared_ptr<PartLibrary>> libraries_;
  std::map<std::string, Status> problems_;
};

}  // namespace tuner::ort
