#include "tuner/answers/tuned_list.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "compiler_core/backend.h"
#include "compiler_core/base/clock.h"
#include "db/resolve/default_time.h"
#include "tuner/study/present.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/terminal.h"
#include "tuner/text/time_words.h"

namespace tuner {

namespace {

using nlohmann::ordered_json;

struct Row {
  TunedConfig tuned;
  Staleness staleness;
  int64_t flops = 0, bytes = 0;
  double roofline_share = 0;
};

// As RFC 4180 wants it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

double gflops(const Row& row) {
  return row.tuned.time_ns > 0 ? static_cast<double>(row.flops) / row.tuned.time_ns : 0;
}

void print_jsonl(const Row& row) {
  ordered_json line = tuned_json(row.tuned, row.flops, row.bytes);
  line["stale"] = row.staleness.stale();
  if (row.staleness.stale()) line["stale_reason"] = row.staleness.reason;
  std::printf("%s\n", one_line(line).c_str());
}

void print_csv(const Row& row, bool first) {
  const TunedConfig& t = row.tuned;
  if (first)
    std::printf(
        "workload,target,time_ns,time_low_ns,time_high_ns,gflops,template,template_version,config,trial,"
        "trials,raced,"
        "hardware,toolchain,when,stale,constants\n");
  std::array<char, 128> times{};
  // Of one trial there is no interval that a fresh process would lie in.
  if (t.certified)
    std::snprintf(times.data(), times.size(), "%.17g,%.17g,%.17g,%.6g", t.time_ns, t.time_low_ns,
                  t.time_high_ns, gflops(row));
  else
    std::snprintf(times.data(), times.size(), "%.17g,,,%.6g", t.time_ns, gflops(row));
  std::printf("%s,%s,%s,%s,%d,%s,%s,%lld,%d,%s,%s,%s,%s,%s\n", csv_field(t.workload_key).c_str(),
              csv_field(t.target).c_str(), times.data(), csv_field(t.template_name).c_str(),
              t.template_version, csv_field(t.config).c_str(), t.trial_name.c_str(),
              static_cast<long long>(t.trials), t.race_id != 0 ? 1 : 0,
              csv_field(t.environment.hardware).c_str(), csv_field(t.environment.toolchain).c_str(),
              iso_utc(t.finished_at_us).c_str(), csv_field(row.staleness.reason).c_str(),
              std::string(constants_name(t.constants)).c_str());
}

// The least important columns make way on a narrow terminal; --json has everything.
TextTable table() {
  return TextTable({{.name = "time", .importance = 9, .right = true},
                    {.name = "gain", .importance = 8, .right = true},
                    {.name = "of roof", .importance = 4, .right = true},
                    {.name = "GFLOP/s", .importance = 3, .right = true},
                    {.name = "trials", .importance = 2, .right = true},
                    {.name = "when (UTC)", .importance = 1},
                    {.name = "template", .importance = 5, .least = 10},
                    {.name = "workload", .importance = 10, .least = 28},
                    {.name = "target", .importance = 6, .least = 12},
                    {.name = "", .importance = 7, .least = 13}});
}

std::vector<std::string> table_row(const Row& row) {
  const TunedConfig& t = row.tuned;
  const double gain = claimed_gain(t);
  std::array<char, 32> gained{}, share{}, speed{};
  std::snprintf(gained.data(), gained.size(), gain > 0 ? "%.2fx" : "-", gain);
  std::snprintf(share.data(), share.size(), row.roofline_share > 0 ? "%.0f %%" : "-",
                100 * row.roofline_share);
  std::snprintf(speed.data(), speed.size(), "%.1f", gflops(row));
  std::string state;
  const auto say = [&](const std::string& words) { state += (state.empty() ? "" : "; ") + words; };
  if (t.constants == Constants::kCold) say("cold constants");
  if (!t.certified) say("not certified");
  if (row.staleness.stale()) say("STALE: " + row.staleness.reason);
  return {format_time(t.time_ns),
          gained.data(),
          share.data(),
          speed.data(),
          std::to_string(t.trials),
          format_utc(t.finished_at_us).substr(0, 19),
          t.template_name,
          t.workload_key,
          t.target,
          state};
}

void print(const std::vector<Row>& rows, const std::string& format) {
  TextTable lines = table();
  for (const Row& row : rows) {
    if (format == "jsonl")
      print_jsonl(row);
    else if (format == "csv")
      print_csv(row, &row == &rows.front());
    else
      lines.add(table_row(row));
  }
  if (format == "table") std::printf("%s", lines.text(terminal_width(STDOUT_FILENO)).c_str());
}

Result<std::string> canonical_target(const std::string& text) {
  if (text.empty()) return std::string();
  Result<Target> target = resolve_target(text);
  if (!target) return target.status().with_context("--target: ");
  return target->name();
}

Result<int64_t> microseconds_since(const std::string& text) {
  if (text.empty()) return int64_t{0};
  if (const std::optional<int64_t> us = time_from_text(text)) return *us;
  return invalid_argument("--since: expected a day as 2026-11-01, or 2026-11-01T12:30 (UTC), found \"", text,
                          "\"");
}

}  // namespace

Status print_tuned(const Store& store, const TunedFilter& filter) {
  ASSIGN_OR_RETURN(const std::string target, canonical_target(filter.target));
  ASSIGN_OR_RETURN(const int64_t since_us, microseconds_since(filter.since));
  const std::string prefix = filter.op.empty() ? "" : str("v1 ", filter.op, " ");
  if (!filter.op.empty() && (", " + operator_names() + ",").find(", " + filter.op + ",") == std::string::npos)
    return invalid_argument("--op: found \"", filter.op, "\", expected one of ", operator_names());

  // A task may have been tuned for both kinds of times.
  ASSIGN_OR_RETURN(std::vector<JobRow::Task> tasks, store.tasks(Constants::kWarm));
  ASSIGN_OR_RETURN(const std::vector<JobRow::Task> cold, store.tasks(Constants::kCold));
  tasks.insert(tasks.end(), cold.begin(), cold.end());
  std::vector<Row> rows;
  for (const JobRow::Task& task : tasks) {
    if (!task.workload_key.starts_with(prefix) || (!target.empty() && task.target != target)) continue;
    Result<TunedConfig> best =
        store.best(task.workload_key, task.target, {}, /*counted=*/true, task.constants);
    if (!best && best.status().code() == StatusCode::kNotFound) continue;
    if (!best) return best.status();
    if (best->finished_at_us < since_us) continue;
    Row row{.tuned = *std::move(best)};
    row.staleness = staleness(row.tuned, present_here(task.target));
    if (filter.stale && !row.staleness.stale()) continue;
    const Result<Workload> workload = workload_from_key(task.workload_key);
    const Result<Target> on = parse_target(task.target);
    if (workload && on) {
      row.flops = workload->flops(), row.bytes = workload->bytes();
      row.roofline_share = row.tuned.read_gbps > 0 ? roofline_share(*workload, row.tuned) : 0;
      RETURN_IF_ERROR(add_default_time(store, *workload, *on, "", row.tuned));
    }
    rows.push_back(std::move(row));
  }
  print(rows, filter.format);
  if (!rows.empty()) return Status::ok();
  return not_found("no tuned task matches. tuner query --all prints every one");
}

}  // namespace tuner
