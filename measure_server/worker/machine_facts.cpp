#include "measure_server/worker/machine_facts.h"

#include <algorithm>
#include <optional>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"

namespace tuner {
namespace {

void raise(const std::vector<double>& kept, std::vector<double>& fresh) {
  for (size_t i = 0; i < std::min(kept.size(), fresh.size()); ++i) fresh[i] = std::max(fresh[i], kept[i]);
}

struct Kept {
  ProbeReply facts;
  bool old = false;
};

std::optional<Kept> read_kept(const std::filesystem::path& file, const ProbeReply& now_here,
                              std::chrono::system_clock::time_point now) {
  const Result<std::string> text = read_whole(file);
  if (!text.is_ok()) return std::nullopt;
  Result<ProbeReply> facts = parse_probe_reply(*text);
  if (!facts.is_ok() || facts->hardware != now_here.hardware || facts->harness_abi != now_here.harness_abi ||
      facts->version != now_here.version || facts->peaks.float32.empty() || facts->bandwidths.levels.empty())
    return std::nullopt;
  std::error_code error;
  const auto written = std::filesystem::last_write_time(file, error);
  if (error) return std::nullopt;
  const auto age = now - std::chrono::file_clock::to_sys(written);
  return Kept{*std::move(facts), age > kFactsStayFor};
}

}  // namespace

void raise_to(const ProbeReply& kept, ProbeReply& fresh) {
  raise(kept.peaks.float32, fresh.peaks.float32);
  raise(kept.peaks.bfloat16, fresh.peaks.bfloat16);
  raise(kept.peaks.int8, fresh.peaks.int8);
  for (size_t i = 0; i < std::min(kept.bandwidths.levels.size(), fresh.bandwidths.levels.size()); ++i)
    raise(kept.bandwidths.levels[i].gbps, fresh.bandwidths.levels[i].gbps);
}

bool beats_peak(int64_t operations, std::span<const double> run_ns, double peak_gflops) {
  return peak_gflops > 0 && !run_ns.empty() &&
         static_cast<double>(operations) > peak_gflops * std::ranges::min(run_ns);
}

Result<ProbeReply> machine_facts_again(RunnerClient& runner, const std::filesystem::path& file,
                                       const ProbeReply& known) {
  ASSIGN_OR_RETURN(ProbeReply fresh, runner.probe({}));
  raise_to(known, fresh);
  if (make_folders(file.parent_path())) (void)replace_file(file, to_json(fresh));
  return fresh;
}

Result<ProbeReply> machine_facts(RunnerClient& runner, const std::filesystem::path& file,
                                 std::chrono::system_clock::time_point now) {
  ASSIGN_OR_RETURN(ProbeReply here, runner.probe({.max_threads = 0, .devices_only = true}));
  const std::optional<Kept> kept = read_kept(file, here, now);
  if (kept && !kept->old) {
    here.peaks = kept->facts.peaks;
    here.bandwidths = kept->facts.bandwidths;
    return here;
  }
  return machine_facts_again(runner, file, kept ? kept->facts : ProbeReply());
}

}  // namespace tuner
