#include "tuner/model/model_file.h"

#include <filesystem>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/mapped_file.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/oracle/oracle.h"
#include "tuner/model/named_file.h"

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

Result<std::map<std::string, graph::Value>> model_constants(std::span<const std::string> texts) {
  std::map<std::string, graph::Value> values;
  for (const std::string& text : texts) {
    const Result<NamedFile> cut = named_existing_file(text, "--constant");
    if (!cut)
      return invalid_argument("--constant: expected NAME=FILE, as mask=mask.pb, found \"", text, "\"");
    const auto& [name, path] = *cut;
    ASSIGN_OR_RETURN(const MappedFile file, map_input(path, "a tensor (an onnx.TensorProto)"));
    Result<graph::Value> value = read_tensor(file.bytes());
    if (!value) return value.status().with_context(path + ": ");
    if (!values.emplace(name, *std::move(value)).second)
      return invalid_argument("--constant ", name, ": found twice, expected once");
  }
  return values;
}

}  // namespace tuner
