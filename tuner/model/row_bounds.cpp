#include "tuner/model/row_bounds.h"

#include <algorithm>
#include <string_view>

#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/signature.h"
#include "tuner/model/onnx.pb.h"
#include "tuner/model/subgraph.h"
#include "tuner/model/tensor_data.h"
#include "tuner/text/hint.h"

namespace tuner {
namespace {

constexpr std::string_view kRows = "tuner.rows";

bool takes_bound(const onnx::NodeProto& proto) {
  const std::string op = op_of(proto);
  return proto.output_size() > 0 && graph::find_operator(op) != nullptr && graph::attribute_kind(op, kRows);
}

std::string place_of(const onnx::NodeProto& proto) { return str(proto.output(0), ":0"); }

}  // namespace

std::string RowBounds::take(const onnx::NodeProto& proto, graph::Node& node) const {
  if (!takes_bound(proto)) return "";
  const std::string place = place_of(proto);
  const auto given = named_.find(place);
  if (given == named_.end())
    return str("; or a bound, beyond which rows are -1: --dim ", shell_quoted(str(plain(place), "=N")));
  node.attributes[std::string(kRows)] = given->second;
  return "";
}

bool RowBounds::is_of(const onnx::GraphProto& graph, const std::string& place) {
  return std::ranges::any_of(graph.node(), [&](const onnx::NodeProto& node) {
    return (takes_bound(node) && place_of(node) == place) ||
           std::ranges::any_of(node.attribute(),
                               [&](const auto& a) { return a.has_g() && is_of(a.g(), place); });
  });
}

}  // namespace tuner
