#include "tuner/model/node_order.h"

#include <queue>
#include <unordered_map>

#include "tuner/model/onnx.pb.h"
#include "tuner/model/tensor_data.h"

namespace tuner {
namespace {

std::string name_of(const onnx::GraphProto& graph, int n) {
  const onnx::NodeProto& node = graph.node(n);
  const std::string name = !node.name().empty()     ? node.name()
                           : node.output_size() > 0 ? node.output(0)
                                                    : str("#", n);
  return str("node ", plain(name), " (", plain(node.op_type()), ")");
}

}  // namespace

Result<std::vector<int>> node_order(const onnx::GraphProto& graph,
                                    const std::function<bool(const std::string&)>& is_known) {
  std::unordered_map<std::string, int> makers;
  for (int n = 0; n < graph.node_size(); ++n)
    for (const std::string& out : graph.node(n).output())
      if (!out.empty()) makers.emplace(out, n);
  const auto count = static_cast<size_t>(graph.node_size());
  std::vector<std::vector<int>> readers(count);
  std::vector<int> waits_for(count, 0);
  for (int n = 0; n < graph.node_size(); ++n)
    for (const std::string& in : graph.node(n).input()) {
      if (in.empty() || is_known(in)) continue;
      const auto maker = makers.find(in);
      if (maker == makers.end())
        return invalid_argument(name_of(graph, n), ": reads \"", plain(in), "\", which nothing computes");
      readers[static_cast<size_t>(maker->second)].push_back(n);
      ++waits_for[static_cast<size_t>(n)];
    }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int n = 0; n < graph.node_size(); ++n)
    if (waits_for[static_cast<size_t>(n)] == 0) ready.push(n);
  std::vector<int> order;
  while (!ready.empty()) {
    const int n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const int reader : readers[static_cast<size_t>(n)])
      if (--waits_for[static_cast<size_t>(reader)] == 0) ready.push(reader);
  }
  for (int n = 0; n < graph.node_size(); ++n)
    if (waits_for[static_cast<size_t>(n)] > 0)
      return invalid_argument(name_of(graph, n),
                              ": reads its own result, by other nodes; expected nodes without a cycle");
  return order;
}

}  // namespace tuner
