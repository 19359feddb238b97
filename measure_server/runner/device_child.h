// The device child: the process that holds a GPU's context. The runner starts it from its own executable
// (device_host.h) and asks it for one candidate after the other; a fault ends it.
//
// Frames of JSON (frame.h) on descriptor 3. It says first how it is: {"kind":"ready"}, or
// {"kind":"failed","error":...} and ends. To each RunRequest it answers with any number of
// {"kind":"phase","phase":N} and then one {"kind":"done","poisoned":BOOL,"reply":RunReply}; after a poisoned
// one it ends.
//
// It enters no seccomp jail: what runs in it is our code and the driver's, which needs devices, threads,
// sockets and sometimes a helper program; a candidate's code runs on the GPU and can make no system call. It
// dies with the runner, dumps no core, and is killed by the runner's watchdog.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "measure_server/runner/candidate.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// `runner --device-child N` on its socket. Exit status.
int device_child(int socket, int ordinal);
// `runner --device-list`: one frame, a ProbeReply with only its devices, and the end.
int device_list(int socket);

// What a device child says.
struct DeviceMessage {
  enum class Kind { kReady, kFailed, kPhase, kDone } kind = Kind::kFailed;
  std::string error;               // kFailed
  Phase phase = Phase::kStarting;  // kPhase
  bool poisoned = false;           // kDone
  RunReply reply;                  // kDone
};
std::string to_json(const DeviceMessage& message);
Result<DeviceMessage> parse_device_message(std::string_view json);

}  // namespace tuner
