#include "compiler_core/host_cuda/findings.h"

#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/foreign/confined_program.h"

namespace tuner {
namespace {

constexpr size_t kMostFindings = 16, kMostBytes = size_t{64} << 10;

std::optional<HostCudaFinding::Kind> kind_of(const std::string& word) {
  using Kind = HostCudaFinding::Kind;
  static const std::map<std::string, Kind> kKinds{
      {"race", Kind::kRace},   {"bounds", Kind::kBounds}, {"aligned", Kind::kAligned},
      {"stuck", Kind::kStuck}, {"warp", Kind::kWarp},     {"divergent", Kind::kDivergent},
      {"note", Kind::kNote},   {"shared", Kind::kShared}, {"unit", Kind::kUnit},
      {"input", Kind::kInput}};
  const auto found = kKinds.find(word);
  return found == kKinds.end() ? std::nullopt : std::optional(found->second);
}

// "kernel.cu:12", by binutils; "an unknown line" where the program does not say.
std::string line_at(const HostCudaProgram& program, const std::string& address) {
  const std::string unknown = "an unknown line", tool = "/usr/bin/addr2line";
  const size_t end = address.find_first_not_of("0123456789abcdef");
  const int64_t pc = end == std::string::npos && !address.empty() && address.size() < 16
                         ? std::stoll(address, nullptr, 16)
                         : 0;
  if (pc == 0 || !std::filesystem::exists(tool)) return unknown;
  char call[32];
  snprintf(call, sizeof call, "%llx",
           static_cast<unsigned long long>(pc - 1));  // a return address lies behind
  const Result<ConfinedEnd> said = run_confined({.path = tool,
                                                 .words = {tool, "-s", "-e", program.path, call},
                                                 .folder = program.folder->path(),
                                                 .deadline = std::chrono::milliseconds{10'000}});
  if (!said || said->status != 0) return unknown;
  std::string line = said->output.substr(0, said->output.find_first_of(" \n"));
  return line.empty() || line.starts_with('?') ? unknown : printable(line);
}

void replace_once(std::string& text, const std::string& what, const std::string& by) {
  if (const size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), by);
}

}  // namespace

std::string HostCudaRun::fault() const {
  for (const HostCudaFinding& f : findings)
    if (f.is_fault()) return f.text;
  return "";
}

Result<std::vector<HostCudaFinding>> read_findings(const HostCudaProgram& program) {
  std::vector<HostCudaFinding> findings;
  const Result<std::string> text = read_whole(program.folder->file("host_cuda_findings"), kMostBytes);
  if (!text && text.status().code() == StatusCode::kNotFound) return findings;
  if (!text) return text.status();
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line) && findings.size() < kMostFindings;) {
    std::istringstream parts(line);
    std::string kind, first, second, said;
    std::getline(parts, kind, '\t');
    std::getline(parts, first, '\t');
    std::getline(parts, second, '\t');
    std::getline(parts, said);
    const auto known = kind_of(kind);
    if (!known || said.empty()) continue;
    if (said.find("{1}") != std::string::npos) replace_once(said, "{1}", line_at(program, first));
    if (said.find("{2}") != std::string::npos) replace_once(said, "{2}", line_at(program, second));
    findings.push_back({*known, printable(said)});
  }
  return findings;
}

}  // namespace tuner
