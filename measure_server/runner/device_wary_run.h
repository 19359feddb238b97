// A wary run of a candidate on a device (RunRequest::wary): whoever keeps answers, or leaves work undone
// where nobody looks, is wrong in it or has times that cannot be true.
#pragma once

#include <functional>
#include <memory>

#include "measure_server/runner/device_run.h"

namespace tuner {

// Each timed call begins with empty caches and spoilt outputs, on inputs of which elements may have changed.
// Every second answer is compared. In the end the code is loaded anew, beside other addresses, and is asked
// for the other inputs.
std::unique_ptr<DeviceRun> wary_run_on_device(DeviceBench& bench, const RunRequest& request,
                                              const std::function<void(Phase)>& entered);

}  // namespace tuner
