// DeviceHost: the runner's side of a GPU. It never touches the driver itself. A separate process, the device
// child, holds the context and stays warm between candidates, because a context takes 100-300 ms to create.
//
// The child is started by exec instead of fork: it does not inherit the runner's mappings and descriptors,
// and the runner stays a process that may fork CPU candidates. After a fault, a timeout, or a write outside
// the operands, the child is killed. The next candidate gets a fresh one, which checks the device before it
// reports ready. After three failed checks in a row the device is quarantined: requests are answered with an
// error, and a new check is tried after 1 s, 2 s, ... 60 s.
//
// That check also decides whose fault it was: if the device does not come back after a candidate, the device
// was lost, and nothing is said about the candidate. An error that is there before a candidate has launched
// anything was left by one before it, and the candidate runs once more in a fresh context.
//
// The first start may take first_device_start(), later ones a sixth of that, or twice as long as the longest.
//
// Used by one thread. Destroying it kills the child.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "measure_server/runner/device_child.h"
#include "measure_server/runner/frame.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

class DeviceHost {
 public:
  // `peer`: the socket on which a cancel may arrive while a candidate runs.
  explicit DeviceHost(int peer) : peer_(peer) {}
  ~DeviceHost();
  DeviceHost(const DeviceHost&) = delete;
  DeviceHost& operator=(const DeviceHost&) = delete;

  // Whether an artifact is for a GPU; all others run in a process of the host, by a KernelLoader.
  static bool takes(const Manifest& manifest) { return binary_kind::is_launched(manifest.kind); }

  // Runs one candidate. `peer_gone` is set when there is nobody left to answer.
  RunReply run(const RunRequest& request, bool& peer_gone);

  // For a race: ends the child, and starts a fresh one on this device, which checks it.
  Status renew(int device);
  // For a race, which renew() began: one order to the child that is there, answered within `limit_s`. Where
  // the child ended, child() is -1 afterwards.
  DeviceMessage ask(const DeviceOrder& order, uint64_t id, double limit_s, bool& peer_gone);

  // Fills reply.devices or reply.no_device. A separate process asks the driver and ends.
  static void list_devices(ProbeReply& reply);

  // The current child, or -1. Code that kills stray processes must spare it.
  pid_t child() const { return process_.pid; }

 private:
  // A child process and our end of its socket.
  struct Process {
    pid_t pid = -1;
    int pidfd = -1, socket = -1;
  };
  static Result<Process> spawn(const std::string& mode, const std::string& argument);
  // Kills and reaps the process; returns how it ended. Sets `gone` to false if the kernel does not release it
  // within 10 s (a hanging driver); it is then left behind.
  static std::string end(Process& process, bool& gone);

  Status ready(int device);
  Status start(int device);
  // Sends it to the child, which is ready, and waits for the answer.
  RunReply run_once(const RunRequest& request, bool& peer_gone);
  DeviceMessage watch(uint64_t id, double limit_s, bool& peer_gone);
  void end_child();

  int peer_;
  Process process_;
  int device_ = -1;  // the device of the child
  Phase phase_ = Phase::kStarting;
  bool ended_from_outside_ = false;  // the child, in the latest order
  int failed_checks_ = 0;            // in a row
  std::string last_failure_;
  std::chrono::steady_clock::time_point next_check_{};
};

}  // namespace tuner
