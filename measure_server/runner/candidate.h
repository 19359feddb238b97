// The child's side: one candidate, loaded, run and timed in its own process. What it found travels through a
// page shared with the parent; what it computed lies in shared outputs, which the parent compares.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "measure_server/runner/guarded_memory.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

enum class Phase : uint32_t { kStarting, kLoading, kPacking, kFirstRun, kTiming, kLastRun, kDone };
const char* phase_name(Phase phase);

// Written by the child, read by the parent after the child has ended. Lies in a GuardedBuffer of its own.
struct CandidateReport {
  static constexpr uint32_t kMaxSamples = 1000;

  uint64_t finished;  // the plan's nonce, written last: anything else means it never came to the end
  Phase phase;        // where it is
  uint32_t samples, other_samples;
  // Samples beside which the core was not calm; in turns: 1, when the latest turn had one.
  uint32_t disturbed;
  uint32_t retaken;  // slices of samples that were taken anew for that
  double pulse_ns;   // one of the fastest of the latest pulses; 0: none
  uint32_t cut;
  int32_t kernel_status;  // what the kernel or its packing returned, when not 0
  uint32_t descriptors_closed;
  uint32_t damaged_operand;  // 1 + index into plan.args of a private operand whose slack was written; 0: none
  // Of a candidate that works in turns: how many it was given, how many are over; the next one is its last.
  uint32_t turns_given, turns_over, last_turn;
  double run_ns[kMaxSamples], cpu_ns[kMaxSamples];
  double pulses_ns[kMaxSamples];  // beside each; of a candidate that works in turns
  double other_ns[kMaxSamples];   // with constants the other way
  // What else the record is to say of the run: RunReply::facts.
  struct Fact {
    char name[40];
    double value;
  };
  static constexpr uint32_t kMaxFacts = 16;
  uint32_t facts;
  Fact fact[kMaxFacts];
  char load_error[512];   // cannot be loaded: why
  char setup_error[512];  // the runner's own trouble: why
};

struct CandidatePlan {
  const RunRequest* request = nullptr;
  const Manifest* manifest = nullptr;
  pid_t runner = 0;
  uint64_t nonce = 0;
  std::shared_ptr<SealedFile> shared_object;
  CandidateReport* report = nullptr;
  bool in_turns = false;  // works only when it is given a turn: CandidateRun::take_turn
  int samples_of_turn = 1, others_of_turn = 0;

  struct Operand {
    std::shared_ptr<SealedFile> data;      // input, constant
    const GuardedBuffer* first = nullptr;  // output of the first run
    const GuardedBuffer* last = nullptr;   // output of the timed runs and of the run after them
  };
  std::vector<Operand> args;  // as manifest->args; packed operands have nothing here: the child makes them
  std::vector<Operand> pack_args;  // as manifest->pack_args
};

// Turns, on a report that parent and child share. give_turn() wakes the child and returns the turn's number;
// turn_is_over() waits for its end, no longer than `limit`; wait_for_turn() returns in the child when it has
// one more than `over`.
uint32_t give_turn(CandidateReport& report);
bool turn_is_over(CandidateReport& report, uint32_t turn, std::chrono::milliseconds limit);
void wait_for_turn(CandidateReport& report, uint32_t over);
void end_turn(CandidateReport& report);

// The byte outputs are filled with before a run: NaN in every float type, and no likely answer in integers.
inline unsigned char poison_byte(DType t) { return is_float(t) ? 0xFF : 0xA7; }

// Never returns; the process ends with exit status 0 whatever was found.
[[noreturn]] void run_candidate(const CandidatePlan& plan);

}  // namespace tuner
