// One GPU candidate, as the process that holds the device's context sees it: it loads, runs, times and
// compares it. Only our code runs in this process; the candidate's code runs on the GPU. Unlike a CPU
// candidate it cannot touch the process (which therefore maps no host memory into the device); it can only
// ruin the context.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/runtime/cuda_objects.h"
#include "measure_server/runner/candidate.h"
#include "measure_server/runner/device_checks.h"
#include "measure_server/runner/device_pulse.h"
#include "measure_server/runner/guarded_memory.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// What outlives a candidate: the context, and what every candidate uses.
class DeviceBench {
 public:
  // Opens the device and checks that a copy to it and back is unchanged and that its clock runs. Unavailable:
  // what is wrong.
  static Result<std::unique_ptr<DeviceBench>> open(int ordinal);

  const CudaDevice& device() const { return context_.device(); }
  const cuda::DeviceStream& stream() const { return stream_; }
  SealedFiles& files() { return files_; }
  // The checking kernels of this file, loaded once. `checks` null: the driver does not take them.
  cuda::CallStatus checks(const std::string& path, std::string_view cubin, DeviceChecks*& checks);

  // Takes the nanoseconds to copy 16 MiB on the device, best of three. Slow memory or a busy device shows.
  cuda::CallStatus sentinel(double& ns);
  // Takes the nanoseconds of a pulse (device_pulse.h); 0: there is none on this driver.
  cuda::CallStatus pulse(double& ns);
  // Waits until nothing of the whole context is left to do.
  cuda::CallStatus synchronize() const { return context_.synchronize(); }
  // Queues a write to a buffer twice the size of L2.
  cuda::CallStatus flush_l2();
  // Time the device between two queued points: begin(), the work, end(), then elapsed_ns(), which waits.
  cuda::CallStatus begin() { return begin_.record(stream_); }
  cuda::CallStatus end() { return end_.record(stream_); }
  cuda::CallStatus elapsed_ns(double& ns);

 private:
  explicit DeviceBench(cuda::DeviceContext context);
  cuda::CallStatus prepare();
  Status check();

  cuda::DeviceContext context_;  // first: everything below lives in this context
  cuda::DeviceStream stream_;
  cuda::DeviceEvent begin_, end_;
  cuda::DeviceMemory from_, to_;      // buffers of the sentinel
  cuda::DeviceMemory flush_;          // created at first need
  std::optional<DevicePulse> pulse_;  // likewise
  SealedFiles files_;
  std::map<std::string, DeviceChecks> checks_;  // by path
};

// A candidate that takes turns with others on one bench. Each call's reply has outcome kOk, or why it leaves.
class DeviceRacer {
 public:
  virtual ~DeviceRacer() = default;
  // The first one loads it, runs it once and finds how many calls fill a sample. Each later one warms up and
  // takes `samples` samples between pulses: the reply has these and RunReply::disturbed; `pulses_ns` the
  // pulses beside each, 0 if none was timed (RunRequest::patience_ms is 0).
  virtual RunReply take_turn(int samples, std::vector<double>& pulses_ns) = 0;
  // Runs it once more and checks its answer and its inputs.
  virtual RunReply finish() = 0;
  virtual bool poisoned() const = 0;  // the context must not be used again
};
std::unique_ptr<DeviceRacer> race_on_device(DeviceBench& bench, const RunRequest& request,
                                            const std::function<void(Phase)>& entered);

// Runs the candidate and reports each phase to `entered`. Sets `poisoned` if the context must not be used
// again: the caller then ends the process.
RunReply run_on_device(DeviceBench& bench, const RunRequest& request,
                       const std::function<void(Phase)>& entered, bool& poisoned);

}  // namespace tuner
