#include "tuner/model/model_view.h"

#include <algorithm>

#include "compiler_core/graph/passes.h"
#include "tuner/model/model_file.h"

namespace tuner {

std::string pass_names() {
  std::string names;
  for (const graph::Pass& pass : graph::passes()) names += str(names.empty() ? "" : ", ", pass.name);
  return names;
}

Result<ModelText> model_text(const std::string& path, const ModelView& view) {
  constexpr std::string_view kAll = "all";
  if (view.as != "graph") return invalid_argument("--as ", view.as, ": not for a model; expected graph");
  ModelOptions options;
  ASSIGN_OR_RETURN(options.extents, model_extents(view.batch, view.dims));
  if (!view.after.empty() && view.after != kAll &&
      std::ranges::find(graph::passes(), view.after, &graph::Pass::name) == graph::passes().end())
    return invalid_argument("--after: no pass is called \"", view.after, "\"; expected all or one of ",
                            pass_names());
  ASSIGN_OR_RETURN(graph::Graph graph, read_model_file(path, options));
  if (view.after.empty()) return ModelText{to_text(graph), ""};
  const size_t before = graph.nodes.size();
  RETURN_IF_ERROR(optimize(graph, model_evaluator(), view.after == kAll ? std::string_view() : view.after));
  return ModelText{to_text(graph), str(graph.nodes.size(), " nodes, ", before, " before the passes")};
}

}  // namespace tuner
