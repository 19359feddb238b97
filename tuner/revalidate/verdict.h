// One stale task measured again: its old top configs and the default as new trials of a job, checked and
// timed as always, then a race. All that is kept, resumed or lost with a worker is the daemon's business.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/client/daemon_client.h"
#include "tuner/client/progress_view.h"
#include "tuner/study/revalidate_plan.h"

namespace tuner {

// What became of one task.
struct RevalidateVerdict {
  std::string job_id;
  std::optional<TunedConfig> after;
  std::optional<double> old_config_now_ns;  // the old config under the present code; none: no right answer
  bool tied = false;                        // its race could not tell the old config from the winner
  bool finished = false;
  std::string error;
};

// Seconds before a deadline that cancelling and the last results' way into the database may take.
inline constexpr double kWindUp_s = 4;

// Runs the task's job, with its `top` fastest configs, until it ends, `deadline`, or `interrupted`. An error
// is the daemon's; a job that fails is a verdict.
Result<RevalidateVerdict> measure_again(const DaemonClient& client, const RevalidateItem& item, int top,
                                        std::chrono::steady_clock::time_point deadline,
                                        const std::function<bool()>& interrupted, ProgressView& view);

// Adds what the job's rows say of the old config: its time in the race, else its trial's.
Status look_up(const Store& store, const RevalidateItem& item, RevalidateVerdict& verdict);

// "kept": the old config has won again; "replaced"; "failed": nothing was right; "unfinished".
std::string_view ending(const RevalidateItem& item, const RevalidateVerdict& verdict);

}  // namespace tuner
