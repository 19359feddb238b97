// What squeue and sinfo print, as values. Lines that do not fit are counted, not guessed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner::slurm {

struct Task {
  std::string job;    // by which scancel knows it
  std::string array;  // job of its array
  std::string task;   // number in the array
  std::string state;  // RUNNING, PENDING, COMPLETING ...
  std::string reason;
  std::string node;  // empty: it has none
  int restarts = 0;
  bool runs() const { return state == "RUNNING"; }
  bool waits() const { return state == "PENDING" || state == "REQUEUED" || state == "REQUEUE_HOLD"; }
  bool ends() const { return state == "COMPLETING" || state == "STAGE_OUT"; }
};

// Words behind squeue that make it print what tasks_from() reads.
const std::vector<std::string>& task_words();
std::vector<Task> tasks_from(std::string_view text, int& strange_lines);

struct Node {
  std::string name, state, reason;
  // Slurm does not hear of it, or gives it no work.
  bool is_lost() const;
  bool is_drained() const;
};
const std::vector<std::string>& node_words();  // behind sinfo
std::vector<Node> nodes_from(std::string_view text, int& strange_lines);

}  // namespace tuner::slurm
