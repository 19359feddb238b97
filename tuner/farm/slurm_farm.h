// SlurmFarm: a daemon's workers under Slurm. Runs sbatch, squeue, sinfo and scancel of this host, each with a
// deadline. What a farm is lies in its folder: worker.sh, logs/, and `draining` (jobs that were told to end).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/farm/slurm_queue.h"
#include "tuner/farm/slurm_scale.h"
#include "tuner/farm/slurm_script.h"

namespace tuner::slurm {

class SlurmFarm {
 public:
  // `folder` is the farm's; its last part is the farm's name.
  // NotFound: no farm was brought up there.
  static Result<SlurmFarm> open(const std::string& folder);
  // Writes worker.sh and makes the folders. Aborted: workers of that name are in the queue already.
  static Result<SlurmFarm> create(const std::string& folder, WorkerWish wish);

  const std::string& folder() const { return folder_; }
  const std::string& name() const { return name_; }
  const std::string& fleet() const { return fleet_; }
  std::string logs() const { return folder_ + "/logs"; }

  // This user's tasks of the farm, and the nodes of the cluster. Failed: no Slurm here, or no answer.
  Result<std::vector<Task>> tasks() const;
  Result<std::vector<Node>> nodes() const;

  // What became of scale(): the plan it followed, and the job of the new array, if any.
  struct Scaled {
    ScalePlan plan;
    std::string array;
    std::string text() const;  // lines for people
  };
  Result<Scaled> scale(int wanted);
  // Ends all workers: those that run finish what they hold, unless `now`. Returns how many jobs there were.
  Result<int> down(bool now);
  // Tasks that are there to stay.
  int staying(const std::vector<Task>& tasks) const;

 private:
  SlurmFarm(std::string folder, std::string fleet);
  Status note_draining(const std::vector<std::string>& jobs);
  Status forget_drained(const std::vector<Task>& tasks);

  std::string folder_, name_, fleet_;
  std::set<std::string> draining_;
};

// Where the farm of that name keeps its files unless told otherwise: $XDG_STATE_HOME/tuner/slurm/NAME.
std::string default_folder(const std::string& name);

}  // namespace tuner::slurm
