#include "tuner/answers/built_answers.h"

#include <array>
#include <filesystem>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/json_reader.h"
#include "tuner/bundle/bundle_folder.h"

namespace tuner {
namespace {

using json_input::kRequired;
using json_input::Reader;

constexpr size_t kMostIndex = 256 << 20;
constexpr std::array<const FolderIndex*, 2> kIndexes = {&kBundleIndex, &kModelIndex};

// What stands in an index of one kernel.
struct IndexedKernel {
  std::string workload, target, kind, note, constants, algorithms, template_name;
  int template_version = 1;
  std::map<std::string, int64_t> config;
};

void read_config(const nlohmann::json& object, Reader& in, std::map<std::string, int64_t>& config) {
  if (!object.is_object())
    in.refuse("config", "expected an object { ... }, found ", json_input::found(object));
  for (const auto& [knob, value] : object.items()) {
    if (!value.is_number_integer())
      in.refuse("config", "expected integers, found ", json_input::found(value));
    else
      config[knob] = value.get<int64_t>();
  }
}

IndexedKernel read_indexed(Reader& in) {
  IndexedKernel k;
  in.read_object(
      "answer",
      [&](Reader& answer) {
        answer.read("kind", k.kind, kRequired);
        answer.read("note", k.note);
      },
      kRequired);
  if (k.kind == "used") return k;
  in.read("workload", k.workload, kRequired);
  in.read("target", k.target, kRequired);
  in.read("template", k.template_name, kRequired);
  in.read("template_version", k.template_version, 1, 1 << 30, kRequired);
  in.read("constants", k.constants);
  in.read("algorithms", k.algorithms);
  if (const auto* config = in.get("config", kRequired)) read_config(*config, in, k.config);
  return k;
}

// `unsaid`: what constants are where the index does not say: it is of an older program.
Result<BuiltKernel> built_kernel(const IndexedKernel& k, Constants unsaid) {
  ASSIGN_OR_RETURN(CliTask task, task_from_keys(k.workload, k.target));
  task.algorithms = k.algorithms;
  task.constants = constants_from_name(k.constants).value_or(unsaid);
  const std::optional<AnswerKind> kind = answer_kind_from_name(k.kind);
  if (!kind) return invalid_argument("answer.kind: found \"", k.kind, "\", which this program does not know");
  Answer answer;
  answer.kind = *kind;
  answer.workload_key = task.key;
  answer.target = task.target_name;
  answer.template_name = k.template_name;
  answer.template_version = k.template_version;
  answer.config = Config(k.config).to_text();
  answer.note = k.note;
  return BuiltKernel{std::move(task), std::move(answer)};
}

std::string index_of(const std::string& folder) {
  std::error_code error;
  for (const FolderIndex* index : kIndexes)
    if (const auto path = std::filesystem::path(folder) / index->file; std::filesystem::exists(path, error))
      return path.string();
  return {};
}

}  // namespace

bool is_built(const std::string& folder) { return !index_of(folder).empty(); }

Result<std::vector<BuiltKernel>> built_kernels(const std::string& folder) {
  const std::string path = index_of(folder);
  ASSIGN_OR_RETURN(const std::string text,
                   read_file(path, "what `tuner build` or `tuner compile` wrote", kMostIndex));
  const Result<nlohmann::json> document = json_input::parse(text);
  if (!document) return document.status().with_context(path + ": ");
  std::vector<IndexedKernel> indexed;
  Reader in(*document, "");
  in.read_objects(
      "kernels", [&](Reader& each) { indexed.push_back(read_indexed(each)); }, kRequired);
  // Of a model for several CPUs those of the others.
  in.read_objects("cpus", [&](Reader& cpu) {
    cpu.read_objects(
        "kernels", [&](Reader& each) { indexed.push_back(read_indexed(each)); }, kRequired);
  });
  if (in.failed()) return invalid_argument(path, ": ", json_input::one_line(in.status().message()));
  const Constants unsaid = path.ends_with(kModelIndex.file) ? Constants::kCold : Constants::kWarm;
  std::vector<BuiltKernel> kernels;
  for (size_t i = 0; i < indexed.size(); ++i) {
    if (indexed[i].kind == "used") continue;
    Result<BuiltKernel> kernel = built_kernel(indexed[i], unsaid);
    if (!kernel)
      return invalid_argument(path, ": kernels[", i, "]: ", json_input::one_line(kernel.message()));
    kernels.push_back(*std::move(kernel));
  }
  return kernels;
}

}  // namespace tuner
