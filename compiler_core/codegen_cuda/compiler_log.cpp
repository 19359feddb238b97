// What ptxas prints with -v, a paragraph a kernel:
//
//   ptxas info    : Compiling entry function 'matmul' for 'sm_90a'
//   ptxas info    : Function properties for matmul
//   ptxas         .     760 bytes stack frame, 2448 bytes spill stores, 2404 bytes spill loads
//   ptxas info    : Used 255 registers, used 1 barriers, 760 bytes cumulative stack size
//
// and, before or behind it, of products of warpgroups that it could not keep under way, for one of a dozen
// reasons with a number each:
//
//   ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to
//                 ... in the function 'matmul'
#include <algorithm>
#include <charconv>

#include "compiler_core/codegen_cuda/cuda.h"

namespace tuner {
namespace {

// The number that stands right before `what`: 760 in "... 760 bytes stack frame"; 0 when there is none.
int number_before(std::string_view line, std::string_view what) {
  const size_t end = line.find(what);
  if (end == std::string_view::npos) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int number = 0;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

}  // namespace

std::vector<CompilerReport> parse_compiler_log(std::string_view log) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  std::vector<CompilerReport> reports;
  std::vector<std::string_view> losses;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line = log.substr(begin, end - begin);
    begin = end + 1;
    if (const size_t name = line.find(kEntry); name != std::string_view::npos) {
      const std::string_view rest = line.substr(name + kEntry.size());
      reports.push_back({.kernel = std::string(rest.substr(0, rest.find('\'')))});
    }
    if (line.find("(C75") != std::string_view::npos) losses.push_back(line);
    if (reports.empty()) continue;
    CompilerReport& report = reports.back();
    if (line.find(" bytes stack frame") != std::string_view::npos) {
      report.stack_bytes = number_before(line, " bytes stack frame");
      report.spill_store_bytes = number_before(line, " bytes spill stores");
      report.spill_load_bytes = number_before(line, " bytes spill loads");
    }
    if (line.find(" registers") != std::string_view::npos)
      report.registers = number_before(line, " registers");
  }
  for (CompilerReport& report : reports)
    for (const std::string_view line : losses) {
      if (line.find(str("in the function '", report.kernel, "'")) == std::string_view::npos) continue;
      const std::string_view text = line.substr(line.find("(C75") + 1);
      report.losses.push_back(
          str(text.substr(0, text.find(')')), text.substr(std::min(text.find(')') + 1, text.size()))));
      report.serialized |= line.find("wgmma.mma_async instructions are serialized") != std::string_view::npos;
    }
  return reports;
}

}  // namespace tuner
