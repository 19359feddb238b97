// The back end of NVIDIA GPUs: NVRTC makes cubins, which the runner's device child launches.
#pragma once

#include "compiler_core/backend.h"

namespace tuner {

const Backend& cuda_backend();

}  // namespace tuner
