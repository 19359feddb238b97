// The parent's side of one candidate: prepares operands, forks the child, watches it and judges its results.
// candidate.h is the child's side.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "measure_server/runner/candidate.h"
#include "measure_server/runner/guarded_memory.h"
#include "measure_server/runner/heat.h"
#include "measure_server/runner/patience.h"
#include "measure_server/runner/reference_file.h"
#include "measure_server/runner/runner_protocol.h"
#include "measure_server/runner/sampling.h"
#include "measure_server/runner/shared_buffers.h"

namespace tuner {

// Kills and reaps children of this process but these: what a candidate left behind comes to us
// (PR_SET_CHILD_SUBREAPER), where no filter of system calls keeps it from starting processes.
void kill_orphans(const std::vector<pid_t>& spared);

class CandidateRun final : public Contestant {
 public:
  // What candidates of one runner have in common; must outlive them.
  struct Host {
    int socket;  // where a cancellation arrives
    SealedFiles& files;
    SharedBuffers& buffers;
    Jail& jail;
  };
  // `spared`: the runner's children that belong to others and must not be killed; must outlive this.
  CandidateRun(const Host& host, RunRequest request, Artifact artifact, const std::vector<pid_t>& spared);
  ~CandidateRun() override;  // kills the child
  CandidateRun(const CandidateRun&) = delete;
  CandidateRun& operator=(const CandidateRun&) = delete;

  // Does everything: runs, times and judges the candidate.
  RunReply run();

  // True if its times contradict our own clocks, so that the verdict, `crashed`, should be taken from several
  // runs. Or it ended by a signal that somebody else may have sent. Valid after run().
  bool in_doubt() const { return in_doubt_ || from_outside_; }
  // The latter, after finish(): the heat says nothing.
  bool ended_from_outside() const { return from_outside_; }

  // The same in turns, for a race. begin() forks a child that waits. Each take_turn() lets the child work and
  // waits until it is done. The first turn loads the candidate, runs it once, and finds how many calls fill a
  // sample. Each later turn warms up and takes `samples` samples of the time that ranks and, if there are
  // constants, `others` with the other kind of constants; then its answer is checked. take_turn() returns
  // false if the child has ended or shall. finish() lets it run once more, ends it, judges, and tells how it
  // ended. `placement` says where its operands, its stack and its code lie.
  Status begin(int samples, int others, const Placement& placement);
  bool take_turn() override;
  bool turn_was_calm() const override;
  RunReply finish() override;
  const std::vector<double>& other_ns() const override { return other_ns_; }
  const std::vector<double>& pulses_ns() const override { return pulses_ns_; }
  pid_t child() const { return child_; }

  // True if the operands exceed the core's own caches, so that the memory sentinel matters.
  bool feels_memory() const;

  // True if the peer is gone, so that nobody waits for an answer.
  bool peer_gone() const override { return end_.kind == End::kPeerGone; }

  // From the kernel. (std::random_device would ask for glibc 2.36.)
  static uint64_t unforeseeable_seed();

 private:
  // Tells how the child's life ended.
  struct End {
    enum Kind { kExited, kSignaled, kTimeout, kMemory, kCancelled, kPeerGone } kind = kExited;
    int value = 0;      // exit status or signal
    int64_t bytes = 0;  // of memory, the most seen
  };
  struct Output {
    const ArgInfo* arg;
    // The answer to the inputs of the timed calls, then to those of each further set.
    struct Reference {
      std::shared_ptr<SealedFile> file;
      ReferenceView view;
    };
    std::vector<Reference> references;
    GuardedBuffer first, last;
    GuardedBuffer before;  // what an inout holds before a call; else empty
    void make_ready(const GuardedBuffer& buffer) const { tuner::make_ready(buffer, *arg, before.data()); }
  };

  RunReply trouble(const std::string& why) const;
  void end_with(Outcome outcome, const std::string& message);
  Status prepare();
  Status bind(const std::vector<ArgInfo>& args, std::vector<CandidatePlan::Operand>& operands, bool packing);
  // Where this buffer comes to lie.
  void* placed(int64_t bytes) { return plan_.placement.next(GuardedBuffer::mapped_bytes(bytes)); }
  Status bind_output(const ArgInfo& arg, CandidatePlan::Operand& operand);
  Result<std::shared_ptr<SealedFile>> data_of(const ArgInfo& arg) const;
  Result<Output::Reference> reference_of(const std::vector<RunRequest::Data>& files,
                                         const ArgInfo& arg) const;
  Status bind_others(const ArgInfo& arg, CandidatePlan::Operand& operand);
  Status fork_child();
  void conduct();
  bool turn(TurnCommand command);
  bool child_arrives();
  bool finish_turn();
  void poison() const;
  double child_cpu_ns() const;
  bool must_end();
  void watch();
  void reap();
  int64_t memory_bytes();
  std::chrono::nanoseconds waited_for_core() const;
  bool has_waited();
  bool stop_asked();
  void judge();
  bool judge_end(const std::string& when);
  bool samples_fit() const;
  void take_facts();
  std::string kernel_refusal(const std::string& when) const;
  std::string doubt() const;
  std::string clock_doubt() const;
  std::string memory_doubt() const;
  enum class Extent { kAll, kMuch, kLittle };
  bool check(Extent extent, size_t set, bool first, const char* when);

  Host host_;
  const RunRequest r_;
  const std::vector<pid_t>& spared_;
  RunReply reply_;
  Artifact artifact_;
  GuardedBuffer report_;
  std::vector<Output> outputs_;
  CandidatePlan plan_;
  End end_;
  pid_t child_ = -1;
  int pidfd_ = -1, statm_ = -1, status_ = -1, schedstat_ = -1;
  Patience patience_;
  std::chrono::nanoseconds forgiven_{};  // of what it waited for a core
  std::chrono::steady_clock::time_point begun_{};
  bool ended_ = false;  // the child ended, or must end
  bool over_ = false;   // it did what was asked of it, or said why not; what is left is to end it
  bool in_race_ = false, began_ = false, asked_to_finish_ = false, finished_ = false, may_pause_ = false,
       in_doubt_ = false, from_outside_ = false;
  int looks_ = 0;                             // at its memory
  size_t proved_with_ = 0;                    // the inputs of the call that it could not foresee
  std::chrono::milliseconds pause_after_{0};  // of the next turn's beginning; 0: no pause
  // By our own clocks: its turns and their time, its CPU time from its start and in the latest turn.
  int turns_ = 0;
  ClockPair clocks_at_begin_;
  double fork_cpu_ns_ = 0;  // of the child, before its first turn
  double seen_wall_ns_ = 0, seen_cpu_ns_ = 0, latest_cpu_ns_ = 0;
  std::vector<double> other_ns_, pulses_ns_;
  std::mt19937_64 random_{unforeseeable_seed()};
};

}  // namespace tuner
