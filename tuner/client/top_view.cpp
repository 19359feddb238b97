#include "tuner/client/top_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "compiler_core/base/status.h"
#include "proto/convert.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/text/format.h"
#include "tuner/text/terminal.h"

namespace tuner {
namespace {

constexpr int64_t kWindowMs = 10'000;
constexpr size_t kMostEnded = 20;

// "12 s", "3 min", "1.5 h": short, for a column.
std::string span(double seconds) {
  if (seconds < 10) return fixed(seconds, 1) + " s";
  if (seconds < 100) return fixed(seconds, 0) + " s";
  if (seconds < 6'000) return fixed(seconds / 60, 0) + " min";
  return fixed(seconds / 3600, 1) + " h";
}

std::string state_of(const v1::JobSummary& job) {
  const Result<JobState> state = from_proto(job.state(), "state");
  return state ? std::string(job_state_name(*state)) : "unknown";
}

bool has_ended(const v1::JobSummary& job) {
  return job.state() != v1::QUEUED && job.state() != v1::JOB_RUNNING;
}

std::string races_of(const v1::Progress& progress) {
  if (progress.races().empty()) return "";
  int running = 0;
  for (const v1::RaceProgress& race : progress.races()) running += race.course().most_processes() > 0 ? 1 : 0;
  return str(running, "+", progress.races_size() - running);
}

std::vector<std::string> row_of(const v1::JobSummary& job) {
  const v1::Progress& p = job.progress();
  const bool searching = job.state() == v1::JOB_RUNNING && p.trials_done() < p.trials_total();
  const std::string workload = job.tasks().empty() ? "" : without_controls(job.tasks(0).workload_key());
  return {without_controls(job.job_id()),
          state_of(job),
          job.has_progress() ? str(p.trials_done(), "/", p.trials_total()) : "-",
          searching && p.trials_per_second() > 0 ? fixed(p.trials_per_second(), 1) : "",
          p.best_ns() > 0 ? format_time(p.best_ns()) : "",
          searching && p.trials_per_second() > 0 ? span(p.eta_s()) : "",
          races_of(p),
          str(job.task_count() > 1 ? str(job.task_count(), " tasks, ") : "", workload)};
}

std::string note_of(const v1::WorkerSummary& worker) {
  if (!worker.unfit().empty()) return "takes nothing: " + without_controls(worker.unfit());
  if (worker.paused_s() > 0)
    return str(
        "paused for ", span(worker.paused_s()), ": ",
        worker.paused_why().empty() ? "it keeps failing to measure" : without_controls(worker.paused_why()));
  if (!worker.other_release().empty()) return without_controls(worker.other_release());
  if (worker.kind() == v1::BUILDER) return str("builder, ", worker.orders(), " orders");
  return worker.kind() == v1::RUNNER ? "runner" : "";
}

std::vector<std::string> row_of(const v1::WorkerSummary& worker) {
  return {without_controls(worker.worker_id()),
          without_controls(worker.host()),
          str(worker.leases()),
          str(worker.trials_done()),
          span(worker.silent_s()),
          note_of(worker)};
}

void add_table(const TextTable& table, int width, std::vector<ScreenLine>& out) {
  std::istringstream lines(table.text(width));
  bool heading = true;
  for (std::string line; std::getline(lines, line); heading = false)
    out.push_back({shortened(line, width), heading});
}

// Jobs that have not ended, then those that ended last.
std::vector<ScreenLine> body_of(const TopLook& look, int width) {
  std::vector<ScreenLine> out;
  std::vector<const v1::JobSummary*> open, ended;
  for (const v1::JobSummary& job : look.list.jobs()) (has_ended(job) ? ended : open).push_back(&job);
  const auto number = [](const v1::JobSummary* job) {
    return std::pair(job->job_id().size(), std::string_view(job->job_id()));
  };
  std::ranges::sort(open, {}, number);
  std::ranges::sort(ended, std::greater(), number);
  ended.resize(std::min(ended.size(), kMostEnded));
  open.insert(open.end(), ended.begin(), ended.end());
  if (open.empty()) {
    out.push_back({shortened("no jobs since the daemon began", width)});
  } else {
    TextTable jobs({{"JOB", 10, 0},
                    {"STATE", 9, 0},
                    {"TRIALS", 8, 0, true},
                    {"TRIALS/S", 5, 0, true},
                    {"BEST", 7, 0, true},
                    {"LEFT", 4, 0, true},
                    {"RACES", 3, 0, true},
                    {"WORKLOAD", 2, 10}});
    for (const v1::JobSummary* job : open) jobs.add(row_of(*job));
    add_table(jobs, width, out);
  }
  out.emplace_back();
  if (!look.list.daemon().tenants().empty()) {
    TextTable tenants({{"TENANT", 10, 8},
                       {"WEIGHT", 5, 0, true},
                       {"DEVICES", 8, 0, true},
                       {"LEASES", 6, 0, true},
                       {"QUEUED", 6, 0, true}});
    for (const v1::TenantSummary& t : look.list.daemon().tenants())
      tenants.add({t.tenant().empty() ? "(none)" : without_controls(t.tenant()), fixed(t.weight(), 1),
                   span(t.device_s()), str(t.leased()), str(t.queued())});
    add_table(tenants, width, out);
    out.emplace_back();
  }
  if (look.workers.workers().empty()) {
    out.push_back({shortened("no worker is connected. Start one: measure_server --daemon ADDRESS", width)});
    return out;
  }
  TextTable workers({{"WORKER", 10, 8},
                     {"HOST", 3, 6},
                     {"LEASES", 6, 0, true},
                     {"TRIALS", 5, 0, true},
                     {"HEARD", 7, 0, true},
                     {"NOTE", 8, 12}});
  for (const v1::WorkerSummary& worker : look.workers.workers()) workers.add(row_of(worker));
  add_table(workers, width, out);
  return out;
}

std::vector<ScreenLine> head_of(const TopLook& look, int width) {
  const v1::DaemonSummary& d = look.list.daemon();
  int unfit = 0, paused = 0;
  for (const v1::WorkerSummary& w : look.workers.workers()) {
    unfit += w.unfit().empty() ? 0 : 1;
    paused += w.unfit().empty() && w.paused_s() > 0 ? 1 : 0;
  }
  const int workers = look.workers.workers_size();
  std::vector<ScreenLine> out;
  out.push_back(
      {fitted({{"tuner top", 5}, {without_controls(look.daemon), 4}, {"up " + span(d.up_s()), 3}}, width),
       true});
  out.push_back({fitted({{fixed(look.trials_per_second, 1) + " trials/s", 9},
                         {str(d.queued(), " queued"), 8},
                         {d.queued() > 0 ? "oldest " + span(d.oldest_queued_s()) : "", 4},
                         {str(d.leased(), " leased"), 7},
                         {str(workers, workers == 1 ? " worker" : " workers"), 6},
                         {unfit > 0 ? str(unfit, " unfit") : "", 5},
                         {paused > 0 ? str(paused, " paused") : "", 5},
                         {str(d.results(), " results"), 3}},
                        width)});
  out.push_back({look.trouble.empty() ? "" : shortened(without_controls(look.trouble), width), true});
  return out;
}

}  // namespace

double TrialRate::look(const v1::ListReply& list, int64_t now_ms) {
  const int64_t results = list.daemon().results();
  if (!looks_.empty() && results < looks_.back().second) looks_.clear();  // another daemon is there now
  looks_.emplace_back(now_ms, results);
  while (looks_.size() > 2 && now_ms - looks_[1].first >= kWindowMs) looks_.pop_front();
  const auto [first_ms, first] = looks_.front();
  if (now_ms > first_ms)
    return static_cast<double>(results - first) * 1000 / static_cast<double>(now_ms - first_ms);
  double sum = 0;
  for (const v1::JobSummary& job : list.jobs())
    if (job.state() == v1::JOB_RUNNING && job.progress().trials_done() < job.progress().trials_total())
      sum += job.progress().trials_per_second();
  return sum;
}

std::vector<ScreenLine> top_frame(const TopLook& look, int width, int height, int& scroll) {
  std::vector<ScreenLine> lines = head_of(look, width);
  const std::vector<ScreenLine> body = body_of(look, width);
  const int rows = static_cast<int>(body.size());
  const int room = height == 0 ? rows : std::max(height - static_cast<int>(lines.size()) - 1, 1);
  scroll = std::clamp(scroll, 0, std::max(rows - room, 0));
  for (int i = scroll; i < std::min(rows, scroll + room); ++i) lines.push_back(body[static_cast<size_t>(i)]);
  if (height == 0) return lines;
  lines.resize(static_cast<size_t>(std::max(height - 1, 0)));
  const std::string place = rows > room ? str(scroll + 1, "-", scroll + room, " of ", rows) : "";
  lines.push_back({fitted({{"q quit", 3}, {rows > room ? "j k scroll" : "", 1}, {place, 2}}, width)});
  return lines;
}

}  // namespace tuner
