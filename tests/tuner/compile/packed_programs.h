// A prepared model as a library of Programs that a test chooses, one for each of its kernels.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/backend.h"
#include "db/resolve/resolve.h"
#include "tuner/compile/compile_model.h"
#include "tuner/model/model_package.h"

namespace tuner::testing {

// Everything that model_files() wants. The library is called "net".
inline Result<ModelToPack> packed_programs(const CompileRequest& request, const PreparedModel& model,
                                           const std::vector<Program>& programs, const MemoryPlan& memory) {
  ModelToPack pack{.name = "net",
                   .target = request.target,
                   .model = model.steps,
                   .memory = memory,
                   .kernels = {},
                   .kernel_of_step = model.kernels.of_step,
                   .source = "net.onnx",
                   .source_digest = model.digest,
                   .used = {}};
  const Resolver none(nullptr, {});
  for (size_t k = 0; k < programs.size(); ++k) {
    const CliTask& task = model.kernels.tasks[k];
    const std::string function = str("kernel", k);
    ASSIGN_OR_RETURN(BundleKernel kernel, build_kernel({task, function}, "net", none, {.schedule = false}));
    const ShipRequest ship{.function = function, .library = "net", .about = ""};
    ASSIGN_OR_RETURN(kernel.code, backend_of(task.target).ship(programs[k], task.target, ship));
    kernel.packing = programs[k].packing;
    pack.kernels.push_back(std::move(kernel));
  }
  return pack;
}

}  // namespace tuner::testing
