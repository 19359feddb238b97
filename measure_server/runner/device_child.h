// The device child: the process that holds a GPU's context. The runner starts it from its own executable
// (device_host.h) and gives it one candidate after the other. A fault ends it.
//
// It speaks frames of JSON (frame.h) on descriptor 3. First it sends {"kind":"ready"}, or
// {"kind":"failed","error":...} and ends. It answers each DeviceOrder with any number of
// {"kind":"phase","phase":N} and then one {"kind":"done","poisoned":BOOL,"pulses_ns":[...],"reply":RunReply}.
// After a poisoned one it ends.
//
// It enters no seccomp jail: our code and the driver's run in it, and they need devices, threads, sockets and
// sometimes a helper program. A candidate's code runs on the GPU and can make no system call. The child dies
// with the runner, dumps no core, and is killed by the runner's watchdog.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure_server/runner/candidate.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// Runs `runner --device-child N` on its socket; returns the exit status.
int device_child(int socket, int ordinal);
// Runs `runner --device-list`: sends one frame, a ProbeReply with only its devices, and ends.
int device_list(int socket);

// What a device child is asked.
struct DeviceOrder {
  enum class Kind {
    kRun,     // one candidate, from loading it to its last run
    kTurn,    // candidate `racer` of a race has a turn; the first one brings it here
    kFinish,  // it has its last run and goes
    kCopy,    // the bench's sentinel, in RunReply::sentinel_before_ns
  } kind = Kind::kRun;
  size_t racer = 0;    // kTurn, kFinish
  int samples = 0;     // kTurn
  RunRequest request;  // kRun, and the first kTurn of a racer
};
std::string to_json(const DeviceOrder& order);
Result<DeviceOrder> parse_device_order(std::string_view json);

// A message from a device child.
struct DeviceMessage {
  enum class Kind { kReady, kFailed, kPhase, kDone } kind = Kind::kFailed;
  std::string error;               // kFailed
  Phase phase = Phase::kStarting;  // kPhase
  bool poisoned = false;           // kDone
  std::vector<double> pulses_ns;   // kDone, after a turn: beside each sample
  RunReply reply;                  // kDone
};
std::string to_json(const DeviceMessage& message);
Result<DeviceMessage> parse_device_message(std::string_view json);

}  // namespace tuner
