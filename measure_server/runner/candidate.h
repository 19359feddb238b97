// The child's side: one candidate, loaded, run and timed in its own process. Its findings travel through a
// page shared with the parent. Its results lie in shared outputs, which the parent compares.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "measure_server/runner/guarded_memory.h"
#include "measure_server/runner/jail.h"
#include "measure_server/runner/placement.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

enum class Phase : uint32_t { kStarting, kLoading, kPacking, kFirstRun, kTiming, kLastRun, kDone };
const char* phase_name(Phase phase);

// What the parent wants of a turn. The first one, whatever its command, also loads the candidate and runs
// it once, into the first outputs.
enum class TurnCommand : uint32_t {
  kSample,  // take samples, until all are there or a pause is wanted; in a race those of a turn
  // One call on inputs that the candidate has not seen, whose answer is copied into the first outputs; what
  // samples are left; one call more.
  kFinish,
};

// Shared by the child and its parent, in a GuardedBuffer of its own. The parent writes what a turn is
// about; all else is the child's, which may be lying: the parent checks what can be checked.
struct CandidateReport {
  static constexpr uint32_t kMaxSamples = 1000;

  // The parent's: what to do, with which inputs in kFinish (0: those of the timed calls), and whether to
  // pause before the next sample.
  TurnCommand command;
  uint32_t inputs, pause;

  uint32_t arrived;           // the child is there, before its first turn: nothing of the candidate has run
  double fork_cpu_ns;         // its CPU time then, by its own clock
  uint32_t asked_for_shared;  // memory that no limit counts: 1 if it asked for some (jail_filter.h)
  uint32_t stopped;           // the child found a reason not to go on; it is among those below
  uint32_t sampled;           // all samples are taken
  double turns_wall_ns;       // of all turns, by its own clock
  // Of all timed calls together, by its own clock and by the processor's counter; and in how many pieces.
  double timed_wall_ns;
  uint64_t timed_ticks, timed_pieces;
  // The pieces in which the counter says most more than the clock: the system may have stopped the child
  // between the readings of the two.
  struct Piece {
    double wall_ns;
    uint64_t ticks;
  };
  static constexpr uint32_t kOddPieces = 16;
  Piece odd_pieces[kOddPieces];
  double cpu_ns_of_all;  // of all threads from the beginning to the end of the latest turn, by its own clock
  double proof_ns;       // CPU time of the calling thread in the call on new inputs; 0: there was none
  uint32_t unwritten;    // 1 + index into plan.args of an output of which a timed call left a part unwritten
  // In a wary run: times of calls whose inputs had just changed, and of those whose inputs had not; 0: too
  // few calls. CPU time where one thread works, else wall clock. 1 + index into plan.args of an input that it
  // changed. 1: it left the floating-point mode changed.
  double changed_call_ns, same_call_ns;
  uint32_t changed_input, mode_changed;
  Phase phase;  // the phase that the child is in
  uint32_t samples, other_samples;
  // Samples taken while the core was not calm. In turns: 1 if the latest turn had such a sample.
  uint32_t disturbed;
  uint32_t slices, retaken;  // slices of samples; those that were repeated because of that
  double pulse_ns;           // one of the fastest of the latest pulses, at an even clock; 0: none
  uint32_t cut;
  int32_t kernel_status;  // what the kernel or its packing returned, if not 0
  uint32_t descriptors_closed;
  uint32_t damaged_operand;  // 1 + index into plan.args of a private operand with a damaged slack; 0: none
  uint32_t turns_given, turns_over;
  double run_ns[kMaxSamples], cpu_ns[kMaxSamples];
  double pulses_ns[kMaxSamples];  // turns only: the pulses beside each sample
  double other_ns[kMaxSamples];   // samples with the other kind of constants
  // Further numbers of the run for its record: RunReply::facts.
  struct Fact {
    char name[40];
    double value;
  };
  static constexpr uint32_t kMaxFacts = 16;
  uint32_t facts;
  Fact fact[kMaxFacts];
  char load_error[512];    // why the candidate cannot be loaded
  char device_fault[512];  // why the device of a kernel with a clock of its own stopped
  char setup_error[512];   // what went wrong in the runner itself
};

struct CandidatePlan {
  const RunRequest* request = nullptr;
  const Manifest* manifest = nullptr;
  pid_t runner = 0;
  Jail* jail = nullptr;
  uint64_t random = 0;  // seeds the child's choices
  std::shared_ptr<SealedFile> shared_object;
  CandidateReport* report = nullptr;
  bool in_race = false;  // a turn takes the number of samples below
  int samples_of_turn = 1, others_of_turn = 0;
  double fill_ms = 0;   // a sample of a turn is as many warm calls as last this long
  Placement placement;  // of a race; drawn from by the parent, then by the child

  struct Operand {
    std::shared_ptr<SealedFile> data;  // input, constant; of an inout what it holds before a call
    std::vector<std::shared_ptr<SealedFile>> others;  // the input's data in each further set
    const GuardedBuffer* first = nullptr;             // output of the first run
    const GuardedBuffer* last = nullptr;              // output of the timed runs and of the last run
  };
  std::vector<Operand> args;  // parallel to manifest->args; empty for packed operands, which the child makes
  std::vector<Operand> pack_args;  // parallel to manifest->pack_args
};

// Turns, through a report that parent and child share. give_turn() wakes the child and returns the turn's
// number. turn_is_over() waits at most `limit` for its end. wait_for_turn() returns in the child once more
// turns were given than `over`.
uint32_t give_turn(CandidateReport& report);
bool turn_is_over(CandidateReport& report, uint32_t turn, std::chrono::milliseconds limit);
void wait_for_turn(CandidateReport& report, uint32_t over);
void end_turn(CandidateReport& report);

// The byte that fills outputs before a run: NaN in every float type, and an unlikely answer in integers.
inline unsigned char poison_byte(DType t) { return is_float(t) ? 0xFF : 0xA7; }

// Makes an output ready for a call whose answer is checked: poisons it, or fills in `before`, what an inout
// holds.
void make_ready(const GuardedBuffer& output, const ArgInfo& arg, const void* before);

// Never returns: the parent ends the process.
[[noreturn]] void run_candidate(const CandidatePlan& plan);

}  // namespace tuner
