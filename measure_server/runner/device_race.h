// A heat of a race on a GPU. All finalists are in one device child, which is fresh: a new context, new
// addresses. There they take turns as those of CPUs do (heat.h), between copies on the device.
#pragma once

#include "measure_server/runner/device_host.h"

namespace tuner {

// A finalist whose fault or time limit ends the child has its verdict; the others begin the heat anew in a
// fresh child. One whose operands do not fit beside the others' leaves the race as out_of_memory. A finalist
// may work for its share of base.run_timeout_s at a time.
RaceReply run_device_race(DeviceHost& device, const RaceRequest& request, bool& go_on);

}  // namespace tuner
