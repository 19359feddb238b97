// Processes as /proc tells them: who started whom, and their names.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace tuner {

// As the kernel keeps it, of 15 characters at most; empty: the process is gone.
inline std::string name_of_process(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(in, name);
  return name;
}

// The words it was started with, with a space between them.
inline std::string command_of_process(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline");
  std::string words;
  for (std::string word; std::getline(in, word, '\0');) words += (words.empty() ? "" : " ") + word;
  return words;
}

// True if this thread of ours waits in the kernel: for a lock, a condition or input.
inline bool is_asleep(pid_t thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(in, line);
  const size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.size() > name_end + 2 && line[name_end + 2] == 'S';
}

// Parents by process, of all that are not dead already.
inline std::map<pid_t, pid_t> parents_of_processes() {
  std::map<pid_t, pid_t> parents;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::ifstream in(entry.path() / "stat");
    std::string line;
    std::getline(in, line);
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || line.size() < name_end + 5 || line[name_end + 2] == 'Z') continue;
    parents[std::stoi(line)] = std::stoi(line.substr(name_end + 4));
  }
  return parents;
}

inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& [pid, of] : parents_of_processes())
    if (of == parent) children.push_back(pid);
  return children;
}

// Its children, their children, and so on.
inline std::vector<pid_t> descendants_of(pid_t ancestor) {
  const std::map<pid_t, pid_t> parents = parents_of_processes();
  std::vector<pid_t> found = {ancestor};
  for (size_t i = 0; i < found.size(); ++i)
    for (const auto& [pid, of] : parents)
      if (of == found[i]) found.push_back(pid);
  found.erase(found.begin());
  return found;
}

}  // namespace tuner
