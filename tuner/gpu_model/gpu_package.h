// A model for GPUs as files: one library with cubins and the table of launches, its weights packed ahead, and
// what a C or C++ program needs to run it. Running needs the driver only.
//
//   include/NAME.h  tuner_gpu_model.h  tuner_model.h  tuner_runtime.h  tuner_kernel.h
//   lib/libNAME.so  lib/libNAME.a  lib/cmake/NAME/NAMEConfig.cmake  lib/pkgconfig/NAME.pc
//   NAME.weights                       constants as kernels read them; uploaded once per device and process
//   plan.json                          steps, kernels, places, times: for `tuner run` and `tuner show`
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tuner/model/model_package.h"

namespace tuner {

// All files; plan.json is the last, and tells of the first variant. `variants`: the same steps and places,
// once per architecture, with the kernels of that one; at least one. The library is for `host`, the CPU of
// the programs that link it. Writes the weights into `staging`, as model_files(). InvalidArgument: a kernel
// needs what tuner_gpu_model.h does not launch (README.md).
Result<std::vector<BundleFile>> gpu_model_files(std::span<const ModelToPack> variants, const Target& host,
                                                const std::string& staging);

}  // namespace tuner
