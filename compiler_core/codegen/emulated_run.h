// GPU Programs run on this CPU: emulate, compile with LLVM (or interpret), run in this process, read what was
// found. What tests, `tuner verify` and packs for hosts without a GPU use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emulator/emulator.h"
#include "compiler_core/lower/gpu.h"
#include "compiler_core/target.h"

namespace tuner {

struct EmulatedRun {
  std::vector<std::vector<float>> outputs;  // in argument order, row-major
  // With EmulatorOptions::sample_blocks: for each output, 1 for every element that a block stored; else
  // empty.
  std::vector<std::vector<uint8_t>> written;
  std::vector<std::string> faults;                    // describe_faults(): empty when all is well
  double emulate_ms = 0, compile_ms = 0, run_ms = 0;  // wall time
};

// Runs `program` on `inputs`: one vector for each input and constant, in argument order, row-major, rounded
// to the argument's type, which is not float64. Integers beyond 2^24 come back rounded to float32.
// With checks (the default) no access of the program can leave its buffers, so that
// even a wrong kernel runs safely in this process; without them it must be known to be right. One thread; may
// be called from several at once.
//
// InvalidConfig from emulate(); InvalidArgument when the inputs do not fit.
Result<EmulatedRun> run_emulated(const GpuProgram& program, const std::vector<std::vector<float>>& inputs,
                                 const EmulatorOptions& options = {});
// The same in the oracle: every value in double precision, some 10^6 operations a second. For small shapes.
Result<EmulatedRun> interpret_emulated(const GpuProgram& program,
                                       const std::vector<std::vector<float>>& inputs,
                                       const EmulatorOptions& options = {});

// The emulated Program, without checks, as a CPU artifact that takes the arguments of the GPU Program.
Result<Artifact> compile_emulated(const GpuProgram& program, const Target& cpu);

}  // namespace tuner
