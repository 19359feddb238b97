#include "tuner/model/state_pairs.h"

#include <algorithm>

#include "compiler_core/base/did_you_mean.h"
#include "compiler_core/base/printable.h"

namespace tuner {
namespace {

using graph::Graph;

struct Names {
  std::vector<std::string> inputs, outputs;
};
Names names_of(const Graph& graph) {
  Names names{.inputs = {}, .outputs = graph.output_names};
  for (const graph::ValueId v : graph.inputs) names.inputs.push_back(graph[v].name);
  return names;
}

// Names may hold "=" themselves: the place to cut is where both sides are known.
Result<StatePair> pair_of(const Names& names, const std::string& text) {
  const auto place = [](const std::vector<std::string>& all, const std::string& name) {
    return static_cast<size_t>(std::ranges::find(all, name) - all.begin());
  };
  for (size_t cut = text.find('='); cut != std::string::npos; cut = text.find('=', cut + 1)) {
    const StatePair pair{place(names.inputs, text.substr(0, cut)),
                         place(names.outputs, text.substr(cut + 1))};
    if (pair.input < names.inputs.size() && pair.output < names.outputs.size()) return pair;
  }
  const size_t cut = text.find('=');
  const auto context = str("--state ", printable(text), ": ");
  if (cut == std::string::npos) return invalid_argument(context, "expected INPUT=OUTPUT");
  const std::string input = text.substr(0, cut), output = text.substr(cut + 1);
  const bool knows_input = place(names.inputs, input) < names.inputs.size();
  const std::string& unknown = knows_input ? output : input;
  return invalid_argument(context, "the model has no ", knows_input ? "output" : "input", " \"",
                          printable(unknown), "\"",
                          did_you_mean(unknown, knows_input ? names.outputs : names.inputs));
}

}  // namespace

Result<std::vector<StatePair>> state_pairs(const Graph& graph, const std::vector<std::string>& given) {
  const Names names = names_of(graph);
  std::vector<StatePair> pairs;
  for (const std::string& text : given) {
    ASSIGN_OR_RETURN(const StatePair pair, pair_of(names, text));
    const auto context = str("--state ", printable(text), ": ");
    const graph::ValueId in = graph.inputs[pair.input], out = graph.outputs[pair.output];
    if (graph[in].type != graph[out].type)
      return invalid_argument(context, "the input is ", to_text(graph[in].type), ", the output ",
                              to_text(graph[out].type), "; expected one type");
    for (const StatePair& other : pairs)
      if (other.input == pair.input || other.output == pair.output)
        return invalid_argument(context, "the ", other.input == pair.input ? "input" : "output",
                                " is part of another state already");
    if (std::ranges::count(graph.inputs, out) > 0)
      return invalid_argument(context, "the output is an input as it is; there is nothing to keep");
    pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace tuner
