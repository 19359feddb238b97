#include "tuner/model/node_order.h"

#include <queue>
#include <unordered_map>

#include "compiler_core/base/printable.h"

namespace tuner {

Result<std::vector<size_t>> node_order(const std::vector<NodeNames>& nodes,
                                       const std::function<bool(const std::string&)>& is_known) {
  std::unordered_map<std::string, size_t> makers;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const std::string& out : nodes[n].outputs)
      if (!out.empty()) makers.emplace(out, n);
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<int> waits_for(nodes.size(), 0);
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const std::string& in : nodes[n].inputs) {
      if (in.empty() || is_known(in)) continue;
      const auto maker = makers.find(in);
      if (maker == makers.end())
        return invalid_argument(nodes[n].label, ": reads \"", printable(in), "\", which nothing computes");
      readers[maker->second].push_back(n);
      ++waits_for[n];
    }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t n = 0; n < nodes.size(); ++n)
    if (waits_for[n] == 0) ready.push(n);
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const size_t reader : readers[n])
      if (--waits_for[reader] == 0) ready.push(reader);
  }
  for (size_t n = 0; n < nodes.size(); ++n)
    if (waits_for[n] > 0)
      return invalid_argument(nodes[n].label,
                              ": reads its own result, by other nodes; expected nodes without a cycle");
  return order;
}

}  // namespace tuner
