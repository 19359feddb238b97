// The back end of the NPU: scheduled Programs become its instructions, which run on the simulator.
#pragma once

#include "compiler_core/backend.h"

namespace tuner {

const Backend& npu_backend();

}  // namespace tuner
