#include "tuner/judge/verdict_report.h"

#include <algorithm>
#include <cstdio>

#include "compiler_core/base/percent.h"
#include "compiler_core/base/printable.h"
#include "tuner/text/format.h"

namespace tuner {
namespace {

constexpr size_t kMostWords = 4096;  // of what a compiler says

std::string decimals(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

}  // namespace

std::vector<std::string> judgement_text(const KernelJudgement& j, const std::string& rival) {
  std::vector<std::string> lines;
  const std::string why = printable_lines(j.why.substr(0, kMostWords));
  lines.push_back(std::string(verdict_word(j.verdict)) + (why.empty() ? "" : ": " + why));
  if (j.verdict == KernelVerdict::kRight) {
    lines.push_back(str(decimals(j.ratio.value), " times the speed of ", printable(rival),
                        " (95 %: ", decimals(j.ratio.low), " .. ", decimals(j.ratio.high), ")"));
    lines.push_back(str(format_time(j.time_ns), " per call, the other ", format_time(j.rival_time_ns), "; ",
                        j.processes, " processes of each, answers compared on ", j.input_sets,
                        " sets of inputs"));
  }
  if (j.verdict == KernelVerdict::kRightNotTimed)
    lines.push_back(str("answers compared on ", j.input_sets, " sets of inputs, on this host's CPU"));
  if (!j.unread.empty()) lines.push_back("nobody read its code: " + printable(j.unread));
  if (!j.isolation.empty())
    lines.push_back("isolation " + j.isolation + ", seed " + std::to_string(j.seed));
  else if (j.input_sets > 0)
    lines.push_back("seed " + std::to_string(j.seed));
  return lines;
}

nlohmann::ordered_json judgement_json(const KernelJudgement& j, const std::string& rival) {
  nlohmann::ordered_json out = {{"verdict", verdict_word(j.verdict)}};
  if (!j.why.empty()) out["why"] = printable_lines(j.why.substr(0, kMostWords));
  if (!j.difference.index.empty())
    out["difference"] = {{"output", j.difference.output},
                         {"index", j.difference.index},
                         {"found", j.difference.found},
                         {"expected", j.difference.expected}};
  out["against"] = rival;
  const bool certified = j.verdict == KernelVerdict::kRight;
  if (certified) {
    out["ratio"] = j.ratio.value;
    out["ratio_low"] = j.ratio.low;
    out["ratio_high"] = j.ratio.high;
    out["time_ns"] = j.time_ns;
    out["against_time_ns"] = j.rival_time_ns;
  }
  if (j.processes > 0) {
    out["processes"] = j.processes;
    out["turns"] = j.turns;
    out["disturbed"] = j.disturbed;
  }
  if (!j.isolation.empty()) out["isolation"] = j.isolation;
  if (!j.unread.empty()) out["unread"] = printable(j.unread);
  if (j.input_sets > 0) out["input_sets"] = j.input_sets;
  out["seed"] = j.seed;
  return out;
}

}  // namespace tuner
