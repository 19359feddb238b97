#include "tuner/farm/slurm_view.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler_core/base/status.h"
#include "tuner/farm/slurm_script.h"
#include "tuner/text/terminal.h"

namespace tuner::slurm {

namespace {

using Workers = std::map<std::string, const v1::WorkerSummary*>;

std::string work_of(const v1::WorkerSummary& worker) {
  if (worker.away())
    return str("does not answer the daemon for ", static_cast<int64_t>(worker.silent_s()), " s");
  if (!worker.unfit().empty()) return "takes nothing: " + worker.unfit();
  return str("measures, ", worker.trials_done(), " trials done, ", worker.leases(), " held");
}

std::string what_it_does(const View& view, const Task& task, const Workers& workers, const std::string& id) {
  const auto worker = workers.find(id);
  if (task.waits())
    return task.restarts > 0 ? str("waits to start again: ", task.reason) : "waits: " + task.reason;
  if (task.ends()) return "ends";
  if (!task.runs()) return task.state;
  if (!view.workers) return "runs";
  return worker != workers.end() ? work_of(*worker->second)
                                 : "runs; the daemon does not know it: see its log";
}

const Node* node_of(const View& view, const std::string& name) {
  const auto at = std::ranges::find(view.nodes, name, &Node::name);
  return at == view.nodes.end() ? nullptr : &*at;
}

std::string node_line(const Node& node) {
  const std::string why = node.reason.empty() || node.reason == "none" ? "" : ": " + node.reason;
  if (node.is_drained())
    return str("node ", node.name, " gets no work (", node.state, why,
               "). When it is well: scontrol update NodeName=", node.name, " State=RESUME");
  return str("node ", node.name, " is lost (", node.state, why, "). Its tasks start again elsewhere");
}

// A worker of this farm that no task of the queue is any more.
std::string outlived_line(const v1::WorkerSummary& worker) {
  return str("worker ", worker.worker_id(), " lives on (", worker.host(),
             ") though Slurm has given its task up. Its results count once. To end it: tuner admin drain ",
             worker.worker_id());
}

}  // namespace

std::string view_text(const View& view) {
  Workers workers;
  if (view.workers)
    for (const v1::WorkerSummary& w : view.workers->workers())
      if (w.worker_id().starts_with(view.fleet + ".s")) workers.emplace(w.worker_id(), &w);
  std::vector<std::string> lines;
  std::set<std::string> known;
  int64_t run = 0, wait = 0;
  for (const Task& task : view.tasks) {
    run += task.runs();
    wait += task.waits();
    const std::string id = worker_id(view.fleet, task.array, task.task, task.restarts);
    known.insert(id);
    std::string line =
        str(id, "  ", task.node.empty() ? "-" : task.node, "  ", what_it_does(view, task, workers, id),
            "  log ", view.logs, "/", task.array, "_", task.task, ".log");
    if (const Node* node = node_of(view, task.node); node != nullptr && node->is_lost() && task.runs())
      line += "  (its node is lost)";
    lines.push_back(std::move(line));
  }
  for (const Node& node : view.nodes)
    if (node.is_lost() || node.is_drained()) lines.push_back(node_line(node));
  int64_t outlived = 0;
  for (const auto& [id, worker] : workers)
    if (!known.contains(id) && !worker->away()) {
      ++outlived;
      lines.push_back(outlived_line(*worker));
    }
  std::string text;
  for (const std::string& line : lines) text += on_a_line(line) + "\n";
  text += str(view.tasks.size(), " tasks: ", run, " run, ", wait, " wait");
  if (outlived > 0) text += str("; ", outlived, " workers outlived theirs");
  return text + "\n";
}

}  // namespace tuner::slurm
