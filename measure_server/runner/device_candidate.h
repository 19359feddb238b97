// One GPU candidate, seen from the process that holds the device's context: loaded, run, timed, compared. The
// code here is ours; the candidate's own runs on the GPU only, so unlike a CPU candidate it cannot touch this
// process (which therefore maps no host memory into the device), only ruin its context.
#pragma once

#include <functional>
#include <string>

#include "compiler_core/runtime/cuda_objects.h"
#include "measure_server/runner/candidate.h"
#include "measure_server/runner/guarded_memory.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// What outlives a candidate: the context and what is used for every one.
class DeviceBench {
 public:
  // Opens the device and checks it: what is copied there and back is the same, and its clock runs.
  // Unavailable saying what is wrong.
  static Result<std::unique_ptr<DeviceBench>> open(int ordinal);

  const CudaDevice& device() const { return context_.device(); }
  const cuda::DeviceStream& stream() const { return stream_; }
  SealedFiles& files() { return files_; }

  // Nanoseconds of copying 16 MiB on the device, the best of three: a slow memory or a busy device shows.
  cuda::CallStatus sentinel(double& ns);
  // Queues writing a buffer twice as large as L2.
  cuda::CallStatus flush_l2();
  // Time on the device between two queued things: `begin` before, `end` after, then elapsed (which waits).
  cuda::CallStatus begin() { return begin_.record(stream_); }
  cuda::CallStatus end() { return end_.record(stream_); }
  cuda::CallStatus elapsed_ns(double& ns);

 private:
  explicit DeviceBench(cuda::DeviceContext context);
  cuda::CallStatus prepare();
  Status check();

  cuda::DeviceContext context_;  // first: everything below lives in it
  cuda::DeviceStream stream_;
  cuda::DeviceEvent begin_, end_;
  cuda::DeviceMemory from_, to_;  // of the sentinel
  cuda::DeviceMemory flush_;      // made when first needed
  SealedFiles files_;
};

// Runs the candidate; `entered` is told each phase. Sets `poisoned` when the context must not be used again:
// the caller ends the process.
RunReply run_on_device(DeviceBench& bench, const RunRequest& request,
                       const std::function<void(Phase)>& entered, bool& poisoned);

}  // namespace tuner
