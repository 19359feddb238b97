#include "tuner/farm/slurm_queue.h"

#include <algorithm>
#include <charconv>

namespace tuner::slurm {

namespace {

constexpr size_t kMostRows = 100'000;

std::vector<std::string_view> fields(std::string_view line) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = line.find('|');
    out.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return out;
    line.remove_prefix(end + 1);
  }
}

template <class F>
void for_each_line(std::string_view text, const F& f) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.empty()) f(line);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 12 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

const std::vector<std::string>& task_words() {
  static const std::vector<std::string> words{
      "--noheader", "--array", "--Format",
      "JobID:|,ArrayJobID:|,ArrayTaskID:|,State:|,NodeList:|,RestartCnt:|,Reason:|"};
  return words;
}

std::vector<Task> tasks_from(std::string_view text, int& strange_lines) {
  std::vector<Task> tasks;
  for_each_line(text, [&](std::string_view line) {
    const std::vector<std::string_view> f = fields(line);
    if (f.size() < 8 || !is_number(f[0]) || !is_number(f[1]) || !is_number(f[2]) || !is_number(f[5]) ||
        tasks.size() >= kMostRows) {
      ++strange_lines;
      return;
    }
    Task& t = tasks.emplace_back();
    t.job = f[0];
    t.array = f[1];
    t.task = f[2];
    t.state = f[3];
    t.node = f[4];
    std::from_chars(f[5].data(), f[5].data() + f[5].size(), t.restarts);
    t.reason = f[6];
  });
  return tasks;
}

const std::vector<std::string>& node_words() {
  static const std::vector<std::string> words{"--noheader", "--Node", "--format", "%N|%T|%E"};
  return words;
}

std::vector<Node> nodes_from(std::string_view text, int& strange_lines) {
  std::vector<Node> nodes;
  for_each_line(text, [&](std::string_view line) {
    const std::vector<std::string_view> f = fields(line);
    if (f.size() < 3 || f[0].empty() || nodes.size() >= kMostRows) {
      ++strange_lines;
      return;
    }
    // A node has a line for each of its partitions.
    if (std::ranges::any_of(nodes, [&](const Node& n) { return n.name == f[0]; })) return;
    nodes.push_back({std::string(f[0]), std::string(f[1]), std::string(f[2])});
  });
  return nodes;
}

bool Node::is_lost() const { return has(state, "down") || has(state, "fail") || state.ends_with('*'); }
bool Node::is_drained() const { return has(state, "drain"); }

}  // namespace tuner::slurm
