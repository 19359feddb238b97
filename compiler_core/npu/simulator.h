// Simulator: runs code of an NPU, values bit for bit and cycles by the rules of README.md.
//
// A program that real hardware would get wrong stops at a fault, which names the instruction, also where in
// these cycles nothing would have gone wrong: what must be ordered is ordered by tokens, not by luck. The
// same code and memory give the same result on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler_core/npu/instruction.h"
#include "compiler_core/npu/machine.h"

namespace tuner::npu {

enum class FaultKind : uint8_t {
  kOutside,         // an access outside a memory
  kNeverWritten,    // reads what nothing wrote
  kReadsTooEarly,   // reads what an instruction of another queue writes, in no order
  kOverwrites,      // writes what an instruction of another queue still reads or writes
  kUnsetRegisters,  // uses weights, scales or tables that nothing set
  kNoToken,         // waits for a token that nothing gives: the queues stand still
  kUnusedToken,     // gives a token that nothing takes
};

struct Fault {
  FaultKind kind = FaultKind::kOutside;
  uint32_t instruction = 0;  // its number in the code, from 0
  std::string message;       // one line: "#7 add source=4 ...: reads ..."
};

// When one instruction did what, in cycles; ends are behind the last cycle.
struct Span {
  uint32_t instruction = 0;
  Queue queue = Queue::kLoad;
  int64_t dispatch = 0, start = 0;
  int64_t first_step = 0, last_step = 0;  // equal where it has no steps
  int64_t end = 0;
};

struct QueueCounts {
  int64_t instructions = 0;
  int64_t steps = 0;        // cycles if there were no conflicts
  int64_t bank_stalls = 0;  // cycles of steps that had to wait for a bank
  int64_t bus_waits = 0;    // cycles of bursts that had to wait for DRAM's bus
  bool operator==(const QueueCounts&) const = default;
};

// What costs energy (energy.h).
struct AccessCounts {
  int64_t vector_values = 0;     // one per lane and step of the vector unit
  int64_t scratchpad_words = 0;  // read or written
  int64_t accumulator_rows = 0;  // read or written; of macc once per result
  int64_t dram_bytes = 0;        // of whole bursts
  bool operator==(const AccessCounts&) const = default;
};

struct Simulated {
  int64_t cycles = 0;
  int64_t macs = 0;  // of the array
  AccessCounts accesses;
  std::array<QueueCounts, kQueues> queues;
  std::optional<Fault> fault;  // then all of the above is what was before it

  // The share of what the array can do in these cycles.
  double utilization(const Machine& machine) const;
};

// What is left on the chip after a run.
struct ChipMemory {
  std::vector<int8_t> scratchpad;
  std::vector<int32_t> sums;
};

// Requires check() of the machine and of each instruction. `dram` is read and written. `timeline` gets the
// spans in the order of ends, `chip` the memories; null: not wanted.
Simulated simulate(const Machine& machine, const Code& code, std::span<uint8_t> dram,
                   std::vector<Span>* timeline = nullptr, ChipMemory* chip = nullptr);

}  // namespace tuner::npu
