#include "deploy/onnxruntime/provider.h"

#include <algorithm>
#include <exception>

#include "compiler_core/base/printable.h"
#include "deploy/onnxruntime/part_kernel.h"

namespace tuner::ort {
namespace {

// Names of values are those of the whole graph, and no two parts make the same one.
std::string key_of(const NodeGraph& graph, const Part& part) {
  std::string key;
  for (const size_t v : part.outputs) key += graph.values[v].name + '\n';
  return key;
}

}  // namespace

Provider::Provider(const Api& api, ProviderOptions options, const OrtLogger* logger)
    : OrtEp{.version = kApiVersion,
            .name = name_of,
            .get_capability = choose,
            .compile = compile_parts,
            .release_infos = release_all,
            .others = {}},
      api_(api),
      strict_(options.strict),
      logger_(logger),
      // Compiling takes a while: people see why, without asking for more messages.
      store_(std::move(options), [this](const std::string& line) { say(kWarning, line); }) {}

const char* Provider::name_of(const OrtEp*) { return kProviderName; }

void Provider::say(Severity severity, const std::string& line) const {
  OrtStatus* const status =
      api_.log(logger_, severity, ("tuner: " + line).c_str(), __FILE__, __LINE__, __func__);
  if (status != nullptr) api_.release_status(status);
}

OrtStatus* Provider::choose(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  auto& provider = *static_cast<Provider*>(self);
  try {
    return provider.api_.to_library(provider.choose_parts(graph, info));
  } catch (const std::exception& error) {
    return provider.api_.to_library(failed("choosing nodes: ", error.what()));
  }
}

Status Provider::choose_parts(const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  const OrtNode* parent = nullptr;
  RETURN_IF_ERROR(api_.ok(api_.parent_node(graph, &parent), "read a graph"));
  if (parent != nullptr) return Status::ok();  // a branch or a body: it reads values of the graph around it
  ASSIGN_OR_RETURN(const NodeGraph nodes, read_graph(api_, graph));
  std::vector<bool> served(nodes.nodes.size());
  for (size_t n = 0; n < served.size(); ++n) {
    const Status yes = check_served(nodes, n);
    served[n] = yes.is_ok();
    if (!yes) say(kInfo, str(label_of(nodes.nodes[n]), " stays with ONNX Runtime: ", yes.message()));
  }
  size_t taken = 0, parts = 0;
  for (const Part& part : parts_of(nodes, served)) {
    if (!is_chosen(nodes, part)) continue;
    RETURN_IF_ERROR(fuse_part(nodes, part, info));
    taken += part.nodes.size();
    ++parts;
  }
  say(kInfo,
      str(taken, " of ", nodes.nodes.size(), " nodes run on libraries of tuner, in ", parts, " parts"));
  return Status::ok();
}

bool Provider::is_chosen(const NodeGraph& graph, const Part& part) {
  if (!is_worth_it(graph, part)) return false;
  const auto library = store_.find_or_compile(graph, part);
  if (library) {
    libraries_[key_of(graph, part)] = *library;
    return true;
  }
  const Status why = library.status().with_context(
      str("the part of ", part.nodes.size(), " nodes with ", label_of(graph.nodes[part.nodes[0]]), ": "));
  // The library only logs what fails here. What fails when it compiles the part ends the session's creation.
  if (strict_) {
    problems_[key_of(graph, part)] = why;
    return true;
  }
  say(kWarning, str(why.message(), "; ONNX Runtime runs it"));
  return false;
}

Status Provider::fuse_part(const NodeGraph& graph, const Part& part, OrtEpGraphSupportInfo* info) const {
  std::vector<size_t> in_order = part.nodes;  // of the graph
  std::ranges::sort(in_order);
  std::vector<const OrtNode*> handles;
  for (const size_t n : in_order) handles.push_back(graph.nodes[n].handle);
  const OrtNodeFusionOptions options{.version = kApiVersion, .drop_constants = true};
  return api_.ok(api_.fuse(info, handles.data(), handles.size(), &options), "fuse nodes");
}

OrtStatus* Provider::compile_parts(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                                   OrtNodeComputeInfo** infos, OrtNode**) {
  auto& provider = *static_cast<Provider*>(self);
  try {
    for (size_t k = 0; k < count; ++k) {
      const auto info = provider.computed(graphs[k], fused[k]);
      if (!info) return provider.api_.to_library(info.status());
      infos[k] = *info;
    }
    return nullptr;
  } catch (const std::exception& error) {
    return provider.api_.to_library(failed("opening libraries: ", error.what()));
  }
}

Result<OrtNodeComputeInfo*> Provider::computed(const OrtGraph* graph, const OrtNode* fused) {
  ASSIGN_OR_RETURN(const NodeGraph nodes, read_graph(api_, graph));
  std::vector<size_t> all(nodes.nodes.size());
  for (size_t n = 0; n < all.size(); ++n) all[n] = n;
  const Part part = part_of(nodes, all);
  const std::string key = key_of(nodes, part);
  if (const auto problem = problems_.find(key); problem != problems_.end()) return problem->second;
  std::shared_ptr<PartLibrary>& library = libraries_[key];
  if (library == nullptr) {  // the library has joined or parted what was asked for
    ASSIGN_OR_RETURN(library, store_.find_or_compile(nodes, part));
  }
  return PartKernel::make(api_, library, nodes, part, fused);
}

void Provider::release_all(OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
  for (size_t k = 0; k < count; ++k) delete static_cast<PartKernel*>(infos[k]);
}

}  // namespace tuner::ort
