// Runs the built programs as processes, with a scratch home, and kills them as roughly as a test wants.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/wait_until.h"

extern char** environ;

namespace tuner::testing {

inline std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Asks until it is so or the time is over.
inline bool eventually(std::chrono::seconds limit, const std::function<bool()>& so) {
  return wait_until(limit, so, std::chrono::milliseconds(20));
}

// One program, in its own process group; stdout and stderr go to files. Killed with its descendants when
// destroyed.
class Process {
 public:
  Process(const std::vector<std::string>& words, const std::string& log) : log_(log) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, (log + ".out").c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0644);
    posix_spawn_file_actions_addopen(&actions, 2, (log + ".err").c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0644);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::vector<std::string> copy = words;
    std::vector<char*> argv;
    argv.reserve(copy.size() + 1);
    for (std::string& word : copy) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int error = posix_spawn(&pid_, words[0].c_str(), &actions, &attributes, argv.data(), environ);
    EXPECT_EQ(error, 0) << words[0];
    if (error != 0) pid_ = 0;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  ~Process() { kill_tree(); }
  Process(const Process&) = delete;

  void signal(int number) const {
    if (pid_ > 0) kill(pid_, number);
  }
  // Exit code, 128 + signal, or nothing when it still runs at the limit.
  std::optional<int> wait(std::chrono::seconds limit) {
    int status = 0;
    if (pid_ <= 0) return exit_code_;
    if (!eventually(limit, [&] { return waitpid(pid_, &status, WNOHANG) != 0; })) return std::nullopt;
    pid_ = 0;
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return exit_code_;
  }
  // It and everything it started; empty when it has ended.
  std::vector<pid_t> tree() const {
    if (pid_ <= 0) return {};
    std::vector<pid_t> tree{pid_};
    for (size_t i = 0; i < tree.size(); ++i) add_children(tree[i], tree);
    return tree;
  }
  // SIGKILL to all of these at once.
  void kill_tree() {
    if (pid_ <= 0) return;
    for (const pid_t pid : tree()) kill(pid, SIGKILL);
    wait(std::chrono::seconds(10));
  }
  std::string out() const { return read_text(log_ + ".out"); }
  std::string err() const { return read_text(log_ + ".err"); }

 private:
  static void add_children(pid_t parent, std::vector<pid_t>& tree) {
    DIR* proc = opendir("/proc");
    if (proc == nullptr) return;
    while (const dirent* entry = readdir(proc)) {
      const pid_t pid = std::atoi(entry->d_name);
      if (pid <= 0) continue;
      const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
      const size_t end = stat.rfind(')');  // the name before it may hold anything
      char state = 0;
      int ppid = 0;
      if (end != std::string::npos && std::sscanf(stat.c_str() + end + 1, " %c %d", &state, &ppid) == 2 &&
          ppid == parent)
        tree.push_back(pid);
    }
    closedir(proc);
  }

  std::string log_;
  pid_t pid_ = 0;
  std::optional<int> exit_code_;
};

}  // namespace tuner::testing
