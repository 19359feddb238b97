// The parent's side of one candidate: operands prepared, child forked, watched and judged. The child's side
// is candidate.h.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "measure_server/runner/candidate.h"
#include "measure_server/runner/frame.h"
#include "measure_server/runner/guarded_memory.h"
#include "measure_server/runner/reference_file.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

class CandidateRun {
 public:
  // `spared`: children of the runner that are not this candidate's, outlives this. `socket`: where a
  // cancellation arrives.
  CandidateRun(int socket, SealedFiles& files, RunRequest request, Artifact artifact,
               const std::vector<pid_t>& spared);
  ~CandidateRun();  // ends the child
  CandidateRun(const CandidateRun&) = delete;
  CandidateRun& operator=(const CandidateRun&) = delete;

  // All of it: run, time, judge.
  RunReply run();

  // The same in turns, for a race. begin() forks a child that waits; each take_turn() lets it work and waits
  // until it has: the first loads it, runs it once and finds out how many calls fill a sample, each later one
  // warms up and takes `samples` of the time that ranks and, where there are constants, `others` of the
  // other. finish() has it run once more, end, and judges. False: it ended or was ended, finish() says how.
  Status begin(int samples, int others);
  bool take_turn();
  bool turn_was_calm() const;  // of the latest: as its own pulses have it
  RunReply finish();
  // After finish(): samples with constants the other way; the pulses beside each of those that rank.
  const std::vector<double>& other_ns() const { return other_ns_; }
  const std::vector<double>& pulses_ns() const { return pulses_ns_; }
  pid_t child() const { return child_; }

  // Whether its operands are more than the core's own caches hold: then the memory sentinel counts.
  bool feels_memory() const;

  // The peer is gone: there is nobody to answer.
  bool peer_gone() const { return end_.kind == End::kPeerGone; }

 private:
  // How the child's life ended.
  struct End {
    enum Kind { kExited, kSignaled, kTimeout, kMemory, kCancelled, kPeerGone } kind = kExited;
    int value = 0;               // exit status or signal
    int64_t resident_bytes = 0;  // the largest seen
  };
  struct Output {
    const ArgInfo* arg;
    std::shared_ptr<SealedFile> reference_file;
    ReferenceView reference;
    GuardedBuffer first, last;
  };

  RunReply trouble(const std::string& why) const;
  void outcome(const char* name, const std::string& message);
  Status prepare();
  Status bind(const std::vector<ArgInfo>& args, std::vector<CandidatePlan::Operand>& operands, bool packing);
  Status fork_child();
  bool must_end();
  void watch();
  void reap();
  int64_t resident_bytes() const;
  bool stop_asked();
  void kill_orphans() const;
  void judge();
  bool samples_fit() const;
  void take_facts();
  void compare(const Output& out, const GuardedBuffer& buffer, const char* when);

  int socket_;
  SealedFiles& files_;
  const RunRequest r_;
  const std::vector<pid_t>& spared_;
  RunReply reply_;
  Artifact artifact_;
  GuardedBuffer report_;
  std::vector<Output> outputs_;
  CandidatePlan plan_;
  End end_;
  pid_t child_ = -1;
  int pidfd_ = -1, statm_ = -1;
  Deadline deadline_{};
  std::chrono::steady_clock::time_point begun_{};
  bool ended_ = false;  // by itself, or it must end
  std::vector<double> other_ns_, pulses_ns_;
  std::random_device random_device_;
  std::mt19937_64 random_{(uint64_t{random_device_()} << 32) | random_device_()};
};

// The sentinels' times on the first of these CPUs (empty: wherever we are), where the candidate runs.
double sentinel_on(const std::vector<int>& cpus);
double memory_sentinel_on(const std::vector<int>& cpus);
// The latest of these where that is not 20 ms old, else a new one.
double recent_memory_sentinel_on(const std::vector<int>& cpus);

}  // namespace tuner
