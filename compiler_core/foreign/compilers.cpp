#include "compiler_core/foreign/compilers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "compiler_core/base/printable.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/foreign/confined_program.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSource = "source:";

struct Listed {
  std::string name, path;  // path: empty if it is to be looked for
};

std::vector<Listed> list() {
  const char* text = std::getenv("TUNER_COMPILERS");
  std::string_view rest = text == nullptr ? "cc,c++" : text;
  std::vector<Listed> all;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    const std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t equals = std::min(entry.find('='), entry.size());
    if (equals == 0) continue;
    all.push_back({std::string(entry.substr(0, equals)),
                   std::string(entry.substr(std::min(equals + 1, entry.size())))});
  }
  return all;
}

std::string path_of(const Listed& listed) {
  std::vector<std::string> places = {listed.path};
  if (listed.path.empty())
    places = {"/usr/local/bin/" + listed.name, "/usr/bin/" + listed.name, "/bin/" + listed.name};
  for (const std::string& place : places) {
    std::error_code error;
    const fs::path path = fs::canonical(place, error);
    if (!error && ::access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path)) return path;
  }
  return {};
}

Result<std::string> version_of(const std::string& path) {
  ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make("tuner-compiler"));
  const ConfinedProgram program{.path = path,
                                .words = {path, "--version"},
                                .folder = folder->path(),
                                .readable = {fs::path(path).parent_path()},
                                .deadline = std::chrono::seconds(20)};
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(program, can_confine().is_ok()));
  if (end.timed_out || end.status != 0)
    return failed(path, " --version did not end well: ", printable(end.output.substr(0, 200)));
  return printable(end.output.substr(0, std::min<size_t>(end.output.find('\n'), 200)));
}

}  // namespace

std::string toolchain_text(const Compiler& compiler) {
  // GCC says by which name it was called.
  std::string_view version = compiler.version;
  if (version.starts_with(compiler.name + " ")) version.remove_prefix(compiler.name.size() + 1);
  return str(kSource, compiler.name, " ", version);
}

std::string toolchain_now(std::string_view toolchain) {
  if (!toolchain.starts_with(kSource)) return {};
  toolchain.remove_prefix(kSource.size());
  const Result<Compiler> compiler = find_compiler(toolchain.substr(0, toolchain.find(' ')));
  return compiler ? toolchain_text(*compiler) : std::string();
}

std::vector<std::string> listed_compilers() {
  std::vector<std::string> names;
  for (const Listed& each : list()) names.push_back(each.name);
  return names;
}

Result<Compiler> find_compiler(std::string_view name) {
  const std::vector<Listed> all = list();
  const auto listed = std::ranges::find(all, name, &Listed::name);
  if (listed == all.end()) {
    std::string names;
    for (const Listed& each : all) names += (names.empty() ? "" : ", ") + each.name;
    return not_found("the compiler \"", printable(name), "\" is not on this host's list (", printable(names),
                     "); its operator can add it: TUNER_COMPILERS=cc,c++,NAME=/PATH");
  }
  Compiler found{.name = listed->name, .path = path_of(*listed)};
  if (found.path.empty())
    return not_found("the compiler \"", printable(name), "\" is not installed on this host",
                     name == "cc" || name == "c++" ? "; Debian: apt install g++" : "");
  struct stat info {};
  ::stat(found.path.c_str(), &info);
  static std::mutex mutex;
  static std::map<std::string, std::string> versions;
  const std::string key =
      str(found.path, "|", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, "|", info.st_size);
  const std::lock_guard lock(mutex);
  if (const auto known = versions.find(key); known != versions.end()) {
    found.version = known->second;
    return found;
  }
  ASSIGN_OR_RETURN(found.version, version_of(found.path));
  versions[key] = found.version;
  return found;
}

}  // namespace tuner
