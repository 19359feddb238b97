// Whether a GPU and its driver take code that was compiled elsewhere. Asks no driver: the rules are those of
// the CUDA documentation ("Application Compatibility" and "CUDA Compatibility").
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

// True if a cubin of `code` runs on a GPU of `device` ("sm_86"): the same major version and no newer minor
// one. With the features of one architecture ("sm_90a") it runs on that one only.
bool cubin_runs(std::string_view code, std::string_view device);
// True if `code` is what a compiler makes for exactly this GPU, so that times of it are the GPU's own.
bool is_native_cubin(std::string_view code, std::string_view device);

// The major version of the toolkit in "nvrtc 13.0 cuda codegen 1", or in "source:nvcc Cuda compilation tools,
// release 13.0, V13.0.88": 13. 0: the text is of something else.
int toolkit_major(std::string_view toolchain);
// The newest major version of a toolkit that may compile for `target` ("cuda -arch=sm_90") where such a
// driver (12040: CUDA 12.4) has to take it. 0: any, as for targets of other kinds.
int newest_toolkit_for(std::string_view target, int driver_version);
// OK, or Failed with one line: the driver (13000: CUDA 13.0) is of an older major version than the toolkit
// and refuses its cubins. PTX would not help, since a driver compiles none of a newer toolkit.
Status check_driver_takes(int toolkit_major, int driver_version);

}  // namespace tuner
