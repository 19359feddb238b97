// The batch script of a farm's workers under Slurm: one worker per task of a job array. Text only.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::slurm {

struct WorkerWish {
  std::string name = "workers";    // of the farm; its jobs are called tuner-NAME
  std::string fleet;               // whose credentials they are: ids begin with it
  std::string credentials;         // the file, under a path that all nodes know
  std::string program;             // measure_server, likewise
  std::string logs;                // folder that all nodes write to
  std::string work_root = "/tmp";  // of the node itself: holds work folders, one per user
  int cores = 0;                   // whole cores per worker; 0: the whole node
  std::string partition, constraint, gres, time, account, qos;  // as for sbatch; empty: not given
};

// The name of the jobs.
std::string job_name(const std::string& name);

// InvalidArgument names the option. Values become words of a script, so only plain characters pass.
Status check_wish(const WorkerWish& wish);
std::string worker_script(const WorkerWish& wish);

// Who a worker is: unique over restarts of its task.
std::string worker_id(const std::string& fleet, const std::string& array_job, const std::string& task,
                      int restarts);

}  // namespace tuner::slurm
