// NVML (libnvidia-ml), where it is there: the state a GPU was in while something was timed. Loaded when first
// used (dlopen; $TUNER_LIBNVML names a file). Needs no CUDA context and makes none.
#pragma once

#include <string>

namespace tuner {

// "1980 MHz, memory 2619 MHz, 41 C, 213 W, throttled by power cap" of the device now; parts the library does
// not tell are left out. "no NVML" where it is not there or does not know the device. Takes about 1 ms.
std::string device_state(const std::string& uuid);

}  // namespace tuner
