#include "compiler_core/foreign/listed_programs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <regex>
#include <sstream>

#include "compiler_core/base/printable.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/foreign/confined_program.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

struct Entry {
  std::string name, path;  // path: empty if it is to be looked for
};

std::vector<Entry> entries(const ProgramList& list) {
  const char* text = std::getenv(std::string(list.variable).c_str());
  std::string_view rest = text == nullptr ? list.usual : text;
  std::vector<Entry> all;
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

std::string path_of(const Entry& entry) {
  std::vector<std::string> places = {entry.path};
  if (entry.path.empty())
    places = {"/usr/local/bin/" + entry.name, "/usr/bin/" + entry.name, "/bin/" + entry.name};
  for (const std::string& place : places) {
    std::error_code error;
    const fs::path path = fs::canonical(place, error);
    if (!error && ::access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path)) return path;
  }
  return {};
}

// The first line with a number such as 12.2, which in some is below a name and a copyright; else the first.
std::string version_line(const std::string& text) {
  static const std::regex number(R"([0-9]\.[0-9])");
  std::istringstream lines(text);
  std::string first, line;
  std::getline(lines, first);
  for (line = first; lines; std::getline(lines, line))
    if (std::regex_search(line, number)) return line;
  return first;
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
  return printable(version_line(end.output).substr(0, 200));
}

}  // namespace

std::vector<std::string> listed_names(const ProgramList& list) {
  std::vector<std::string> names;
  for (const Entry& each : entries(list)) names.push_back(each.name);
  return names;
}

Result<ListedProgram> find_listed(const ProgramList& list, std::string_view name) {
  const std::vector<Entry> all = entries(list);
  const auto listed = std::ranges::find(all, name, &Entry::name);
  if (listed == all.end()) {
    std::string names;
    for (const Entry& each : all) names += (names.empty() ? "" : ", ") + each.name;
    return not_found("the ", list.what, " \"", printable(name), "\" is not on this host's list (",
                     names.empty() ? "which is empty" : printable(names),
                     "); its operator can add it: ", list.variable, "=", list.usual,
                     list.usual.empty() ? "" : ",", "NAME=/PATH");
  }
  ListedProgram found{.name = listed->name, .path = path_of(*listed)};
  if (found.path.empty())
    return not_found("the ", list.what, " \"", printable(name), "\" is not installed on this host",
                     name == "cc" || name == "c++" ? "; Debian: apt install g++" : "");
  return found;
}

Status ask_version(ListedProgram& program) {
  struct stat info {};
  ::stat(program.path.c_str(), &info);
  static std::mutex mutex;
  static std::map<std::string, std::string> versions;
  const std::string key =
      str(program.path, "|", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, "|", info.st_size);
  const std::lock_guard lock(mutex);
  if (const auto known = versions.find(key); known != versions.end()) {
    program.version = known->second;
    return Status::ok();
  }
  ASSIGN_OR_RETURN(program.version, version_of(program.path));
  versions[key] = program.version;
  return Status::ok();
}

}  // namespace tuner
