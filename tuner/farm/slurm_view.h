// Slurm's tasks beside the daemon's workers: what each of them is, as lines for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/farm/slurm_queue.h"
#include "tuning.pb.h"

namespace tuner::slurm {

struct View {
  std::string fleet;
  std::string logs;  // their folder
  std::vector<Task> tasks;
  std::vector<Node> nodes;
  std::optional<v1::ListWorkersReply> workers;  // none: the daemon was not asked
};

// One line per task, per node that needs attention, and per worker that outlived its task; then a sum.
std::string view_text(const View& view);

}  // namespace tuner::slurm
