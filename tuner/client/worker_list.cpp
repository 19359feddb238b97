#include "tuner/client/worker_list.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/text/terminal.h"

namespace tuner {
namespace {

constexpr double kLeft_s = 600;  // the daemon itself forgets such a worker when the next one comes

// What it has and has done.
std::string work_of(const v1::WorkerSummary& w) {
  if (w.kind() == v1::BUILDER) return str("a builder, ", w.orders(), " orders, ", w.trials_done(), " built");
  return str(w.kind() == v1::RUNNER ? "a runner, " : "", w.leases(), " leases, ", w.trials_done(),
             " trials done");
}

std::string_view kind_of(const v1::WorkerSummary& w) {
  if (w.kind() == v1::BUILDER) return "builder";
  return w.kind() == v1::RUNNER ? "runner" : "full";
}

// Daemons of before say only how long it was silent.
bool is_away(const v1::WorkerSummary& w) { return w.away() || w.silent_s() > kLeft_s; }

std::string time_ago(double seconds) {
  if (seconds < 60) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s ago", seconds);
    return text;
  }
  const auto minutes = static_cast<int64_t>(seconds / 60);
  return minutes < 60 ? str(minutes, " min ago") : str(minutes / 60, " h ", minutes % 60, " min ago");
}

std::string lines_of(const v1::WorkerSummary& w, int width) {
  std::vector<std::string> lines{str(without_controls(w.worker_id()), " on ", without_controls(w.host()),
                                     ": ", is_away(w) ? "away, " : "here, ", work_of(w), ", last heard of ",
                                     time_ago(w.silent_s()))};
  if (is_away(w)) lines.emplace_back("  gets nothing until it is heard of again");
  if (!w.unfit().empty()) lines.push_back("  takes nothing now: " + without_controls(w.unfit()));
  if (w.paused_s() > 0)
    lines.push_back(str("  gets nothing for ", static_cast<int64_t>(w.paused_s()),
                        " s: ", without_controls(w.paused_why())));
  if (w.quarantined() > 0)
    lines.push_back(str("  sent ", w.quarantined(), " results that cannot be; tuner show TRIAL tells them"));
  if (!w.other_release().empty()) lines.push_back("  " + without_controls(w.other_release()));
  for (const std::string& target : w.targets()) lines.push_back("  " + without_controls(target));
  for (const std::string& family : w.compiles_for())
    lines.push_back(str("  compiles for ", without_controls(family)));
  std::string text;
  for (const std::string& line : lines) text += shortened(line, width) + "\n";
  return text;
}

}  // namespace

std::string workers_text(const v1::ListWorkersReply& workers, int width, bool all) {
  std::string text;
  int left = 0;
  for (const v1::WorkerSummary& w : workers.workers())
    if (all || w.silent_s() <= kLeft_s)
      text += lines_of(w, width);
    else
      ++left;
  if (text.empty()) text = "no worker is connected. Start one: measure_server --daemon ADDRESS\n";
  if (left > 0) text += str(left, " not heard of for more than 10 minutes: tuner workers --all\n");
  return text;
}

std::string workers_json(const v1::ListWorkersReply& workers) {
  nlohmann::json json = nlohmann::json::array();
  for (const v1::WorkerSummary& w : workers.workers())
    json.push_back(
        {{"worker", w.worker_id()},
         {"host", w.host()},
         {"kind", kind_of(w)},
         {"targets", std::vector<std::string>(w.targets().begin(), w.targets().end())},
         {"compiles_for", std::vector<std::string>(w.compiles_for().begin(), w.compiles_for().end())},
         {"leases", w.leases()},
         {"orders", w.orders()},
         {"trials_done", w.trials_done()},
         {"silent_s", w.silent_s()},
         {"away", is_away(w)},
         {"unfit", w.unfit()},
         {"paused_s", w.paused_s()},
         {"paused_why", w.paused_why()},
         {"quarantined", w.quarantined()},
         {"other_release", w.other_release()}});
  return json.dump(2) + "\n";
}

}  // namespace tuner
