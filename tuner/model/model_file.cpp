#include "tuner/model/model_file.h"

#include <filesystem>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/mapped_file.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/oracle/oracle.h"

namespace tuner {

graph::Evaluator model_evaluator() {
  // Compiling takes about as long as this many steps of the interpreter.
  constexpr double kMostInterpreted = 50'000;
  return [](const Program& program, std::vector<std::vector<double>>& args) {
    if (stores_in(program.body) <= kMostInterpreted) return interpret(program, args);
    const OnCpus there(cpus_beside_runs());  // a worker of this host may time something meanwhile
    return evaluate_compiled(program, args);
  };
}

Result<graph::Graph> read_model_file(const std::string& path, ModelOptions options) {
  ASSIGN_OR_RETURN(const MappedFile file, map_input(path, "an ONNX model"));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  options.folder = folder.empty() ? "." : folder;
  auto graph = read_model(file.bytes(), file.owner(), options, model_evaluator());
  if (!graph) return graph.status().with_context(path + ": ");
  return graph;
}

}  // namespace tuner
