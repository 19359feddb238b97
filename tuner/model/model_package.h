// A model as files: one library with all kernels and the table of steps, its weights packed ahead, and what a
// C, C++ or Python program needs to run it.
//
//   include/NAME.h  tuner_model.h  tuner_runtime.h  tuner_kernel.h  tuner_pool.h
//   lib/libNAME.so  lib/libNAME.a  lib/cmake/NAME/NAMEConfig.cmake  lib/pkgconfig/NAME.pc
//   lib/libNAME_LIBRARY_DIGEST.so      a library of functions that take the place of kernels (README.md);
//                                      there is no libNAME.a then
//   NAME.weights                       constants as kernels read them; mapped, shared by all contexts and
//                                      processes
//   plan.json                          steps, kernels, places, times: for `tuner run` and `tuner show`
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tuner/bundle/bundle.h"
#include "tuner/model/memory_plan.h"
#include "tuner/model/partition.h"

namespace tuner {

// A function that somebody else wrote, in the place of a kernel of ours: its library lies beside ours.
struct UsedFunction {
  size_t kernel = 0;  // kernels[kernel] describes it: no object, `function` is its symbol
  std::string from;   // file that it was given as, for people
  std::shared_ptr<const std::string> library;  // its bytes
  // Of a kernel for an accelerator: the library is ours and simulates it, and a step of the kernel is this
  // function, whose first argument is the kernel's program. Empty: it is somebody else's.
  std::string step = {}, costs = {}, timeline = {};  // names in it, as HostLibrary has them
};

// What is to be written. Everything refers to model.graph.
struct ModelToPack {
  std::string name;  // C name of the library
  Target target;     // a CPU: of all kernels but those for an accelerator
  ModelSteps model;
  MemoryPlan memory;
  std::vector<BundleKernel> kernels;   // each distinct workload once, built for the library `name`
  std::vector<size_t> kernel_of_step;  // one a step, into kernels
  std::string source;                  // where the model came from, for people: its file's name
  std::string source_digest;           // SHA-256 of what was compiled, so that a reader knows its own
  std::vector<UsedFunction> used;      // by kernel
};

// Path in the folder of a library of used functions: "lib/libNAME_ours_0123456789abcdef.so". Content names
// it: the loader takes what it has loaded by that name, whatever the folder.
std::string used_path(const ModelToPack& model, const UsedFunction& used);

// All files; plan.json is the last. Writes the weights into `staging`, a folder on the file system where they
// will lie (BundleFolder::staging()), one constant after the other. The targets need not run on this machine.
// Several models: one library for several CPUs, those with more instruction sets first. They are the same
// model under one name, each with kernels, steps and places for its target, and with functions of its own;
// none has used functions. What two of them read alike stands once among the weights.
Result<std::vector<BundleFile>> model_files(std::span<const ModelToPack> models, const std::string& staging);
inline Result<std::vector<BundleFile>> model_files(const ModelToPack& model, const std::string& staging) {
  return model_files({&model, 1}, staging);
}

}  // namespace tuner
