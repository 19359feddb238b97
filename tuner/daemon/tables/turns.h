// Turns: which job is thought about next, when several threads think. A job is thought about by one thread at
// a time; one that is woken meanwhile gets another turn.
//
// Pure: no threads. The caller holds its own lock around every call.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace tuner {

class Turns {
 public:
  // The job needs a turn. Of no effect while it waits for one.
  void wake(const std::string& job_id);
  // The job that has waited longest, of those that nobody thinks about; nothing when none waits. It is the
  // caller's until end().
  std::optional<std::string> begin();
  void end(const std::string& job_id);
  bool some_wait() const { return !waiting_.empty(); }

 private:
  enum class State : uint8_t { kWaiting, kThinking, kWokenMeanwhile };
  std::map<std::string, State> states_;  // of jobs that wait or are thought about
  std::deque<std::string> waiting_;
};

}  // namespace tuner
